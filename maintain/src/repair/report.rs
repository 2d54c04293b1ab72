//! What `repair` prints (`docs/format/maintenance.md` 6.3).

use std::fmt::Write as _;

use serde::Serialize;

use super::classify::Classification;
use super::foreign::ForeignVersion;
use crate::optimize::report::subject;

/// The result; member order is the order of its JSON. `confirm` and `force` are the options of older lines and always
/// false: readers of those lines expect the members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Root.
    pub uri: String,
    /// Always false.
    pub confirm: bool,
    /// Always false.
    pub force: bool,
    /// Always null: nothing is published.
    pub graph_manifest_version: Option<u64>,
    /// Tables of main by type key.
    pub datasets: Vec<RepairedTable>,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairedTable {
    /// `node:{Type}` or `edge:{Type}`.
    pub type_key: String,
    /// The logical counter of the pin; not comparable with the next member.
    pub published_dataset_version: u64,
    /// Newest linear Lance version of the root lineage.
    pub lance_head_version: u64,
    /// The class.
    pub classification: Classification,
    /// Always `no_op`.
    pub action: &'static str,
    /// One text on foreign drift; the operations above the pin of an older line.
    pub operations: Vec<String>,
    /// The first version above the pin of an older line that cannot be read.
    pub error: Option<String>,
    /// What the versions are, ascending; the newest [`super::MOST_VERSIONS`].
    pub foreign_versions: Vec<ForeignVersion>,
}

impl RepairedTable {
    pub(super) fn clean(type_key: &str, published: u64, head: u64) -> Self {
        Self {
            type_key: type_key.to_string(),
            published_dataset_version: published,
            lance_head_version: head,
            classification: Classification::NoDrift,
            action: "no_op",
            operations: Vec::new(),
            error: None,
            foreign_versions: Vec::new(),
        }
    }
}

impl RepairReport {
    pub(super) fn new(uri: &str) -> Self {
        Self {
            uri: uri.to_string(),
            confirm: false,
            force: false,
            graph_manifest_version: None,
            datasets: Vec::new(),
        }
    }

    /// For a person.
    pub fn human(&self) -> String {
        let count = self.datasets.len();
        let mut text = format!("repair {} — preview mode, {count} datasets\n", self.uri);
        // Writing into a String cannot fail.
        for row in &self.datasets {
            let (published, head) = (row.published_dataset_version, row.lance_head_version);
            let versions = if row.classification == Classification::NoDrift {
                published.to_string()
            } else {
                format!("{published} → {head}")
            };
            let _ = write!(
                text,
                "  {:40} {:12} {:22} {versions}",
                subject(&row.type_key),
                row.action,
                row.classification.as_str(),
            );
            if !row.operations.is_empty() {
                let _ = write!(text, " [{}]", row.operations.join(", "));
            }
            if let Some(error) = &row.error {
                let _ = write!(text, " ({error})");
            }
            text.push('\n');
            for version in &row.foreign_versions {
                let _ = writeln!(text, "    ↳ {}", version.human());
            }
        }
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        let drifted = self.datasets.iter().filter(|d| d.is_drifted()).count();
        let versions: usize = self.datasets.iter().map(|d| d.foreign_versions.len()).sum();
        format!(
            "repair: {} tables, {drifted} with foreign versions ({versions} listed), nothing was changed",
            self.datasets.len()
        )
    }
}

impl RepairedTable {
    fn is_drifted(&self) -> bool {
        self.classification != Classification::NoDrift
    }
}

impl ForeignVersion {
    fn human(&self) -> String {
        let rows = self
            .rows
            .map_or_else(|| "rows unknown".to_string(), |rows| format!("{rows} rows"));
        let mut text = format!(
            "version {}: {} at {}, {rows}",
            self.version,
            self.operation.as_deref().unwrap_or("unknown operation"),
            self.time.as_deref().unwrap_or("an unknown time"),
        );
        if let Some(error) = &self.error {
            text.push_str(&format!(" ({error})"));
        }
        text
    }
}
