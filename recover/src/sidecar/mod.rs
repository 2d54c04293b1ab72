//! The JSON of a recovery sidecar (`docs/format/recovery-sidecars.md` 2). Pure.
//!
//! Members stand in stored order, so that a rewrite (the rollback plan) leaves what the release would have left.
//! Unknown members are ignored, as every release did.

mod payload;
mod validity;
mod validity_kinds;
mod validity_schema;

pub use payload::{
    Authority, BranchId, Confirmed, Delta, Effect, EffectKind, EffectPhase, LineageIntent, Outcome,
    Payload, PlannedRegistration, PlannedRename, PlannedTombstone, Slot, SystemColumnUpgrade,
    TransactionId,
};
pub use validity::check;

use graph::model::TableIdentity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The greatest schema version any release wrote.
pub const MAX_SCHEMA_VERSION: u32 = 9;

/// Who wrote a sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WriterKind {
    /// A mutation.
    Mutation,
    /// A bulk load.
    Load,
    /// A change of the schema.
    SchemaApply,
    /// A merge of a branch.
    BranchMerge,
    /// A build of missing indexes.
    EnsureIndices,
    /// A compaction.
    Optimize,
}

impl WriterKind {
    /// The name as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutation => "Mutation",
            Self::Load => "Load",
            Self::SchemaApply => "SchemaApply",
            Self::BranchMerge => "BranchMerge",
            Self::EnsureIndices => "EnsureIndices",
            Self::Optimize => "Optimize",
        }
    }
}

/// One table a write touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePin {
    /// Its identity.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// Full location, root included.
    pub table_path: String,
    /// The version the branch showed.
    pub expected_version: u64,
    /// The version the write was to make; a lower bound for Optimize.
    pub post_commit_pin: u64,
    /// The version it did make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_version: Option<u64>,
    /// Lance ref of the table; `None` is its root lineage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_branch: Option<String>,
    /// Native `__manifest` ref that owns the fork, from stamp 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_fork_owner: Option<String>,
}

/// A sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// 9 for every current writer.
    pub schema_version: u32,
    /// ULID of the operation.
    pub operation_id: String,
    /// Decimal microseconds since the epoch.
    pub started_at: String,
    /// Logical graph branch; `None` is main.
    #[serde(default)]
    pub branch: Option<String>,
    /// Author.
    #[serde(default)]
    pub actor_id: Option<String>,
    /// Writer.
    pub writer_kind: WriterKind,
    /// The tables.
    pub tables: Vec<TablePin>,
    /// Historical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_source_commit_id: Option<String>,
    /// Historical.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_registrations: Vec<Value>,
    /// Historical.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tombstones: Vec<Value>,
    /// `true` only in schema version 5.
    #[serde(default)]
    pub schema_apply_manifest_published: bool,
    /// Schema version 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_apply_target_schema_ir_hash: Option<String>,
    /// Mutation and Load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_v3: Option<Payload>,
    /// BranchMerge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_v4: Option<Payload>,
    /// SchemaApply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_v7: Option<Payload>,
    /// EnsureIndices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_v8: Option<Payload>,
    /// Schema version 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensure_indices_rollback_v6: Option<Value>,
}

