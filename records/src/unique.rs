//! What `@unique` compares (`docs/format/tables-and-schema.md` 4.5).

use arrow_array::RecordBatch;
use graph::schema::SystemRole;
use graph::{Error, Result};

use crate::cell::{Cell, cell, column, id, vintage_of};
use crate::error::RecordError;
use crate::types::{Member, TableType, Types};
use crate::value::{Value, canonical_text};

/// Texts that two rows of `table` must not share under `constraint` (one of [`TableType::unique`]), one per row;
/// `None` when a member is null, which conflicts with nothing. Columns are matched by name, so `batch` needs
/// only those of the members, in any order. Texts of different constraints are not comparable.
///
/// Errors: [`Error::Refused`] for a member of type Blob, whose bytes a scan does not hold, and for a float that
/// is not finite; [`Error::Internal`] when a member's column is missing or of another type, or an id is null.
pub fn unique_texts(
    types: &Types,
    table: &TableType,
    constraint: &[Member],
    batch: &RecordBatch,
) -> Result<Vec<Option<String>>> {
    for member in constraint {
        if let Member::Property(index) = *member
            && let Some(property) = table.properties.get(index)
            && property.is_blob()
        {
            return Err(Error::refused(format!(
                "{}.{}: @unique over a Blob cannot be checked: drop the constraint",
                table.table_key, property.name
            )));
        }
    }
    let row = |row| match constraint {
        [member] => member_text(types, table, *member, batch, row),
        members => {
            let mut texts = Vec::with_capacity(members.len());
            for member in members {
                match member_text(types, table, *member, batch, row)? {
                    Some(text) => texts.push(text),
                    None => return Ok(None),
                }
            }
            json(&texts).map(Some)
        }
    };
    (0..batch.num_rows()).map(row).collect()
}

fn member_text(
    types: &Types,
    table: &TableType,
    member: Member,
    batch: &RecordBatch,
    row: usize,
) -> Result<Option<String>> {
    let internal = |e: RecordError| Error::internal(e.of(&table.table_key).to_string());
    let mut hint = 0;
    match member {
        Member::System(role) => {
            let name = system_column(types, table, role, batch);
            let text = id(batch, name, row, &mut hint).map_err(internal)?;
            Ok(Some(text.to_string()))
        }
        Member::Property(index) => {
            let property = table.properties.get(index).ok_or_else(|| {
                internal(RecordError::new(format!(
                    "the type has no property {index}"
                )))
            })?;
            let array = column(batch, &property.name, &mut hint).map_err(internal)?;
            let internal = |e: RecordError| internal(e.on(&property.name));
            match cell(array, &property.prop_type, row).map_err(internal)? {
                Cell::Items(items) => {
                    let texts = items
                        .cells()
                        .map(|item| text(&item.map_err(internal)?))
                        .collect::<Result<Vec<Option<String>>>>();
                    Ok(Some(json(
                        &texts.map_err(|e| named(e, table, &property.name))?,
                    )?))
                }
                cell => text(&cell).map_err(|e| named(e, table, &property.name)),
            }
        }
    }
}

/// The spelling of a system column in `batch`, which may hold the endpoints alone.
fn system_column(
    types: &Types,
    table: &TableType,
    role: SystemRole,
    batch: &RecordBatch,
) -> &'static str {
    let declared = types.vintage().column(role);
    match batch.schema_ref().column_with_name(declared) {
        Some(_) => declared,
        None => vintage_of(batch, table, types.vintage()).column(role),
    }
}

fn named(error: Error, table: &TableType, property: &str) -> Error {
    match error {
        Error::Refused(message) => {
            Error::Refused(format!("{}.{property}: {message}", table.table_key))
        }
        other => other,
    }
}

fn json(texts: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(texts).map_err(|e| Error::internal(e.to_string()))
}

fn text(cell: &Cell<'_>) -> Result<Option<String>> {
    let value = match *cell {
        Cell::Text(text) => return Ok(Some(text.to_string())),
        Cell::Null | Cell::Items(_) => return Ok(None),
        Cell::Bool(value) => Value::Bool(value),
        Cell::I32(value) => Value::I32(value),
        Cell::I64(value) => Value::I64(value),
        Cell::U32(value) => Value::U32(value),
        Cell::U64(value) => Value::U64(value),
        Cell::F32(value) => Value::F32(value),
        Cell::F64(value) => Value::F64(value),
        Cell::Date(value) => Value::Date(value),
        Cell::DateTime(value) => Value::DateTime(value),
    };
    canonical_text(&value).map_err(|e| Error::refused(e.to_string()))
}
