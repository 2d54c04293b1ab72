//! Records to columns (`docs/format/history.md` 3.2 and 3.3).

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, Int64Array, ListArray, RecordBatch, StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use super::{RECORD_FIELDS, SCHEMA, TABLE_FIELDS};
use crate::error::{Error, Result};
use crate::model::{Commit, HistoryRecord, Pin, TableRow, TableState};

fn strings<'a>(values: impl Iterator<Item = Option<&'a str>> + Clone) -> ArrayRef {
    // Sized first: a grown builder keeps up to twice the bytes, which would count against the fit test.
    let (mut count, mut bytes) = (0, 0);
    for value in values.clone() {
        count += 1;
        bytes += value.map_or(0, str::len);
    }
    let mut builder = StringBuilder::with_capacity(count, bytes);
    values.for_each(|v| builder.append_option(v));
    Arc::new(builder.finish())
}

fn numbers(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(UInt64Array::from(values.collect::<Vec<_>>()))
}

fn batch_error(e: arrow_schema::ArrowError) -> Error {
    Error::internal(format!("history records do not form a batch: {e}"))
}

/// Build the one batch of an extent. The records are taken as they are; canonical order is the
/// caller's.
pub(in super::super) fn to_batch(records: &[&HistoryRecord]) -> Result<RecordBatch> {
    for record in records {
        record.commit.check()?;
    }
    let ids = strings(
        records
            .iter()
            .map(|r| Some(r.commit.graph_commit_id.as_str())),
    );
    let columns: Vec<ArrayRef> = vec![tables_column(records)?, ids, record_column(records)?];
    RecordBatch::try_new(SCHEMA.clone(), columns).map_err(batch_error)
}

fn record_column(records: &[&HistoryRecord]) -> Result<ArrayRef> {
    fn filled<'a>(
        records: &'a [&'a HistoryRecord],
        get: impl Fn(&'a Commit) -> Option<&'a str> + Clone + 'a,
    ) -> ArrayRef {
        strings(
            records
                .iter()
                .map(move |r| Some(get(&r.commit).unwrap_or_default())),
        )
    }
    let plain = |get: fn(&Commit) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(
            records.iter().map(|r| get(&r.commit)),
        ))
    };
    let created: ArrayRef = Arc::new(Int64Array::from_iter_values(
        records.iter().map(|r| r.commit.created_at),
    ));
    let present: ArrayRef = Arc::new(UInt32Array::from_iter_values(
        records.iter().map(|r| null_mask(&r.commit)),
    ));
    let children = vec![
        filled(records, |c| c.graph_branch.as_deref()),
        filled(records, |c| c.native_branch.as_deref()),
        plain(|c| c.graph_manifest_version),
        plain(|c| c.generation),
        filled(records, |c| c.parent_commit_id.as_deref()),
        filled(records, |c| c.merged_parent_commit_id.as_deref()),
        filled(records, |c| c.actor_id.as_deref()),
        created,
        filled(records, |c| {
            c.schema_contract
                .as_ref()
                .map(|h| h.schema_ir_hash.as_str())
        }),
        plain(|c| {
            c.schema_contract
                .as_ref()
                .map_or(0, |h| u64::from(h.schema_identity_version))
        }),
        filled(records, |c| {
            c.schema_contract
                .as_ref()
                .map(|h| h.schema_identity_domain.as_str())
        }),
        filled(records, |c| c.schema_content_hash.as_deref()),
        present,
    ];
    let array = StructArray::try_new(RECORD_FIELDS.clone(), children, None).map_err(batch_error)?;
    Ok(Arc::new(array))
}

/// `present`: bit *i* set means that field *i* of 3.2 is null.
fn null_mask(commit: &Commit) -> u32 {
    let no_contract = commit.schema_contract.is_none();
    [
        (0, commit.graph_branch.is_none()),
        (1, commit.native_branch.is_none()),
        (4, commit.parent_commit_id.is_none()),
        (5, commit.merged_parent_commit_id.is_none()),
        (6, commit.actor_id.is_none()),
        (8, no_contract),
        (9, no_contract),
        (10, no_contract),
        (11, commit.schema_content_hash.is_none()),
    ]
    .iter()
    .filter(|(_, null)| *null)
    .fold(0, |mask, (bit, _)| mask | 1 << bit)
}

fn tables_column(records: &[&HistoryRecord]) -> Result<ArrayRef> {
    let rows: Vec<&TableRow> = records.iter().flat_map(|r| r.tables.iter()).collect();
    if i32::try_from(rows.len()).is_err() {
        return Err(Error::limit(
            "the number of table rows in one extent",
            i32::MAX as u64,
            rows.len() as u64,
        ));
    }
    let metadata: Vec<Option<String>> = rows
        .iter()
        .map(|r| r.state.pin().map(|p| p.metadata.to_json()))
        .collect();
    let pin = |get: fn(&Pin) -> u64| numbers(rows.iter().map(move |r| r.state.pin().map(get)));
    let children = vec![
        strings(rows.iter().map(|r| Some(r.table_path.as_str()))),
        strings(metadata.iter().map(Option::as_deref)),
        strings(rows.iter().map(|r| Some(r.table_key.as_str()))),
        numbers(rows.iter().map(|r| Some(r.identity.stable_table_id))),
        numbers(rows.iter().map(|r| Some(r.identity.table_incarnation_id))),
        numbers(rows.iter().map(|r| match &r.state {
            TableState::Registered => None,
            TableState::Pinned(pin) => Some(pin.table_version),
            TableState::Dropped { sealed_version, .. } => Some(*sealed_version),
        })),
        strings(
            rows.iter()
                .map(|r| r.state.pin().and_then(|p| p.table_branch.as_deref())),
        ),
        pin(|p| p.row_count),
        pin(|p| p.manifest_version),
        numbers(rows.iter().map(|r| match &r.state {
            TableState::Dropped { dropped_at, .. } => Some(*dropped_at),
            TableState::Registered | TableState::Pinned(_) => None,
        })),
    ];
    let items = StructArray::try_new(TABLE_FIELDS.clone(), children, None).map_err(batch_error)?;
    let item = Arc::new(Field::new(
        "item",
        DataType::Struct(TABLE_FIELDS.clone()),
        false,
    ));
    let offsets = OffsetBuffer::from_lengths(records.iter().map(|r| r.tables.len()));
    let list = ListArray::try_new(item, offsets, Arc::new(items), None).map_err(batch_error)?;
    Ok(Arc::new(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::testing::example_records;

    #[test]
    fn the_masks_of_the_example() {
        let records = example_records();
        let masks: Vec<u32> = records.iter().map(|r| null_mask(&r.commit)).collect();
        assert_eq!(masks, [115, 35, 64]);
        let mut bare = records[0].commit.clone();
        (bare.schema_contract, bare.schema_content_hash) = (None, None);
        assert_eq!(null_mask(&bare), 115 + 3_840);
    }
}
