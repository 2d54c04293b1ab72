//! The effects of one recovery, as values.

use legacy::publish::{Change, Lineage, Precondition};

use graph::model::TableIdentity;

use crate::audit::RecoveryKind;
use crate::sidecar::Outcome;

/// A pin that is read from its table when it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinAt {
    /// The table.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// Its folder.
    pub location: String,
    /// Its ref.
    pub table_branch: Option<String>,
    /// Native ref that owns the fork.
    pub owner: Option<String>,
    /// The version the branch shows.
    pub expected_version: u64,
    /// The version to show.
    pub version: u64,
}

/// One change of a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedChange {
    /// As the sidecar recorded it.
    Recorded(Change),
    /// Read from the table.
    Read(PinAt),
}

/// One publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// The exact state it needs.
    pub precondition: Option<Precondition>,
    /// Its changes.
    pub changes: Vec<PlannedChange>,
    /// Its commit.
    pub lineage: Lineage,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Remove a table ref that the write made, and its tree.
    RemoveFork {
        /// The table.
        table_key: String,
        /// Its folder.
        location: String,
        /// The ref.
        branch: String,
        /// The version it forks at.
        fork_version: u64,
        /// The version of the write's own in it.
        proved: Option<u64>,
    },
    /// Write the rollback plan into the sidecar.
    WritePlan(Vec<Outcome>),
    /// Remove the dataset of a table that the write was to register.
    RemoveDataset {
        /// The table.
        table_key: String,
        /// Its folder.
        location: String,
    },
    /// Restore a version above the newest one.
    Restore {
        /// The table.
        table_key: String,
        /// Its folder.
        location: String,
        /// Its ref.
        table_branch: Option<String>,
        /// The newest version, proved to be the write's.
        head: u64,
        /// The version to restore.
        version: u64,
    },
    /// Remove the staging copies of the schema.
    DiscardStaging {
        /// What is there now.
        objects: Vec<&'static str>,
        /// Hash of the live schema.
        authority: String,
        /// Hash of the staged one.
        target: String,
    },
    /// Publish.
    Publish(Publication),
    /// Make the staged schema the live one.
    PromoteStaging {
        /// What is there now.
        objects: Vec<&'static str>,
        /// Its hash.
        target: String,
    },
    /// Record the recovery.
    Audit {
        /// The commit it left.
        commit_id: String,
        /// What it did.
        kind: RecoveryKind,
        /// Per table.
        outcomes: Vec<Outcome>,
    },
    /// Delete the sidecar.
    RemoveSidecar,
}

impl Step {
    /// What the step does, for the report.
    pub fn describe(&self) -> String {
        let on = |branch: &Option<String>| match branch {
            Some(branch) => format!(" on ref {branch}"),
            None => String::new(),
        };
        match self {
            Self::RemoveFork {
                table_key, branch, ..
            } => format!("delete the ref {branch} of table {table_key} and its tree"),
            Self::WritePlan(outcomes) => format!(
                "record the rollback of {} table(s) in the sidecar",
                outcomes.len()
            ),
            Self::RemoveDataset {
                table_key,
                location,
            } => {
                format!("delete {location}, the unregistered dataset of table {table_key}")
            }
            Self::Restore {
                table_key,
                table_branch,
                head,
                version,
                ..
            } => format!(
                "restore version {version} of table {table_key}{} as version {}",
                on(table_branch),
                head.saturating_add(1)
            ),
            Self::DiscardStaging { objects, .. } => format!("delete {}", objects.join(", ")),
            Self::Publish(p) => format!(
                "publish commit {} on {} with {}",
                p.lineage.id,
                p.branch.as_deref().unwrap_or("main"),
                changes(&p.changes)
            ),
            Self::PromoteStaging { objects, .. } => format!("promote {}", objects.join(", ")),
            Self::Audit {
                commit_id, kind, ..
            } => format!(
                "record {} of commit {commit_id} in {}",
                kind.as_str(),
                crate::audit::AUDIT_DIR
            ),
            Self::RemoveSidecar => "delete the sidecar".into(),
        }
    }
}

fn changes(all: &[PlannedChange]) -> String {
    if all.is_empty() {
        return "no table change".into();
    }
    let one = |change: &PlannedChange| match change {
        PlannedChange::Read(pin) => format!("{} at version {}", pin.table_key, pin.version),
        PlannedChange::Recorded(Change::Register { table_key, .. }) => {
            format!("{table_key} registered")
        }
        PlannedChange::Recorded(Change::Rename {
            expected_key,
            table_key,
            ..
        }) => format!("{expected_key} renamed to {table_key}"),
        PlannedChange::Recorded(Change::Update { table_key, pin, .. }) => {
            format!("{table_key} at version {}", pin.table_version)
        }
        PlannedChange::Recorded(Change::Tombstone { table_key, .. }) => {
            format!("{table_key} dropped")
        }
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
