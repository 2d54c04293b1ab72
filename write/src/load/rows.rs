//! The records of a bounded load, by table and id.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use records::{BatchBuilder, Blob, Record, RecordReader, Types, Value};

use super::{Input, KEYED_BYTES, KEYED_ROWS, LoadOptions, Mode};
use crate::error::{Result, WriteError};

/// Rows between two progress reports.
pub(super) const REPORT_ROWS: u64 = 1_024;

/// The rows of one table, in input order.
pub(super) struct TableRows {
    /// Index into [`Types::tables`].
    pub table: usize,
    /// The rows as one batch of the declared columns.
    pub batch: RecordBatch,
    /// Ids in row order.
    pub ids: Vec<String>,
    /// Whether a stored row can have that id, in row order: one that was generated just now is new.
    pub may_exist: Vec<bool>,
    /// Lines in row order.
    pub lines: Vec<u64>,
    /// Endpoints in row order; empty for nodes.
    pub endpoints: Vec<(String, String)>,
}

/// Records by table, and the other spellings of keys among them.
pub(super) struct Records {
    /// By index into [`Types::tables`].
    pub tables: Vec<Vec<Record>>,
    aliases: HashMap<(usize, String), String>,
}

/// Read the whole input within the bounds of append and merge. A repeated id is a conflict when appending; when merging
/// the last one stays.
pub(super) fn read(input: &Input, types: &Types, options: &LoadOptions) -> Result<Records> {
    let mut tables: Vec<Vec<Record>> = types.tables().iter().map(|_| Vec::new()).collect();
    let mut seen: Vec<HashMap<String, usize>> = vec![HashMap::new(); tables.len()];
    let mut aliases: HashMap<(usize, String), String> = HashMap::new();
    let mut count = 0;
    for record in RecordReader::new(input.open()?, types) {
        let record = record?;
        count += 1;
        if count % REPORT_ROWS == 0 {
            (options.on_rows)(count);
        }
        let table = &types.tables()[record.table];
        refuse_external(&record, types, options.external_blobs)?;
        if let Some(alias) = &record.alias {
            add_alias(&mut aliases, &record, alias, types)?;
        }
        let rows = &mut tables[record.table];
        // The id of a keyed edge is final only once its endpoints are.
        if let Some(at) = seen[record.table].get(&record.id).copied()
            && table.endpoints.is_none()
        {
            if options.mode == Mode::Append {
                return Err(repeated(&table.table_key, &record, rows[at].line));
            }
            rows[at] = record;
            continue;
        }
        seen[record.table].insert(record.id.clone(), rows.len());
        rows.push(record);
        if rows.len() as u64 > KEYED_ROWS {
            return Err(over(
                format!("the number of rows of {} in one load", table.table_key),
                KEYED_ROWS,
                rows.len() as u64,
            ));
        }
    }
    (options.on_rows)(count);
    Ok(Records { tables, aliases })
}

impl Records {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(Vec::is_empty)
    }

    /// The rows, ascending by table.
    pub fn finish(self, types: &Types, mode: Mode) -> Result<Vec<TableRows>> {
        self.tables
            .into_iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(table, rows)| finish(table, rows, types, &self.aliases, mode))
            .collect()
    }
}

fn repeated(table_key: &str, record: &Record, earlier: u64) -> WriteError {
    WriteError::KeyConflict {
        table_key: table_key.to_string(),
        key: record.id.clone(),
        line: Some(record.line),
        earlier: Some(earlier),
    }
}

pub(super) fn over(resource: String, limit: u64, actual: u64) -> WriteError {
    WriteError::ResourceLimitExceeded {
        resource,
        limit,
        actual,
        advice: "nothing was written; split the input into several loads, or replace whole types with --mode \
                 overwrite"
            .into(),
    }
}

/// Another spelling of a node's key; edges of the input may use it.
pub(super) fn add_alias(
    aliases: &mut HashMap<(usize, String), String>,
    record: &Record,
    alias: &str,
    types: &Types,
) -> Result<()> {
    let key = (record.table, alias.to_string());
    match aliases.insert(key, record.id.clone()) {
        Some(other) if other != record.id => Err(WriteError::invalid(format!(
            "line {}: {} gives the id \"{alias}\" to \"{}\" and to \"{other}\"; edges that use it could mean either",
            record.line,
            types.tables()[record.table].table_key,
            record.id
        ))),
        _ => Ok(()),
    }
}

/// Point the endpoints of an edge at canonical ids.
pub(super) fn respell(
    record: &mut Record,
    types: &Types,
    aliases: &HashMap<(usize, String), String>,
) -> Result<()> {
    let table = &types.tables()[record.table];
    if aliases.is_empty() {
        return Ok(());
    }
    if let (Some((from, to)), Some((src, dst))) = (table.endpoints, record.endpoints.as_mut()) {
        let mut changed = false;
        for (node, id) in [(from, src), (to, dst)] {
            if let Some(canonical) = aliases.get(&(node, id.clone())) {
                id.clone_from(canonical);
                changed = true;
            }
        }
        if changed {
            record.rederive(table)?;
        }
    }
    Ok(())
}

/// Refuse a blob that lies outside of the graph unless `allowed`.
pub(super) fn refuse_external(record: &Record, types: &Types, allowed: bool) -> Result<()> {
    if allowed {
        return Ok(());
    }
    let table = &types.tables()[record.table];
    for (property, value) in table.properties.iter().zip(&record.values) {
        if let Value::Blob(Blob::External(uri)) = value {
            return Err(WriteError::invalid(format!(
                "line {}: {}.{} names the object '{uri}' outside of the graph; write its bytes as \"base64:...\", or \
                 load with --external-blobs: append and merge then copy its bytes, overwrite keeps the reference",
                record.line, table.table_key, property.name
            )));
        }
    }
    Ok(())
}

fn finish(
    table: usize,
    rows: Vec<Record>,
    types: &Types,
    aliases: &HashMap<(usize, String), String>,
    mode: Mode,
) -> Result<TableRows> {
    let declared = &types.tables()[table];
    let mut kept: Vec<Record> = Vec::with_capacity(rows.len());
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(rows.len());
    for mut record in rows {
        respell(&mut record, types, aliases)?;
        match seen.get(&record.id).copied() {
            None => {
                seen.insert(record.id.clone(), kept.len());
                kept.push(record);
            }
            Some(at) if mode == Mode::Append => {
                return Err(repeated(&declared.table_key, &record, kept[at].line));
            }
            Some(at) => kept[at] = record,
        }
    }
    let mut builder = BatchBuilder::new(declared);
    let mut ids = Vec::with_capacity(kept.len());
    let mut may_exist = Vec::with_capacity(kept.len());
    let mut endpoints = Vec::new();
    for record in kept {
        ids.push(record.id.clone());
        may_exist.push(record.supplied || declared.key.is_some());
        endpoints.extend(record.endpoints.clone());
        builder.push(record)?;
        if builder.bytes() as u64 > KEYED_BYTES {
            return Err(over(
                format!(
                    "the size in bytes of the rows of {} in one load",
                    declared.table_key
                ),
                KEYED_BYTES,
                builder.bytes() as u64,
            ));
        }
    }
    let (batch, lines) = builder.finish()?;
    Ok(TableRows {
        table,
        batch,
        ids,
        may_exist,
        lines,
        endpoints,
    })
}
