//! What `optimize` prints (`docs/format/maintenance.md` 2.6 and 2.7).

use std::fmt::Write as _;

use graph::model::TableKind;
use serde::Serialize;

use super::fragments::TaskSize;
use super::table::Chain;
use crate::indexes::declared::DeclaredIndex;
use crate::indexes::needs::{Fold, Pending};

/// The `type_key` of the catalog's row, always the last.
pub const MANIFEST_KEY: &str = "__manifest";

/// The result of a run; member order is the order of its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptimizeReport {
    /// Root.
    pub uri: String,
    /// Tables by type key, then `__manifest`.
    pub datasets: Vec<OptimizedTable>,
    /// The commit; `None` when no table needed work. Not part of the JSON of a release.
    #[serde(skip)]
    pub graph_commit_id: Option<String>,
}

/// One row. The three fields of older lines about skipped tables are always null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptimizedTable {
    /// `node:{Type}`, `edge:{Type}` or `__manifest`.
    pub type_key: String,
    /// Fragments the compaction replaced.
    pub fragments_removed: usize,
    /// Fragments it wrote.
    pub fragments_added: usize,
    /// Whether this run published a new pin.
    pub committed: bool,
    /// Never set at stamp 14.
    pub skipped: Option<String>,
    /// Never set at stamp 14.
    pub published_dataset_version: Option<u64>,
    /// Never set at stamp 14.
    pub lance_head_version: Option<u64>,
    /// Indexes that are declared and not built, or built and behind.
    pub pending_indexes: Vec<Pending>,
}

/// What a run would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptimizePlan {
    /// Root.
    pub uri: String,
    /// Tables by type key.
    pub datasets: Vec<PlannedTable>,
}

/// The plan of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTable {
    /// `node:{Type}` or `edge:{Type}`.
    pub type_key: String,
    /// Fragments of the pinned image.
    pub fragments: usize,
    /// Its live rows.
    pub rows: u64,
    /// Bytes of data files that would be rewritten; `None` when a manifest does not say.
    pub bytes_to_rewrite: Option<u64>,
    /// Groups of neighbouring fragments that would become fewer.
    pub compaction_tasks: Vec<TaskSize>,
    /// Indexes that would be rebuilt, besides those that a compaction touches.
    pub rebuild_indexes: Vec<Fold>,
    /// Declared indexes that would be built.
    pub missing_indexes: Vec<DeclaredIndex>,
    /// Indexes that stay as they are.
    pub pending_indexes: Vec<Pending>,
}

impl OptimizeReport {
    pub(super) fn new(uri: &str, chains: Vec<Chain>, graph_commit_id: Option<String>) -> Self {
        let row = |type_key: String| OptimizedTable {
            type_key,
            fragments_removed: 0,
            fragments_added: 0,
            committed: false,
            skipped: None,
            published_dataset_version: None,
            lance_head_version: None,
            pending_indexes: Vec::new(),
        };
        let tables = chains.into_iter().map(|chain| OptimizedTable {
            fragments_removed: chain.compacted.removed,
            fragments_added: chain.compacted.added,
            committed: chain.update.is_some(),
            pending_indexes: chain.pending,
            ..row(chain.type_key)
        });
        let mut datasets: Vec<OptimizedTable> = tables.collect();
        datasets.push(row(MANIFEST_KEY.to_string()));
        Self {
            uri: uri.to_string(),
            datasets,
            graph_commit_id,
        }
    }

    /// For a person.
    pub fn human(&self) -> String {
        let mut text = format!("optimize {} — {} datasets\n", self.uri, self.datasets.len());
        for row in &self.datasets {
            let what = match (&row.skipped, row.committed) {
                (Some(reason), _) => format!("skipped ({reason})"),
                (None, true) => {
                    format!(
                        "frags {} → {} ✓",
                        row.fragments_removed, row.fragments_added
                    )
                }
                (None, false) => "no-op".to_string(),
            };
            line(&mut text, &row.type_key, &what);
            pending(&mut text, &row.pending_indexes);
        }
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        let committed = self.datasets.iter().filter(|d| d.committed).count();
        let (removed, added) = self.datasets.iter().fold((0, 0), |sum, d| {
            (sum.0 + d.fragments_removed, sum.1 + d.fragments_added)
        });
        let pending: usize = self.datasets.iter().map(|d| d.pending_indexes.len()).sum();
        let commit = self.graph_commit_id.as_deref().unwrap_or("none");
        format!(
            "optimize: commit {commit}, {committed} tables changed, fragments {removed} → {added}, {pending} indexes \
             pending"
        )
    }
}

impl OptimizePlan {
    /// For a person.
    pub fn human(&self) -> String {
        let mut text = format!(
            "optimize {} --check — {} datasets, nothing was changed\n",
            self.uri,
            self.datasets.len()
        );
        for table in &self.datasets {
            let replaced: usize = table.compaction_tasks.iter().map(|t| t.fragments).sum();
            let mut parts = Vec::new();
            if replaced > 0 {
                let bytes = match table.bytes_to_rewrite {
                    Some(bytes) => format!("{bytes} bytes"),
                    None => "bytes unknown".to_string(),
                };
                parts.push(format!(
                    "rewrite {replaced} of {} fragments in {} tasks, {bytes}",
                    table.fragments,
                    table.compaction_tasks.len()
                ));
            }
            parts.extend(
                table
                    .rebuild_indexes
                    .iter()
                    .map(|f| format!("rebuild index {}", f.name)),
            );
            parts.extend(
                table
                    .missing_indexes
                    .iter()
                    .map(|i| format!("build index on {}", i.column)),
            );
            let what = if parts.is_empty() {
                "no-op".to_string()
            } else {
                parts.join("; ")
            };
            line(&mut text, &table.type_key, &what);
            pending(&mut text, &table.pending_indexes);
        }
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        let with_work = self.datasets.iter().filter(|t| t.has_work()).count();
        format!(
            "optimize --check: {with_work} of {} tables need work, nothing was changed",
            self.datasets.len()
        )
    }
}

impl PlannedTable {
    /// Whether a run would publish a new pin of it.
    pub fn has_work(&self) -> bool {
        !(self.compaction_tasks.is_empty()
            && self.rebuild_indexes.is_empty()
            && self.missing_indexes.is_empty())
    }
}

fn line(text: &mut String, type_key: &str, what: &str) {
    // Writing into a String cannot fail.
    let _ = writeln!(text, "  {:40} {what}", subject(type_key));
}

fn pending(text: &mut String, all: &[Pending]) {
    for index in all {
        let _ = writeln!(
            text,
            "    ↳ index pending on property '{}': {}",
            index.property, index.reason
        );
    }
}

/// A type key as a person reads it (`docs/format/maintenance.md` 1.6).
pub(crate) fn subject(type_key: &str) -> String {
    match TableKind::split(type_key) {
        Ok((TableKind::Node, name)) => format!("node type '{name}'"),
        Ok((TableKind::Edge, name)) => format!("edge type '{name}'"),
        Err(_) => format!("dataset '{type_key}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_every_kind() {
        let cases = [
            ("node:A", "node type 'A'"),
            ("edge:B", "edge type 'B'"),
            ("__manifest", "dataset '__manifest'"),
            ("node:", "dataset 'node:'"),
        ];
        for (key, shown) in cases {
            assert_eq!(subject(key), shown);
        }
    }
}
