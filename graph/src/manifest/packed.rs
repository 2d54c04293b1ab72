//! The packed `record` column: 24 children and a null mask (`docs/format/manifest-v14.md` 2).
//!
//! A set bit of `present` means that the field is null; the child then holds its filler (`""` or 0).

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, StructArray, UInt32Array};
use arrow_schema::{DataType, Field as ArrowField, Fields};

use crate::error::{Error, Result};

/// The children of `record`, by bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Field {
    Location = 0,
    Metadata,
    TableKey,
    StableTableId,
    TableIncarnationId,
    TableVersion,
    TableBranch,
    RowCount,
    ManifestVersion,
    DroppedAt,
    GraphBranch,
    NativeBranch,
    GraphManifestVersion,
    Generation,
    ParentCommitId,
    MergedParentCommitId,
    ActorId,
    CreatedAt,
    SchemaIrHash,
    SchemaIdentityVersion,
    SchemaIdentityDomain,
    SchemaContentHash,
    ReplacedAt,
    RegisteredAt,
}

/// How a child is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    U64,
    I64,
}

/// Number of fields; `present` is the child after the last.
pub const FIELD_COUNT: usize = 24;
/// Bits of the table fields.
pub const TABLE_MASK: u32 = 0x0003FF;
/// Bits of the commit fields.
pub const COMMIT_MASK: u32 = 0x3F_FC00;
/// Bits of the replaced-table fields.
pub const REPLACED_MASK: u32 = 0xC0_0000;

const CHILDREN: [(&str, Kind); FIELD_COUNT] = [
    ("location", Kind::Text),
    ("metadata", Kind::Text),
    ("table_key", Kind::Text),
    ("stable_table_id", Kind::U64),
    ("table_incarnation_id", Kind::U64),
    ("table_version", Kind::U64),
    ("table_branch", Kind::Text),
    ("row_count", Kind::U64),
    ("manifest_version", Kind::U64),
    ("dropped_at", Kind::U64),
    ("graph_branch", Kind::Text),
    ("native_branch", Kind::Text),
    ("graph_manifest_version", Kind::U64),
    ("generation", Kind::U64),
    ("parent_commit_id", Kind::Text),
    ("merged_parent_commit_id", Kind::Text),
    ("actor_id", Kind::Text),
    ("created_at", Kind::I64),
    ("schema_ir_hash", Kind::Text),
    ("schema_identity_version", Kind::U64),
    ("schema_identity_domain", Kind::Text),
    ("schema_content_hash", Kind::Text),
    ("replaced_at", Kind::U64),
    ("registered_at", Kind::U64),
];

/// The name of a field as stored.
pub fn field_name(field: Field) -> &'static str {
    CHILDREN[field as usize].0
}

/// A non-null field value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Utf8 children.
    Text(String),
    /// UInt64 children.
    U64(u64),
    /// The one Int64 child.
    I64(i64),
}

/// The logical fields of one row; `None` is null.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    values: [Option<Value>; FIELD_COUNT],
}

