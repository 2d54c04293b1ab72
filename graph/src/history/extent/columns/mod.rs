//! The Arrow columns of an extent (`docs/format/history.md` 3.1 to 3.3).
//!
//! `tables` comes first in the file so that the lineage columns lie next to the footer. Children of the
//! packed `record` are never null in Arrow: a logical null is a filler value with its bit set in
//! `present`.

mod from_rows;
mod to_rows;

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

pub(super) use from_rows::to_batch;
pub(super) use to_rows::{commits, records, validate};

use crate::error::{Error, Result};

/// The three columns in file order.
pub(super) const TABLES: &str = "tables";
/// Commit id column.
pub(super) const COMMIT_ID: &str = "graph_commit_id";
/// Packed commit column.
pub(super) const RECORD: &str = "record";

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn number(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::UInt64, nullable)
}

static TABLE_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        text("location", false),
        text("metadata", true),
        text("table_key", false),
        number("stable_table_id", false),
        number("table_incarnation_id", false),
        number("table_version", true),
        text("table_branch", true),
        number("row_count", true),
        number("manifest_version", true),
        number("dropped_at", true),
    ])
});

static RECORD_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        text("graph_branch", false),
        text("native_branch", false),
        number("graph_manifest_version", false),
        number("generation", false),
        text("parent_commit_id", false),
        text("merged_parent_commit_id", false),
        text("actor_id", false),
        Field::new("created_at", DataType::Int64, false),
        text("schema_ir_hash", false),
        number("schema_identity_version", false),
        text("schema_identity_domain", false),
        text("schema_content_hash", false),
        Field::new("present", DataType::UInt32, false),
    ])
});

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let item = Field::new("item", DataType::Struct(TABLE_FIELDS.clone()), false);
    let record = Field::new(RECORD, DataType::Struct(RECORD_FIELDS.clone()), false)
        .with_metadata([("lance-encoding:packed".to_string(), "true".to_string())].into());
    Arc::new(Schema::new(vec![
        Field::new(TABLES, DataType::List(Arc::new(item)), false),
        text(COMMIT_ID, false),
        record,
    ]))
});

/// The schema of every extent, columns in file order.
pub(super) fn schema() -> &'static SchemaRef {
    &SCHEMA
}

/// Whether two types agree in everything but field metadata.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => same_fields(a, b),
        (DataType::List(a), DataType::List(b)) => same_field(a, b),
        _ => a == b,
    }
}

fn same_field(a: &Field, b: &Field) -> bool {
    a.name() == b.name()
        && a.is_nullable() == b.is_nullable()
        && same_type(a.data_type(), b.data_type())
}

fn same_fields(a: &Fields, b: &Fields) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_field(a, b))
}

/// Require the schema of a stored file to be [`schema`], field metadata aside.
pub(super) fn check_schema(object: &str, stored: &Schema) -> Result<()> {
    if same_fields(stored.fields(), SCHEMA.fields()) {
        return Ok(());
    }
    let columns: Vec<String> = stored
        .fields()
        .iter()
        .map(|f| {
            format!(
                "{} {}{}",
                f.name(),
                f.data_type(),
                if f.is_nullable() { "?" } else { "" }
            )
        })
        .collect();
    Err(Error::internal(format!(
        "{object} does not have the columns of an extent but: {}",
        columns.join(", ")
    )))
}
