//! The packed `record` of stamps 12 and 13 (`docs/format/legacy-manifest.md` 2.2): eight fields and a
//! null mask.
//!
//! A **set** bit of `present` means that its field is null; the child then holds its filler (`""` or 0),
//! and anything else there is corruption. `table_key` is never null at these stamps: a row without a
//! table stores the empty string under a clear bit. Stamp 14 has another rule, so nothing is shared.

use arrow_array::{Array, StringArray, StructArray, UInt8Array, UInt64Array};

use crate::row::LogicalRow;

/// Bits of `present`, in stored order.
const LOCATION: Field = Field(0, "location");
const METADATA: Field = Field(1, "metadata");
const TABLE_KEY: Field = Field(2, "table_key");
const STABLE_TABLE_ID: Field = Field(3, "stable_table_id");
const TABLE_INCARNATION_ID: Field = Field(4, "table_incarnation_id");
const TABLE_VERSION: Field = Field(5, "table_version");
const TABLE_BRANCH: Field = Field(6, "table_branch");
const ROW_COUNT: Field = Field(7, "row_count");

/// A child of `record`: its bit, which is also its place, and its name.
#[derive(Clone, Copy)]
struct Field(usize, &'static str);

/// The children of one batch.
pub(crate) struct Packed<'a> {
    location: &'a StringArray,
    metadata: &'a StringArray,
    table_key: &'a StringArray,
    stable_table_id: &'a UInt64Array,
    table_incarnation_id: &'a UInt64Array,
    table_version: &'a UInt64Array,
    table_branch: &'a StringArray,
    row_count: &'a UInt64Array,
    present: &'a UInt8Array,
}

impl<'a> Packed<'a> {
    /// Take the children of a `record` column, which must be the nine of the format, without nulls.
    pub(crate) fn of(record: &'a StructArray) -> Result<Self, String> {
        if record.null_count() > 0 || record.columns().iter().any(|c| c.null_count() > 0) {
            return Err("the column record holds a null, which the format never stores".into());
        }
        Ok(Self {
            location: child(record, LOCATION)?,
            metadata: child(record, METADATA)?,
            table_key: child(record, TABLE_KEY)?,
            stable_table_id: child(record, STABLE_TABLE_ID)?,
            table_incarnation_id: child(record, TABLE_INCARNATION_ID)?,
            table_version: child(record, TABLE_VERSION)?,
            table_branch: child(record, TABLE_BRANCH)?,
            row_count: child(record, ROW_COUNT)?,
            present: child(record, Field(8, "present"))?,
        })
    }

    /// The fields of one row; key, type and texts of `row` stay as they are.
    pub(crate) fn fill(&self, at: usize, row: LogicalRow<'a>) -> Result<LogicalRow<'a>, String> {
        let present = self.present.value(at);
        let null = |field: Field| present & (1 << field.0) != 0;
        let text = |field: Field, array: &'a StringArray| match (null(field), array.value(at)) {
            (false, value) => Ok(Some(value)),
            (true, "") => Ok(None),
            (true, value) => Err(filler(field, &format!("'{value}'"))),
        };
        let number = |field: Field, array: &UInt64Array| match (null(field), array.value(at)) {
            (false, value) => Ok(Some(value)),
            (true, 0) => Ok(None),
            (true, value) => Err(filler(field, &value.to_string())),
        };
        Ok(LogicalRow {
            location: text(LOCATION, self.location)?,
            metadata: text(METADATA, self.metadata)?,
            table_key: text(TABLE_KEY, self.table_key)?.ok_or(
                "table_key is marked null, which stamps 12 and 13 never store (a row without a table \
                 has the empty text)",
            )?,
            stable_table_id: number(STABLE_TABLE_ID, self.stable_table_id)?,
            table_incarnation_id: number(TABLE_INCARNATION_ID, self.table_incarnation_id)?,
            table_version: number(TABLE_VERSION, self.table_version)?,
            table_branch: text(TABLE_BRANCH, self.table_branch)?,
            row_count: number(ROW_COUNT, self.row_count)?,
            ..row
        })
    }
}

fn filler(field: Field, value: &str) -> String {
    format!("{} is marked null but holds {value}", field.1)
}

fn child<A: Array + 'static>(record: &StructArray, field: Field) -> Result<&A, String> {
    let found = record.fields().get(field.0);
    let typed = record
        .columns()
        .get(field.0)
        .and_then(|array| array.as_any().downcast_ref::<A>());
    match (found, typed) {
        (Some(f), Some(array)) if f.name() == field.1 => Ok(array),
        _ => Err(format!(
            "child {} of the column record is not {} with the type of its format",
            field.0, field.1
        )),
    }
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
