//! From records to the bytes of an extent (`docs/format/history.md` 3.4).

use std::borrow::Borrow;

use bytes::Bytes;
use lance_core::datatypes::Schema;
use lance_file::versions::v2_2;
use lance_file::writer::{FileWriter, FileWriterOptions};
use lance_io::object_store::ObjectStore;
use object_store::path::Path;

use super::columns;
use crate::error::{Error, Result};
use crate::model::HistoryRecord;
use crate::model::measure::{HISTORY_BLOCK_SLOTS, MAX_OBJECT_BYTES, record_bytes};
use crate::store::guarded;

/// Whether a set of records fits one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoded {
    /// The file.
    Fits(Bytes),
    /// The set does not fit; placement cuts it, a legacy data file is an error.
    TooLarge,
}

/// Encode canonical records as one extent of at most [`MAX_OBJECT_BYTES`].
pub async fn encode<R: Borrow<HistoryRecord>>(records: &[R]) -> Result<Encoded> {
    encode_within(records, MAX_OBJECT_BYTES).await
}

/// [`encode`] with another limit, so that tests of placement need no large sets.
pub(in crate::history) async fn encode_within<R: Borrow<HistoryRecord>>(
    records: &[R],
    limit: u64,
) -> Result<Encoded> {
    let records: Vec<&HistoryRecord> = records.iter().map(Borrow::borrow).collect();
    if records.is_empty() || records.len() > HISTORY_BLOCK_SLOTS as usize {
        return Err(Error::internal(format!(
            "an extent of {} records cannot be written; 1 to {HISTORY_BLOCK_SLOTS} are allowed",
            records.len()
        )));
    }
    let many = records.len() > 1;
    if many {
        let sum = records
            .iter()
            .fold(0u64, |sum, r| sum.saturating_add(record_bytes(r)));
        if sum > limit / 2 {
            return Ok(Encoded::TooLarge);
        }
    }
    let batch = columns::to_batch(&records)?;
    if many && batch.get_array_memory_size() as u64 > limit / 2 {
        return Ok(Encoded::TooLarge);
    }
    let object = "a new extent";
    let bytes = guarded(object, async move {
        let failed = |e: lance::Error| Error::lance("cannot encode an extent", e);
        // Assembled in memory: the one create of the object is the caller's.
        let memory = ObjectStore::memory();
        let path = Path::from("extent.lance");
        let schema = Schema::try_from(columns::schema().as_ref()).map_err(failed)?;
        let sink = memory.create(&path).await.map_err(failed)?;
        let writer = v2_2::Writer::try_new(sink, schema, FileWriterOptions::default());
        let mut writer = FileWriter::from(writer.map_err(failed)?);
        writer.write_batch(&batch).await.map_err(failed)?;
        drop(batch);
        writer.finish().await.map_err(failed)?;
        memory.read_one_all(&path).await.map_err(failed)
    })
    .await?;
    if bytes.len() as u64 > limit {
        return Ok(Encoded::TooLarge);
    }
    Ok(Encoded::Fits(bytes))
}
