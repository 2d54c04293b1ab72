//! Rows of the flat shape, encoded for a merge insert (`docs/format/legacy-manifest.md` 2.1, 3).

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array, new_null_array};
use arrow_schema::Schema;
use graph::model::{Pin, TableIdentity};
use graph::{Error, Result};
use serde::Serialize;

use crate::row::{LegacyCommit, Registration};

/// One row to be written; columns that are `None` are null.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRow {
    /// Primary key.
    pub object_id: String,
    /// Row type.
    pub object_type: &'static str,
    /// Table path.
    pub location: Option<String>,
    /// JSON by row type.
    pub metadata: Option<String>,
    /// Alias; empty on rows without a table.
    pub table_key: String,
    /// Table identity.
    pub identity: Option<TableIdentity>,
    /// Table version, sealed number or `__manifest` version, by row type.
    pub table_version: Option<u64>,
    /// Native table ref on pins, logical branch on commits.
    pub table_branch: Option<String>,
    /// Rows of a pin.
    pub row_count: Option<u64>,
}

#[derive(Serialize)]
struct CommitJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_commit_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_parent_commit_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_id: Option<&'a str>,
    created_at: i64,
}

#[derive(Serialize)]
struct HeadJson<'a> {
    head_commit_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_commit_id: Option<&'a str>,
}

/// Serializing strings and integers into text has no failing path.
fn json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

impl NewRow {
    pub(super) fn table(registration: &Registration) -> Self {
        Self {
            object_id: format!("table:{}", registration.identity),
            object_type: "table",
            location: Some(registration.table_path.clone()),
            table_key: registration.table_key.clone(),
            identity: Some(registration.identity),
            ..Self::default()
        }
    }

    pub(super) fn pin(identity: TableIdentity, table_key: &str, clock: u64, pin: &Pin) -> Self {
        Self {
            object_id: format!("table_version:{identity}:{clock:020}"),
            object_type: "table_version",
            metadata: Some(pin.metadata.to_json()),
            table_key: table_key.to_string(),
            identity: Some(identity),
            table_version: Some(pin.table_version),
            table_branch: pin.table_branch.clone(),
            row_count: Some(pin.row_count),
            ..Self::default()
        }
    }

    pub(super) fn tombstone(
        identity: TableIdentity,
        table_key: &str,
        clock: u64,
        version: u64,
    ) -> Self {
        Self {
            object_id: format!("table_tombstone:{identity}:{clock:020}"),
            object_type: "table_tombstone",
            table_key: table_key.to_string(),
            identity: Some(identity),
            table_version: Some(version),
            ..Self::default()
        }
    }

    pub(super) fn commit(commit: &LegacyCommit) -> Self {
        Self {
            object_id: commit.id.clone(),
            object_type: "graph_commit",
            metadata: json(&CommitJson {
                parent_commit_id: commit.parent.as_deref(),
                merged_parent_commit_id: commit.merged_parent.as_deref(),
                actor_id: commit.actor.as_deref(),
                created_at: commit.created_at,
            }),
            table_version: Some(commit.version),
            table_branch: commit.branch.clone(),
            ..Self::default()
        }
    }

    pub(super) fn head(branch: &str, commit: &LegacyCommit) -> Self {
        Self {
            object_id: format!("graph_head:{branch}"),
            object_type: "graph_head",
            metadata: json(&HeadJson {
                head_commit_id: &commit.id,
                parent_commit_id: commit.parent.as_deref(),
            }),
            ..Self::default()
        }
    }
}

/// Encode rows under the stored schema, columns by name; a schema with another column is refused.
pub(super) fn encode(rows: &[NewRow], schema: Schema) -> Result<RecordBatch> {
    let text = |f: &dyn Fn(&NewRow) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(f).collect::<StringArray>())
    };
    let number = |f: &dyn Fn(&NewRow) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(f).collect::<UInt64Array>())
    };
    let mut columns = Vec::new();
    for field in schema.fields() {
        columns.push(match field.name().as_str() {
            "object_id" => text(&|r| Some(&r.object_id)),
            "object_type" => text(&|r| Some(r.object_type)),
            "location" => text(&|r| r.location.as_deref()),
            "metadata" => text(&|r| r.metadata.as_deref()),
            "base_objects" => new_null_array(field.data_type(), rows.len()),
            "table_key" => text(&|r| Some(&r.table_key)),
            "stable_table_id" => number(&|r| r.identity.map(|i| i.stable_table_id)),
            "table_incarnation_id" => number(&|r| r.identity.map(|i| i.table_incarnation_id)),
            "table_version" => number(&|r| r.table_version),
            "table_branch" => text(&|r| r.table_branch.as_deref()),
            "row_count" => number(&|r| r.row_count),
            other => {
                return Err(Error::refused(format!(
                    "__manifest has the column {other}, which this build does not write"
                )));
            }
        });
    }
    RecordBatch::try_new(Arc::new(schema), columns)
        .map_err(|e| Error::internal(format!("rows of __manifest: {e}")))
}
