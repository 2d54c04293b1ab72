//! Typed rows of one version (`docs/format/manifest-v14.md` 3).

use super::packed::{COMMIT_MASK, Field, REPLACED_MASK, Record, TABLE_MASK};
use crate::error::{Error, Result};
use crate::model::{Commit, ContractHead, Pin, PinMetadata, TableIdentity, TableRow, TableState};

/// Row types by `object_type`.
pub mod object_type {
    /// One per table identity.
    pub const TABLE: &str = "table";
    /// The head.
    pub const GRAPH_COMMIT: &str = "graph_commit";
    /// A buffered ancestor.
    pub const SETTLED_COMMIT: &str = "settled_commit";
    /// A row as it was before a publish.
    pub const REPLACED_TABLE: &str = "replaced_table";
    /// The accepted contract; also its `object_id`.
    pub const SCHEMA_CONTRACT: &str = "schema_contract";
}

/// The logical row: identity columns, the record's fields, the two content columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogicalRow {
    /// Primary key.
    pub object_id: String,
    /// Row type.
    pub object_type: String,
    /// Fields of the packed record.
    pub record: Record,
    /// `.pg` source, on the contract row only.
    pub schema_source: Option<String>,
    /// IR text, on the contract row only.
    pub schema_ir: Option<String>,
}

/// `table:{stable:016x}:{incarnation:016x}`.
pub fn table_object_id(identity: TableIdentity) -> String {
    format!("table:{identity}")
}

/// `table:{…}@{replaced_at}`.
pub fn replaced_object_id(identity: TableIdentity, replaced_at: u64) -> String {
    format!("table:{identity}@{replaced_at}")
}

fn missing(object_id: &str, field: &str) -> Error {
    Error::internal(format!("row '{object_id}': {field} is null"))
}

fn want_u64(row: &LogicalRow, field: Field) -> Result<u64> {
    row.record
        .u64(field)
        .ok_or_else(|| missing(&row.object_id, super::packed::field_name(field)))
}

fn want_text(row: &LogicalRow, field: Field) -> Result<&str> {
    row.record
        .text(field)
        .ok_or_else(|| missing(&row.object_id, super::packed::field_name(field)))
}

/// The identity fields of a table or replaced row.
pub(super) fn identity(row: &LogicalRow) -> Result<TableIdentity> {
    TableIdentity::new(
        want_u64(row, Field::StableTableId)?,
        want_u64(row, Field::TableIncarnationId)?,
    )
    .map_err(|e| e.within(format!("row '{}'", row.object_id)))
}

/// Decode the state fields; `metadata` is given apart since a replaced row derives it.
pub(super) fn state(row: &LogicalRow, metadata: Option<PinMetadata>) -> Result<TableState> {
    let r = &row.record;
    let parts = (
        r.u64(Field::TableVersion),
        r.u64(Field::RowCount),
        metadata,
        r.u64(Field::ManifestVersion),
        r.text(Field::TableBranch).map(str::to_string),
        r.u64(Field::DroppedAt),
    );
    match parts {
        (None, None, None, None, None, None) => Ok(TableState::Registered),
        (
            Some(table_version),
            Some(row_count),
            Some(metadata),
            Some(manifest_version),
            table_branch,
            None,
        ) => Ok(TableState::Pinned(Pin {
            table_version,
            table_branch,
            row_count,
            metadata,
            manifest_version,
        })),
        (Some(sealed_version), None, None, None, None, Some(dropped_at)) => {
            Ok(TableState::Dropped {
                dropped_at,
                sealed_version,
            })
        }
        _ => Err(Error::internal(format!(
            "row '{}' is neither registered, pinned nor dropped",
            row.object_id
        ))),
    }
}

/// Refuse a state that is dated above the version it is read from.
pub(super) fn check_clock(object_id: &str, state: &TableState, version: u64) -> Result<()> {
    let clock = match state {
        TableState::Registered => return Ok(()),
        TableState::Pinned(pin) => pin.manifest_version,
        TableState::Dropped { dropped_at, .. } => *dropped_at,
    };
    if clock > version {
        return Err(Error::internal(format!(
            "row '{object_id}' is dated at version {clock}, above the version {version} it stands in"
        )));
    }
    Ok(())
}

