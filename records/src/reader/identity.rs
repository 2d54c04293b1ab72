//! The id of a record: supplied, derived or new (`docs/format/tables-and-schema.md` 2.7 and 8.2).

use graph::model::table::TableKind;
use graph::schema::Vintage;
use ulid::{Generator, Ulid};

use super::data::Data;
use super::envelope::Envelope;
use crate::error::{RecordError, quoted};
use crate::key;
use crate::record::Record;
use crate::types::{TableType, Types};

/// The record of an envelope whose `data` has been read.
pub(super) fn record(
    types: &Types,
    envelope: Envelope,
    data: Data,
    line: u64,
    ulids: &mut Generator,
) -> Result<Record, RecordError> {
    let Some((index, table)) = envelope
        .table
        .and_then(|index| Some((index, types.tables().get(index)?)))
    else {
        return Err(RecordError::new("the record has no type"));
    };
    let build = || {
        let endpoints = endpoints(table, envelope.from, envelope.to)?;
        let supplied = supplied(envelope.id, data.id)?;
        let derived = key::derive(table, endpoints.as_ref(), &data.values)?;
        let alias = match (&supplied, &derived) {
            (Some(supplied), Some(derived)) if supplied != derived => {
                let accepted = types.vintage() == Vintage::Legacy
                    && table.kind == TableKind::Node
                    && key::denotes(table, &data.values, supplied);
                if !accepted {
                    return Err(contradiction(supplied, derived));
                }
                Some(supplied.clone())
            }
            _ => None,
        };
        let was_supplied = supplied.is_some();
        let id = derived.or(supplied).unwrap_or_else(|| {
            // Ascending in the order of the input; above what one millisecond holds, any other will do.
            ulids.generate().unwrap_or_else(|_| Ulid::new()).to_string()
        });
        Ok(Record {
            line,
            table: index,
            id,
            supplied: was_supplied,
            alias,
            endpoints,
            values: data.values,
        })
    };
    build().map_err(|error: RecordError| error.of(&table.table_key))
}

fn contradiction(supplied: &str, derived: &str) -> RecordError {
    RecordError::new(format!(
        "the id is {}, but the key of the record is {}: correct one of them, or leave the id out",
        quoted(supplied),
        quoted(derived)
    ))
}

fn supplied(top: Option<String>, inner: Option<String>) -> Result<Option<String>, RecordError> {
    let id = match (top, inner) {
        (Some(_), Some(_)) => {
            return Err(RecordError::new(
                "found an id at the top level and another in \"data\": keep the one at the top level",
            ));
        }
        (top, inner) => top.or(inner),
    };
    match id {
        Some(id) if id.is_empty() => Err(RecordError::new(
            "the id is an empty string: give it a value, or leave it out",
        )),
        id => Ok(id),
    }
}

fn endpoints(
    table: &TableType,
    from: Option<String>,
    to: Option<String>,
) -> Result<Option<(String, String)>, RecordError> {
    let both = match (table.kind, from, to) {
        (TableKind::Node, None, None) => return Ok(None),
        (TableKind::Node, ..) => {
            return Err(RecordError::new(
                "a node has no \"from\" and \"to\": remove them, or write \"edge\" instead of \"type\"",
            ));
        }
        (TableKind::Edge, Some(from), Some(to)) => (from, to),
        (TableKind::Edge, from, _) => {
            let name = if from.is_none() { "from" } else { "to" };
            return Err(RecordError::new(format!(
                "\"{name}\" is missing, expected the id of a node"
            )));
        }
    };
    for (name, id) in [("from", &both.0), ("to", &both.1)] {
        if id.is_empty() {
            return Err(RecordError::new(format!(
                "\"{name}\" is an empty string, expected the id of a node"
            )));
        }
    }
    Ok(Some(both))
}
