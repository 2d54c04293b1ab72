//! From bytes to records or to lineage (`docs/format/history.md` 3.5).
//!
//! Extents carry no checksum and the Lance reader panics on many kinds of damage, so the footer is
//! checked first and everything after it runs in a guarded task.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use bytes::Bytes;
use futures::StreamExt as _;
use lance_core::cache::LanceCache;
use lance_encoding::decoder::{DecoderPlugins, FilterExpression};
use lance_file::reader::{FileReader, FileReaderOptions};
use lance_file::version::ConcreteFileVersion;
use lance_file::versions::v2_2;
use lance_io::ReadBatchParams;
use lance_io::object_store::ObjectStore;
use lance_io::scheduler::{ScanScheduler, SchedulerConfig};

use super::columns;
use super::footer;
use super::held::HeldReader;
use crate::error::{Error, Result};
use crate::model::measure::{HISTORY_BLOCK_SLOTS, MAX_OBJECT_BYTES};
use crate::model::{Commit, HistoryRecord};
use crate::store::{Root, Tail, guarded};

/// Decode the records of a whole extent, tables in stored order. Every inconsistency is
/// [`Error::Internal`]; `object` names the extent in it. The address of the rows is not checked here.
pub async fn decode_records(object: &str, bytes: Bytes) -> Result<Vec<HistoryRecord>> {
    let size = bytes.len() as u64;
    check_size(object, size)?;
    let reader = HeldReader::new(object, bytes, size, None)?;
    let name = object.to_string();
    guarded(object, async move {
        let batch = read(&name, &reader, None).await?;
        columns::records(&name, &batch)
    })
    .await
}

/// The lineage of an extent and what reading it fetched beside the held end.
#[derive(Debug)]
pub struct Lineage {
    /// One commit a row, in row order.
    pub commits: Vec<Commit>,
    /// Bytes fetched outside `tail`.
    pub fetched: u64,
}

/// Decode the commits of an extent from its last bytes, without its tables; what lies before them is
/// fetched from `root` by range. A failed fetch is [`Error::Storage`], every inconsistency
/// [`Error::Internal`].
pub async fn decode_lineage(root: &Root, key: &str, tail: Tail) -> Result<Lineage> {
    check_size(key, tail.size)?;
    let reader = HeldReader::new(key, tail.bytes, tail.size, Some(root.clone()))?;
    let name = key.to_string();
    guarded(key, async move {
        let lineage = [columns::COMMIT_ID, columns::RECORD];
        let batch = read(&name, &reader, Some(&lineage)).await?;
        Ok(Lineage {
            commits: columns::commits(&name, &batch)?,
            fetched: reader.fetched(),
        })
    })
    .await
}

fn check_size(object: &str, size: u64) -> Result<()> {
    if size > MAX_OBJECT_BYTES {
        return Err(Error::internal(format!(
            "{object} has {size} bytes, above the cap of {MAX_OBJECT_BYTES}"
        )));
    }
    Ok(())
}

/// An error of Lance over bytes that are held: damage, unless a fetch failed.
fn damaged(object: &str, reader: &HeldReader, error: lance::Error) -> Error {
    if let Some(failure) = reader.take_failure() {
        return failure;
    }
    match Error::lance(format!("{object} cannot be decoded"), error) {
        Error::Storage { context, cause } => Error::internal(format!("{context}: {cause}")),
        Error::Internal(text) => Error::Internal(text),
        other => Error::internal(other.to_string()),
    }
}

async fn read(object: &str, reader: &HeldReader, names: Option<&[&str]>) -> Result<RecordBatch> {
    footer::check(object, reader.held(), reader.object_size())?;
    let failed = |e: lance::Error| damaged(object, reader, e);
    let store = Arc::new(ObjectStore::memory());
    let config = SchedulerConfig::max_bandwidth(&store);
    let scheduler = ScanScheduler::new(store, config);
    let file = FileReader::try_open(
        scheduler.open_reader(Arc::new(reader.clone())),
        None,
        Arc::<DecoderPlugins>::default(),
        &LanceCache::no_cache(),
        FileReaderOptions::default(),
    )
    .await
    .map_err(failed)?;
    if file.version() != ConcreteFileVersion::V2_2 {
        return Err(Error::internal(format!("{object} is not a 2.2 file")));
    }
    columns::check_schema(object, &Schema::from(file.schema().as_ref()))?;
    let rows = checked_rows(object, &file)?;
    let projection = match names {
        Some(names) => v2_2::projection_from_column_names(file.schema(), names).map_err(failed)?,
        None => v2_2::projection_from_whole_schema(file.schema()),
    };
    let mut stream = file
        .read_stream_projected(
            ReadBatchParams::RangeFull,
            rows,
            1,
            projection,
            FilterExpression::no_filter(),
        )
        .await
        .map_err(failed)?;
    let batch = match stream.next().await {
        Some(batch) => batch.map_err(failed)?,
        None => return Err(Error::internal(format!("{object} decodes to no rows"))),
    };
    if batch.num_rows() != rows as usize || stream.next().await.is_some() {
        return Err(Error::internal(format!(
            "{object} decodes to {} rows first, its header says {rows}",
            batch.num_rows()
        )));
    }
    let memory = batch.get_array_memory_size() as u64;
    if memory > MAX_OBJECT_BYTES {
        return Err(Error::internal(format!(
            "{object} decodes to {memory} bytes, above the cap of {MAX_OBJECT_BYTES}"
        )));
    }
    columns::validate(object, &batch)?;
    Ok(batch)
}

/// The row count, within bounds and the same in every page list: Lance sizes its output from these.
fn checked_rows(object: &str, file: &FileReader) -> Result<u32> {
    let rows = file.num_rows();
    let ceiling = u64::from(HISTORY_BLOCK_SLOTS);
    if rows == 0 || rows > ceiling {
        return Err(Error::internal(format!(
            "{object} holds {rows} rows, expected 1 to {ceiling}"
        )));
    }
    for column in &file.metadata().column_infos {
        let total = column
            .page_infos
            .iter()
            .fold(0u64, |sum, page| sum.saturating_add(page.num_rows));
        if total != rows {
            return Err(Error::internal(format!(
                "{object}: column {} holds {total} rows, the file {rows}",
                column.index
            )));
        }
    }
    // At most 16 384.
    Ok(rows as u32)
}