/// Write the state fields of a table row (whole metadata).
pub(super) fn set_state(record: &mut Record, state: &TableState) {
    match state {
        TableState::Registered => {}
        TableState::Pinned(pin) => {
            record.set_text(Field::Metadata, pin.metadata.to_json());
            record.set_u64(Field::TableVersion, pin.table_version);
            record.set_opt_text(Field::TableBranch, pin.table_branch.as_deref());
            record.set_u64(Field::RowCount, pin.row_count);
            record.set_u64(Field::ManifestVersion, pin.manifest_version);
        }
        TableState::Dropped {
            dropped_at,
            sealed_version,
        } => {
            record.set_u64(Field::TableVersion, *sealed_version);
            record.set_u64(Field::DroppedAt, *dropped_at);
        }
    }
}

/// Encode a `table` row.
pub fn encode_table(table: &TableRow) -> LogicalRow {
    let mut record = Record::default();
    record.set_text(Field::Location, table.table_path.clone());
    record.set_text(Field::TableKey, table.table_key.clone());
    record.set_u64(Field::StableTableId, table.identity.stable_table_id);
    record.set_u64(
        Field::TableIncarnationId,
        table.identity.table_incarnation_id,
    );
    set_state(&mut record, &table.state);
    LogicalRow {
        object_id: table_object_id(table.identity),
        object_type: object_type::TABLE.into(),
        record,
        ..LogicalRow::default()
    }
}

/// Decode a `table` row standing in `version`.
pub fn decode_table(row: &LogicalRow, version: u64) -> Result<TableRow> {
    require_null(row, COMMIT_MASK | REPLACED_MASK, "a commit or replaced")?;
    let identity = identity(row)?;
    require_id(row, &table_object_id(identity))?;
    let metadata = match row.record.text(Field::Metadata) {
        None => None,
        Some(text) => Some(PinMetadata::parse(text, &row.object_id)?),
    };
    let table = TableRow {
        identity,
        table_key: want_text(row, Field::TableKey)?.to_string(),
        table_path: want_text(row, Field::Location)?.to_string(),
        state: state(row, metadata)?,
    };
    table.check_path()?;
    check_clock(&row.object_id, &table.state, version)?;
    Ok(table)
}

/// The contract identity fields of a commit row as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredContract {
    /// All three set.
    Own(ContractHead),
    /// All three null.
    None,
    /// Version 0 with both texts null: the same as the next newer held commit.
    Inherited,
}

/// A commit row whose elided fields are not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCommit {
    /// The commit; contract and content hash are `None` when inherited, the parent may be elided.
    pub commit: Commit,
    /// What the contract fields said.
    pub contract: StoredContract,
}

/// Encode a commit row of either type. `contract` decides what the contract fields say.
pub fn encode_commit(commit: &Commit, contract: &StoredContract, kind: &str) -> LogicalRow {
    let mut record = Record::default();
    record.set_opt_text(Field::GraphBranch, commit.graph_branch.as_deref());
    record.set_opt_text(Field::NativeBranch, commit.native_branch.as_deref());
    record.set_u64(Field::GraphManifestVersion, commit.graph_manifest_version);
    record.set_u64(Field::Generation, commit.generation);
    record.set_opt_text(Field::ParentCommitId, commit.parent_commit_id.as_deref());
    record.set_opt_text(
        Field::MergedParentCommitId,
        commit.merged_parent_commit_id.as_deref(),
    );
    record.set_opt_text(Field::ActorId, commit.actor_id.as_deref());
    record.set_i64(Field::CreatedAt, commit.created_at);
    match contract {
        StoredContract::Own(head) => {
            record.set_text(Field::SchemaIrHash, head.schema_ir_hash.clone());
            record.set_u64(
                Field::SchemaIdentityVersion,
                u64::from(head.schema_identity_version),
            );
            record.set_text(
                Field::SchemaIdentityDomain,
                head.schema_identity_domain.clone(),
            );
            record.set_opt_text(
                Field::SchemaContentHash,
                commit.schema_content_hash.as_deref(),
            );
        }
        StoredContract::None => {}
        StoredContract::Inherited => record.set_u64(Field::SchemaIdentityVersion, 0),
    }
    LogicalRow {
        object_id: commit.graph_commit_id.clone(),
        object_type: kind.into(),
        record,
        ..LogicalRow::default()
    }
}

