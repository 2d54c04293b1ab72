//! The payloads of sidecars (`docs/format/recovery-sidecars.md` 2.2, 2.3).

use graph::model::{PinMetadata, TableIdentity};
use graph::refs::BranchIdentifier;
use serde::{Deserialize, Serialize};

/// Lance's branch identifier as a sidecar stores it.
pub type BranchId = BranchIdentifier;

/// The two fields that tell a Lance transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionId {
    /// Version it was built on.
    pub read_version: u64,
    /// Free text.
    pub uuid: String,
}

/// What the write was decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Lance identifier of the branch.
    pub branch_identifier: BranchId,
    /// Commit of the branch's `graph_head` row; `None` when it has none.
    #[serde(default)]
    pub graph_head: Option<String>,
    /// Identity domain of the schema.
    pub schema_identity_domain: String,
    /// Its hash.
    pub schema_ir_hash: String,
    /// 2.
    pub schema_identity_version: u32,
}

/// The commit the write was to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineageIntent {
    /// Its id.
    pub graph_commit_id: String,
    /// Logical branch.
    #[serde(default)]
    pub branch: Option<String>,
    /// Author.
    #[serde(default)]
    pub actor_id: Option<String>,
    /// Merged source head.
    #[serde(default)]
    pub merged_parent_commit_id: Option<String>,
    /// Microseconds since the epoch.
    pub created_at: i64,
}

/// The published state of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Lance version.
    pub table_version: u64,
    /// Lance ref.
    #[serde(default)]
    pub table_branch: Option<String>,
    /// Live rows.
    pub row_count: u64,
    /// Metadata of the pin row.
    pub version_metadata: PinMetadata,
}

/// One row the publish was to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The table.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// The version it showed.
    pub expected_version: u64,
    /// Lance ref.
    #[serde(default)]
    pub table_branch: Option<String>,
    /// What it was to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmed>,
}

/// A table the publish was to register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRegistration {
    /// The table.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// Path below the root.
    pub table_path: String,
    /// Lance ref.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_branch: Option<String>,
}

/// A table the publish was to rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRename {
    /// The table.
    pub identity: TableIdentity,
    /// The alias it had.
    pub expected_table_key: String,
    /// The version it showed.
    pub expected_version: u64,
    /// Its new alias.
    pub table_key: String,
    /// Path below the root.
    pub table_path: String,
}

/// A table the publish was to drop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTombstone {
    /// The table.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// Number of the tombstone.
    pub tombstone_version: u64,
}

/// Everything the publish was to write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// Pins.
    pub table_updates: Vec<Slot>,
    /// New tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<PlannedRegistration>,
    /// Renamed tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renames: Vec<PlannedRename>,
    /// Dropped tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tombstones: Vec<PlannedTombstone>,
}

/// What the audit row says of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Alias.
    pub table_key: String,
    /// From.
    pub from_version: u64,
    /// To.
    pub to_version: u64,
}

/// How far a writer got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectPhase {
    /// The sidecar was written; any part of the effects may have landed.
    Armed,
    /// Every effect landed and is recorded.
    EffectsConfirmed,
}

/// The kinds of the effects of a merge and of a schema apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EffectKind {
    /// A chain of commits on one ref.
    MultiCommitHead {
        /// Set when the ref is made by this write.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source_fork_version: Option<u64>,
        /// In commit order.
        planned_transactions: Vec<TransactionId>,
        /// The last version made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirmed_version: Option<u64>,
        /// Of the ref that was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirmed_branch_identifier: Option<BranchId>,
    },
    /// A ref without a commit.
    RefOnlyFork {
        /// The version it forks at.
        source_version: u64,
        /// Of the ref that was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirmed_branch_identifier: Option<BranchId>,
    },
    /// A rewrite of a table.
    ExistingOverwrite {
        /// Planned.
        planned_transaction: TransactionId,
        /// Confirmed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirmed_transaction: Option<TransactionId>,
    },
    /// A new table.
    FirstTouchDataset {
        /// Planned.
        planned_transaction: TransactionId,
        /// Confirmed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirmed_transaction: Option<TransactionId>,
    },
    /// A respelling of the system columns (release 0.11).
    SystemColumnRename {
        /// Planned.
        planned_transaction: TransactionId,
        /// Confirmed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirmed_transaction: Option<TransactionId>,
    },
}

/// One table effect. Mutation, Load and EnsureIndices use the flat members, the other kinds `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The table.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// By kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EffectKind>,
    /// The one transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_transaction: Option<TransactionId>,
    /// Set when the ref is made by this write (EnsureIndices).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_fork_version: Option<u64>,
    /// The one transaction as it landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_transaction: Option<TransactionId>,
    /// Of the ref that was made (EnsureIndices).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_branch_identifier: Option<BranchId>,
}

impl Effect {
    /// The one planned transaction; `None` for a chain and for a ref without commit.
    pub fn planned(&self) -> Option<&TransactionId> {
        match &self.kind {
            Some(
                EffectKind::ExistingOverwrite {
                    planned_transaction,
                    ..
                }
                | EffectKind::FirstTouchDataset {
                    planned_transaction,
                    ..
                }
                | EffectKind::SystemColumnRename {
                    planned_transaction,
                    ..
                },
            ) => Some(planned_transaction),
            Some(_) => None,
            None => self.planned_transaction.as_ref(),
        }
    }

    /// The one confirmed transaction.
    pub fn confirmed(&self) -> Option<&TransactionId> {
        match &self.kind {
            Some(
                EffectKind::ExistingOverwrite {
                    confirmed_transaction,
                    ..
                }
                | EffectKind::FirstTouchDataset {
                    confirmed_transaction,
                    ..
                }
                | EffectKind::SystemColumnRename {
                    confirmed_transaction,
                    ..
                },
            ) => confirmed_transaction.as_ref(),
            Some(_) => None,
            None => self.confirmed_transaction.as_ref(),
        }
    }

    /// The planned chain of a merge.
    pub fn chain(&self) -> Option<&[TransactionId]> {
        match &self.kind {
            Some(EffectKind::MultiCommitHead {
                planned_transactions,
                ..
            }) => Some(planned_transactions),
            _ => None,
        }
    }
}

/// The stamps of a respelling (release 0.11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemColumnUpgrade {
    /// 8.
    pub from_stamp: u32,
    /// 9.
    pub to_stamp: u32,
    /// `__manifest` version that advanced the stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_version_after_stamp: Option<u64>,
}

/// What every kind but Optimize carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// What the write was decided on.
    pub authority: Authority,
    /// The commit it was to make.
    pub lineage: LineageIntent,
    /// The commit that takes it back.
    pub rollback_graph_commit_id: String,
    /// The rollback plan; an empty one is not an absent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_audit_outcomes: Option<Vec<Outcome>>,
    /// SchemaApply only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_schema_ir_hash: Option<String>,
    /// How far it got.
    pub effect_phase: EffectPhase,
    /// Per table.
    pub effects: Vec<Effect>,
    /// What it was to publish.
    pub intended_delta: Delta,
    /// SchemaApply of release 0.11 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_column_upgrade: Option<SystemColumnUpgrade>,
}

impl Payload {
    /// Whether every effect is recorded as landed.
    pub fn is_confirmed(&self) -> bool {
        self.effect_phase == EffectPhase::EffectsConfirmed
    }
}
