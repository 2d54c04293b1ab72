//! The report of a repair.

use serde::Serialize;

use super::classify::{Action, Classification};

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatasetReport {
    /// `node:<Type>` or `edge:<Type>`.
    pub type_key: String,
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// Lance ref of the table; `None` is its root lineage.
    pub table_branch: Option<String>,
    /// The version the branch shows.
    pub published_dataset_version: u64,
    /// The newest version.
    pub lance_head_version: u64,
    /// What stands above the pin.
    pub classification: Classification,
    /// What became of it.
    pub action: Action,
    /// Lance operations above the pin.
    pub operations: Vec<String>,
    /// Why a version could not be read.
    pub error: Option<String>,
}

/// One commit that a repair made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitReport {
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// Its id.
    pub graph_commit_id: String,
    /// The `__manifest` version it made.
    pub graph_manifest_version: u64,
}

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// The root.
    pub uri: String,
    /// Whether anything could be published.
    pub confirm: bool,
    /// Whether unverified drift could be.
    pub force: bool,
    /// Version of the commit on main; `None` when nothing was published there.
    pub graph_manifest_version: Option<u64>,
    /// Every commit, one a branch.
    pub commits: Vec<CommitReport>,
    /// The tables, main first.
    pub datasets: Vec<DatasetReport>,
}

impl RepairReport {
    /// Whether no table was refused.
    pub fn is_success(&self) -> bool {
        !self.datasets.iter().any(|d| d.action == Action::Refused)
    }
}

/// Render a report for a person; ends in a newline.
pub fn render(report: &RepairReport) -> String {
    let mut lines = Vec::new();
    for d in &report.datasets {
        let mut line = format!(
            "{} on {}: published {}, newest {}, {:?}, {:?}",
            d.type_key,
            d.branch.as_deref().unwrap_or("main"),
            d.published_dataset_version,
            d.lance_head_version,
            d.classification,
            d.action
        );
        if !d.operations.is_empty() {
            line.push_str(&format!(" ({})", d.operations.join(", ")));
        }
        if let Some(error) = &d.error {
            line.push_str(&format!(": {error}"));
        }
        lines.push(line);
    }
    for c in &report.commits {
        lines.push(format!(
            "published commit {} on {} as version {}",
            c.graph_commit_id,
            c.branch.as_deref().unwrap_or("main"),
            c.graph_manifest_version
        ));
    }
    let any = |action: Action| report.datasets.iter().any(|d| d.action == action);
    lines.push(if any(Action::Refused) {
        "refused: a table holds versions that are no compaction. Look at what wrote them; --force --confirm publishes them \
         with their rows"
            .into()
    } else if any(Action::Preview) {
        "nothing was changed; --confirm publishes verified maintenance".into()
    } else if report.commits.is_empty() {
        "no drift".into()
    } else {
        "repaired".into()
    });
    lines.push(String::new());
    lines.join("\n")
}