impl Record {
    /// The field, if it is a text.
    pub fn text(&self, field: Field) -> Option<&str> {
        match &self.values[field as usize] {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The field, if it is an unsigned number.
    pub fn u64(&self, field: Field) -> Option<u64> {
        match self.values[field as usize] {
            Some(Value::U64(n)) => Some(n),
            _ => None,
        }
    }

    /// The field, if it is a signed number.
    pub fn i64(&self, field: Field) -> Option<i64> {
        match self.values[field as usize] {
            Some(Value::I64(n)) => Some(n),
            _ => None,
        }
    }

    /// Set a text field.
    pub fn set_text(&mut self, field: Field, value: impl Into<String>) {
        self.values[field as usize] = Some(Value::Text(value.into()));
    }

    /// Set a text field, or leave it null.
    pub fn set_opt_text(&mut self, field: Field, value: Option<&str>) {
        self.values[field as usize] = value.map(|v| Value::Text(v.to_string()));
    }

    /// Set an unsigned field.
    pub fn set_u64(&mut self, field: Field, value: u64) {
        self.values[field as usize] = Some(Value::U64(value));
    }

    /// Set the signed field.
    pub fn set_i64(&mut self, field: Field, value: i64) {
        self.values[field as usize] = Some(Value::I64(value));
    }

    /// The mask as stored: a bit is set when its field is null.
    pub fn null_mask(&self) -> u32 {
        self.values
            .iter()
            .enumerate()
            .filter(|(_, v)| v.is_none())
            .fold(0, |mask, (i, _)| mask | (1 << i))
    }

    /// Whether every field of `mask` is null.
    pub fn all_null(&self, mask: u32) -> bool {
        self.null_mask() & mask == mask
    }
}

/// Arrow children of `record`, in order, all non-null.
pub fn arrow_fields() -> Fields {
    CHILDREN
        .iter()
        .map(|(name, kind)| {
            let data_type = match kind {
                Kind::Text => DataType::Utf8,
                Kind::U64 => DataType::UInt64,
                Kind::I64 => DataType::Int64,
            };
            ArrowField::new(*name, data_type, false)
        })
        .chain([ArrowField::new("present", DataType::UInt32, false)])
        .collect()
}

/// Encode records as the struct column: nulls become fillers, the mask goes last.
pub fn encode(records: &[&Record]) -> Result<StructArray> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(FIELD_COUNT + 1);
    for (index, (name, kind)) in CHILDREN.iter().enumerate() {
        let wrong = |value: &Value| Error::internal(format!("field {name} cannot hold {value:?}"));
        columns.push(match kind {
            Kind::Text => {
                let mut builder = StringBuilder::new();
                for record in records {
                    match &record.values[index] {
                        None => builder.append_value(""),
                        Some(Value::Text(text)) => builder.append_value(text),
                        Some(other) => return Err(wrong(other)),
                    }
                }
                Arc::new(builder.finish())
            }
            Kind::U64 => {
                let mut builder = UInt64Builder::with_capacity(records.len());
                for record in records {
                    match &record.values[index] {
                        None => builder.append_value(0),
                        Some(Value::U64(n)) => builder.append_value(*n),
                        Some(other) => return Err(wrong(other)),
                    }
                }
                Arc::new(builder.finish())
            }
            Kind::I64 => {
                let mut builder = Int64Builder::with_capacity(records.len());
                for record in records {
                    match &record.values[index] {
                        None => builder.append_value(0),
                        Some(Value::I64(n)) => builder.append_value(*n),
                        Some(other) => return Err(wrong(other)),
                    }
                }
                Arc::new(builder.finish())
            }
        });
    }
    columns.push(Arc::new(UInt32Array::from_iter_values(
        records.iter().map(|r| r.null_mask()),
    )));
    StructArray::try_new(arrow_fields(), columns, None)
        .map_err(|e| Error::internal(format!("cannot build the record column: {e}")))
}

/// Decode the struct column. Refuses ([`Error::Internal`]) other children, a null child, and a set bit
/// over a value that is not the filler. Bits 24 to 31 are not examined.
pub fn decode(column: &StructArray) -> Result<Vec<Record>> {
    let expected = arrow_fields();
    let found = column.fields();
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(expected.iter())
            .all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
    if !same {
        return Err(Error::internal(format!(
            "the record column of __manifest has children [{}], expected those of stamp 14",
            found
                .iter()
                .map(|f| f.name().as_str())
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    if column.null_count() > 0 || column.columns().iter().any(|c| c.null_count() > 0) {
        return Err(Error::internal(
            "the record column of __manifest holds a null, which the format never stores",
        ));
    }
    let present = column.column(FIELD_COUNT).as_primitive::<UInt32Type>();
    let mut records = vec![Record::default(); column.len()];
    for (index, (name, kind)) in CHILDREN.iter().enumerate() {
        let child = column.column(index);
        for (row, record) in records.iter_mut().enumerate() {
            let value = match kind {
                Kind::Text => Value::Text(child.as_string::<i32>().value(row).to_string()),
                Kind::U64 => Value::U64(child.as_primitive::<UInt64Type>().value(row)),
                Kind::I64 => Value::I64(child.as_primitive::<Int64Type>().value(row)),
            };
            if present.value(row) & (1 << index) == 0 {
                record.values[index] = Some(value);
            } else if !is_filler(&value) {
                return Err(Error::internal(format!(
                    "row {row}: field {name} is marked null but holds {value:?}"
                )));
            }
        }
    }
    Ok(records)
}

fn is_filler(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.is_empty(),
        Value::U64(n) => *n == 0,
        Value::I64(n) => *n == 0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_all_fields_once() {
        assert_eq!(TABLE_MASK | COMMIT_MASK | REPLACED_MASK, 0xFF_FFFF);
        assert_eq!(TABLE_MASK & COMMIT_MASK, 0);
        assert_eq!(COMMIT_MASK & REPLACED_MASK, 0);
    }

    #[test]
    fn worked_masks() {
        let mut bare = Record::default();
        bare.set_text(Field::Location, "nodes/x");
        bare.set_text(Field::TableKey, "node:A");
        bare.set_u64(Field::StableTableId, 1);
        bare.set_u64(Field::TableIncarnationId, 1);
        assert_eq!(bare.null_mask(), 0xFF_FFE2);
        let mut pinned = bare.clone();
        pinned.set_text(Field::Metadata, "{}");
        pinned.set_u64(Field::TableVersion, 1);
        pinned.set_u64(Field::RowCount, 0);
        pinned.set_u64(Field::ManifestVersion, 1);
        assert_eq!(pinned.null_mask(), 0xFF_FE40);
        let mut dropped = bare;
        dropped.set_u64(Field::TableVersion, 1);
        dropped.set_u64(Field::DroppedAt, 2);
        assert_eq!(dropped.null_mask(), 0xFF_FDC2);
        let mut contract = Record::default();
        contract.set_text(Field::Metadata, "{}");
        assert_eq!(contract.null_mask(), 0xFF_FFFD);
    }

    #[test]
    fn empty_text_and_null_differ_after_a_round_trip() {
        let mut a = Record::default();
        a.set_text(Field::ActorId, "");
        a.set_u64(Field::RowCount, 0);
        a.set_i64(Field::CreatedAt, -5);
        let rows = vec![a, Record::default()];
        assert_eq!(
            decode(&encode(&rows.iter().collect::<Vec<_>>()).unwrap()).unwrap(),
            rows
        );
    }

    #[test]
    fn a_set_bit_over_a_value_is_refused() {
        let mut a = Record::default();
        a.set_text(Field::ActorId, "alice");
        let column = encode(&[&a]).unwrap();
        let mut columns = column.columns().to_vec();
        columns[FIELD_COUNT] = Arc::new(UInt32Array::from(vec![0xFF_FFFF]));
        let damaged = StructArray::try_new(arrow_fields(), columns, None).unwrap();
        let error = decode(&damaged).unwrap_err().to_string();
        assert!(error.contains("actor_id"), "{error}");
    }
}