impl Sidecar {
    /// Decode a file: bad JSON, an unknown version, a malformed shape, each with words for a person.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Peek {
            schema_version: u32,
        }
        let peek: Peek =
            serde_json::from_slice(bytes).map_err(|e| format!("it is not valid JSON: {e}"))?;
        if peek.schema_version > MAX_SCHEMA_VERSION {
            return Err(format!(
                "it has schema_version {}, the greatest known is {MAX_SCHEMA_VERSION}: a later release wrote it",
                peek.schema_version
            ));
        }
        serde_json::from_slice(bytes).map_err(|e| format!("it could not be read as a sidecar: {e}"))
    }

    /// The text a release stores: two spaces, no trailing newline.
    pub fn pretty(&self) -> Result<String, String> {
        serde_json::to_string_pretty(self).map_err(|e| e.to_string())
    }

    /// The payload of this kind.
    pub fn payload(&self) -> Option<&Payload> {
        match self.writer_kind {
            WriterKind::Mutation | WriterKind::Load => self.protocol_v3.as_ref(),
            WriterKind::BranchMerge => self.protocol_v4.as_ref(),
            WriterKind::SchemaApply => self.protocol_v7.as_ref(),
            WriterKind::EnsureIndices => self.protocol_v8.as_ref(),
            WriterKind::Optimize => None,
        }
    }

    /// The same, to write the rollback plan.
    pub fn payload_mut(&mut self) -> Option<&mut Payload> {
        match self.writer_kind {
            WriterKind::Mutation | WriterKind::Load => self.protocol_v3.as_mut(),
            WriterKind::BranchMerge => self.protocol_v4.as_mut(),
            WriterKind::SchemaApply => self.protocol_v7.as_mut(),
            WriterKind::EnsureIndices => self.protocol_v8.as_mut(),
            WriterKind::Optimize => None,
        }
    }

    /// The logical branch as messages name it.
    pub fn branch_name(&self) -> &str {
        self.branch.as_deref().unwrap_or("main")
    }

    /// The logical branch, main folded to `None`.
    pub fn logical(&self) -> Option<&str> {
        self.branch.as_deref().filter(|b| *b != "main")
    }

    /// When the write started, microseconds since the epoch.
    pub fn started_micros(&self) -> Option<i64> {
        self.started_at.parse().ok()
    }

    /// The alias a pinned table has in the catalog before this write is published: the old one of a rename.
    pub fn alias_before<'a>(&'a self, pin: &'a TablePin) -> &'a str {
        self.payload()
            .and_then(|p| {
                p.intended_delta
                    .renames
                    .iter()
                    .find(|r| r.identity == pin.identity)
            })
            .map_or(pin.table_key.as_str(), |r| r.expected_table_key.as_str())
    }

    /// The effect of a pinned table.
    pub fn effect(&self, identity: TableIdentity) -> Option<&Effect> {
        self.payload()?
            .effects
            .iter()
            .find(|e| e.identity == identity)
    }

    /// The slot of a table.
    pub fn slot(&self, identity: TableIdentity) -> Option<&Slot> {
        let slots = &self.payload()?.intended_delta.table_updates;
        slots.iter().find(|s| s.identity == identity)
    }

    /// Whether this pin is a first touch: its ref is made by this write.
    pub fn is_planned_first_touch(&self, pin: &TablePin) -> bool {
        let Some(effect) = self.effect(pin.identity) else {
            return false;
        };
        match &effect.kind {
            Some(EffectKind::MultiCommitHead {
                source_fork_version,
                ..
            }) => source_fork_version.is_some(),
            Some(EffectKind::RefOnlyFork { .. }) => true,
            Some(_) => false,
            None => effect.source_fork_version.is_some(),
        }
    }

    /// The version a first touch forks at.
    pub fn fork_version(&self, pin: &TablePin) -> u64 {
        let Some(effect) = self.effect(pin.identity) else {
            return pin.expected_version;
        };
        match &effect.kind {
            Some(EffectKind::MultiCommitHead {
                source_fork_version: Some(v),
                ..
            })
            | Some(EffectKind::RefOnlyFork {
                source_version: v, ..
            }) => *v,
            _ => effect.source_fork_version.unwrap_or(pin.expected_version),
        }
    }

    /// The confirmed identifier of the ref a first touch made.
    pub fn confirmed_ref(&self, pin: &TablePin) -> Option<&BranchId> {
        let effect = self.effect(pin.identity)?;
        match &effect.kind {
            Some(
                EffectKind::MultiCommitHead {
                    confirmed_branch_identifier,
                    ..
                }
                | EffectKind::RefOnlyFork {
                    confirmed_branch_identifier,
                    ..
                },
            ) => confirmed_branch_identifier.as_ref(),
            _ => effect.confirmed_branch_identifier.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests;