/// Decode a `graph_commit` or `settled_commit` row standing in `version`.
pub fn decode_commit(row: &LogicalRow, version: u64) -> Result<StoredCommit> {
    require_null(row, TABLE_MASK | REPLACED_MASK, "a table or replaced")?;
    if row.object_id.is_empty() {
        return Err(Error::internal("a commit row has an empty object_id"));
    }
    let r = &row.record;
    let contract = match (
        r.text(Field::SchemaIrHash),
        r.u64(Field::SchemaIdentityVersion),
        r.text(Field::SchemaIdentityDomain),
    ) {
        (None, None, None) => StoredContract::None,
        (None, Some(0), None) => StoredContract::Inherited,
        (Some(hash), Some(identity_version), Some(domain)) => {
            let narrow = u32::try_from(identity_version)
                .ok()
                .filter(|v| *v > 0)
                .ok_or_else(|| {
                    Error::internal(format!(
                        "commit {}: schema_identity_version {identity_version} is no contract version",
                        row.object_id
                    ))
                })?;
            StoredContract::Own(ContractHead {
                schema_ir_hash: hash.to_string(),
                schema_identity_version: narrow,
                schema_identity_domain: domain.to_string(),
            })
        }
        _ => {
            return Err(Error::internal(format!(
                "commit {}: the schema identity is set in part only",
                row.object_id
            )));
        }
    };
    let content = r.text(Field::SchemaContentHash).map(str::to_string);
    if content.is_some() != matches!(contract, StoredContract::Own(_)) {
        return Err(Error::internal(format!(
            "commit {}: schema_content_hash must be set exactly when the contract is",
            row.object_id
        )));
    }
    let graph_manifest_version = want_u64(row, Field::GraphManifestVersion)?;
    if graph_manifest_version > version {
        return Err(Error::internal(format!(
            "commit {} is dated at version {graph_manifest_version}, above the version {version} it \
             stands in",
            row.object_id
        )));
    }
    let text = |field| r.text(field).map(str::to_string);
    Ok(StoredCommit {
        commit: Commit {
            graph_commit_id: row.object_id.clone(),
            schema_contract: match &contract {
                StoredContract::Own(head) => Some(head.clone()),
                StoredContract::None | StoredContract::Inherited => None,
            },
            schema_content_hash: content,
            graph_branch: text(Field::GraphBranch),
            native_branch: text(Field::NativeBranch),
            graph_manifest_version,
            generation: want_u64(row, Field::Generation)?,
            parent_commit_id: text(Field::ParentCommitId),
            merged_parent_commit_id: text(Field::MergedParentCommitId),
            actor_id: text(Field::ActorId),
            created_at: r
                .i64(Field::CreatedAt)
                .ok_or_else(|| missing(&row.object_id, "created_at"))?,
        },
        contract,
    })
}

/// Encode the contract row.
pub fn encode_contract(head: &ContractHead, source: &str, ir: &str) -> LogicalRow {
    let mut record = Record::default();
    record.set_text(Field::Metadata, head.to_json());
    LogicalRow {
        object_id: object_type::SCHEMA_CONTRACT.into(),
        object_type: object_type::SCHEMA_CONTRACT.into(),
        record,
        schema_source: Some(source.to_string()),
        schema_ir: Some(ir.to_string()),
    }
}

/// Decode the head of the contract row; the texts stay in the row.
pub fn decode_contract(row: &LogicalRow) -> Result<ContractHead> {
    require_id(row, object_type::SCHEMA_CONTRACT)?;
    require_null(
        row,
        !(1 << Field::Metadata as u32) & (TABLE_MASK | COMMIT_MASK | REPLACED_MASK),
        "a table, commit or replaced",
    )?;
    let text = want_text(row, Field::Metadata)?;
    serde_json::from_str(text).map_err(|e| {
        Error::internal(format!(
            "row '{}': the contract head is not valid JSON: {e}",
            row.object_id
        ))
    })
}

/// Require every field of `mask` to be null.
pub(super) fn require_null(row: &LogicalRow, mask: u32, what: &str) -> Result<()> {
    if row.record.all_null(mask) {
        return Ok(());
    }
    Err(Error::internal(format!(
        "row '{}' of type {} carries {what} field (null mask {:06x})",
        row.object_id,
        row.object_type,
        row.record.null_mask()
    )))
}

/// Require the derived key.
pub(super) fn require_id(row: &LogicalRow, expected: &str) -> Result<()> {
    if row.object_id == expected {
        return Ok(());
    }
    Err(Error::internal(format!(
        "row '{}' of type {} must have the key '{expected}'",
        row.object_id, row.object_type
    )))
}
