//! A stored row as a line of an export (`docs/format/tables-and-schema.md` 8.1).

use arrow_array::RecordBatch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use graph::model::table::TableKind;
use graph::schema::SystemRole;
use serde::Serialize;

use crate::calendar::{write_date, write_date_time};
use crate::cell::{Cell, cell, column, id, vintage_of};
use crate::error::{RecordError, quoted};
use crate::types::{Property, TableType, Types};
use crate::value::BASE64;

/// A blob of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobCell<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// The URI of a whole external object. A range of one has no line (8.1).
    External(&'a str),
}

/// Prints the rows of one table.
#[derive(Debug)]
pub struct LineWriter<'t> {
    types: &'t Types,
    table: &'t TableType,
    /// `{"type":"Target","id":`
    head: Vec<u8>,
    /// `"ra_deg":` for each property; `None` where the rows do not have it.
    names: Vec<Option<Vec<u8>>>,
    blobs: usize,
}

impl<'t> LineWriter<'t> {
    /// A writer for rows of `table`, which is one of `types`.
    pub fn new(types: &'t Types, table: &'t TableType) -> Self {
        Self::of_image(types, table, |_| true)
    }

    /// A writer for rows of an image from before some properties of `table` were declared: those that `has` does not
    /// know are left out of every line.
    pub fn of_image(
        types: &'t Types,
        table: &'t TableType,
        has: impl Fn(&Property) -> bool,
    ) -> Self {
        let kind = match table.kind {
            TableKind::Node => "type",
            TableKind::Edge => "edge",
        };
        let name = serde_json::Value::from(table.name.as_str());
        let named = |p: &Property| format!("{}:", serde_json::Value::from(p.name.as_str()));
        Self {
            types,
            table,
            head: format!("{{\"{kind}\":{name},\"id\":").into_bytes(),
            names: table
                .properties
                .iter()
                .map(|p| has(p).then(|| named(p).into_bytes()))
                .collect(),
            blobs: table
                .properties
                .iter()
                .filter(|p| p.is_blob() && has(p))
                .count(),
        }
    }

    /// Append the line of row `row` of `batch`, LF included. Columns are matched by name; blob columns may be
    /// missing, because their values come from `blobs`: one per Blob property of the rows in property order,
    /// `None` for null.
    ///
    /// Errors, which leave `out` as it was: a Date or DateTime outside of the years 0 to 9999, a missing or
    /// mistyped column, a null id, another number of `blobs`.
    pub fn line(
        &self,
        batch: &RecordBatch,
        row: usize,
        blobs: &[Option<BlobCell<'_>>],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let start = out.len();
        self.append(batch, row, blobs, out).map_err(|e| {
            out.truncate(start);
            e.of(&self.table.table_key)
        })
    }

    fn append(
        &self,
        batch: &RecordBatch,
        row: usize,
        blobs: &[Option<BlobCell<'_>>],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        if blobs.len() != self.blobs {
            return Err(RecordError::new(format!(
                "{} blobs for a row, expected {}",
                blobs.len(),
                self.blobs
            )));
        }
        let mut hint = 0;
        let vintage = vintage_of(batch, self.table, self.types.vintage());
        let mut system = |role| id(batch, vintage.column(role), row, &mut hint);
        let own = system(SystemRole::Id)?;
        out.extend_from_slice(&self.head);
        json(own, out)?;
        if self.table.kind == TableKind::Edge {
            out.extend_from_slice(b",\"from\":");
            json(system(SystemRole::Src)?, out)?;
            out.extend_from_slice(b",\"to\":");
            json(system(SystemRole::Dst)?, out)?;
        }
        out.extend_from_slice(b",\"data\":{");
        let data = out.len();
        let mut blobs = blobs.iter();
        for (property, name) in self.table.properties.iter().zip(&self.names) {
            let Some(name) = name else { continue };
            let before = out.len();
            if before > data {
                out.push(b',');
            }
            out.extend_from_slice(name);
            let printed = if property.is_blob() {
                blob(blobs.next().copied().flatten(), out)
            } else {
                let array = column(batch, &property.name, &mut hint)?;
                cell(array, &property.prop_type, row)
                    .and_then(|cell| value(cell, out))
                    .map_err(|e| of_row(e, own).on(&property.name))?
            };
            if !printed {
                out.truncate(before);
            }
        }
        out.extend_from_slice(b"}}\n");
        Ok(())
    }
}

fn of_row(mut error: RecordError, id: &str) -> RecordError {
    error.message = format!("row {}: {}", quoted(id), error.message);
    error
}

/// False when there is nothing to print.
fn value(cell: Cell<'_>, out: &mut Vec<u8>) -> Result<bool, RecordError> {
    let items = match cell {
        Cell::Null => return Ok(false),
        Cell::Items(items) => items,
        cell => return scalar(&cell, out).map(|()| true),
    };
    out.push(b'[');
    for (index, item) in items.cells().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        scalar(&item?, out)?;
    }
    out.push(b']');
    Ok(true)
}

fn scalar(cell: &Cell<'_>, out: &mut Vec<u8>) -> Result<(), RecordError> {
    match *cell {
        // A list inside a list does not exist.
        Cell::Null | Cell::Items(_) => json(&(), out),
        Cell::Text(text) => json(text, out),
        Cell::Bool(value) => json(&value, out),
        Cell::I32(value) => json(&value, out),
        Cell::I64(value) => json(&value, out),
        Cell::U32(value) => json(&value, out),
        Cell::U64(value) => json(&value, out),
        Cell::F32(value) => json(&value, out),
        Cell::F64(value) => json(&value, out),
        Cell::Date(days) => calendar(out, |out| write_date(days, out), "Date", &days),
        Cell::DateTime(millis) => {
            calendar(out, |out| write_date_time(millis, out), "DateTime", &millis)
        }
    }
}

fn calendar(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    name: &str,
    count: &dyn std::fmt::Display,
) -> Result<(), RecordError> {
    out.push(b'"');
    write(out).ok_or_else(|| {
        RecordError::new(format!(
            "the stored {name} {count} is outside of the years 0 to 9999 and has no text: correct the value"
        ))
    })?;
    out.push(b'"');
    Ok(())
}

fn blob(cell: Option<BlobCell<'_>>, out: &mut Vec<u8>) -> bool {
    match cell {
        None => return false,
        Some(BlobCell::External(uri)) => {
            // Into a vector nothing can fail but text that is no text.
            let _ = json(uri, out);
        }
        Some(BlobCell::Bytes(bytes)) => {
            out.push(b'"');
            out.extend_from_slice(BASE64.as_bytes());
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            out.push(b'"');
        }
    }
    true
}

fn json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), RecordError> {
    serde_json::to_writer(out, value).map_err(|e| RecordError::new(e.to_string()))
}
