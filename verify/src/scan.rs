//! Reading table data: every data file once, however many versions name it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use futures::TryStreamExt as _;
use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;
use lance_core::datatypes::BlobKind;
use lance_table::format::Fragment;

use crate::ledger::short;
use crate::report::DeepChecked;

/// Rows decoded at once.
const BATCH_ROWS: usize = 1024;
/// Blobs opened at once.
const BLOBS_AT_ONCE: usize = 64;
/// Bytes of a blob read at once.
const BLOB_BYTES: usize = 4 << 20;
/// The column of row addresses.
const ROW_ADDRESS: &str = "_rowaddr";

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    seen: Mutex<HashSet<[u8; 16]>>,
    files: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Scanned {
    /// `true` the first time.
    fn claim(&self, what: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(short(what))
    }

    pub(crate) fn count_into(&self, checked: &mut DeepChecked) {
        checked.data_files = self.files.load(Ordering::Relaxed);
        checked.rows = self.rows.load(Ordering::Relaxed);
        checked.bytes = self.bytes.load(Ordering::Relaxed);
    }
}

/// Read what of `dataset`, which stands at `place`, was not read yet. What is wrong is handed back, one text
/// a fragment.
pub(crate) async fn scan(dataset: &Arc<Dataset>, place: &str, scanned: &Scanned) -> Vec<Error> {
    let mut wrong = Vec::new();
    let fragments: Vec<Fragment> = dataset.manifest().fragments.iter().cloned().collect();
    for fragment in fragments {
        let base = |id: Option<u32>| match id.and_then(|id| dataset.manifest().base_paths.get(&id))
        {
            Some(base) => base.path.clone(),
            None => place.to_string(),
        };
        let mut fresh = false;
        let mut names = Vec::new();
        for file in &fragment.files {
            names.push(file.path.clone());
            if scanned.claim(&format!("{}\n{}", base(file.base_id), file.path)) {
                fresh = true;
                scanned.files.fetch_add(1, Ordering::Relaxed);
                let size = file.file_size_bytes.get().map_or(0, u64::from);
                scanned.bytes.fetch_add(size, Ordering::Relaxed);
            }
        }
        if let Some(deleted) = &fragment.deletion_file {
            fresh |= scanned.claim(&format!(
                "{}\n{}\n{deleted:?}",
                base(deleted.base_id),
                fragment.id
            ));
        }
        if !fresh {
            continue;
        }
        let what = format!("fragment {} ({})", fragment.id, names.join(", "));
        match guarded(&what, read(dataset.clone(), fragment)).await {
            Ok(rows) => {
                scanned.rows.fetch_add(rows, Ordering::Relaxed);
            }
            Err(Error::Internal(text)) if text.starts_with(&what) => {
                wrong.push(Error::Internal(text));
            }
            Err(e) => wrong.push(e.within(&what)),
        }
    }
    wrong
}

async fn read(dataset: Arc<Dataset>, fragment: Fragment) -> Result<u64> {
    let failed = |e: lance::Error| Error::lance("it cannot be read", e);
    let blobs: Vec<String> = dataset
        .schema()
        .fields
        .iter()
        .filter(|f| f.is_blob())
        .map(|f| f.name.clone())
        .collect();
    let live = fragment.physical_rows.map(|all| {
        let deleted = fragment
            .deletion_file
            .as_ref()
            .map_or(Some(0), |d| d.num_deleted_rows);
        (all, deleted)
    });
    let mut scanner = dataset.scan();
    scanner
        .with_fragments(vec![fragment])
        .batch_size(BATCH_ROWS)
        .batch_readahead(2)
        .with_row_address();
    let mut stream = scanner.try_into_stream().await.map_err(failed)?;
    let mut rows = 0u64;
    while let Some(batch) = stream.try_next().await.map_err(failed)? {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            column.to_data().validate_full().map_err(|e| {
                Error::internal(format!("column {} holds invalid values: {e}", field.name()))
            })?;
        }
        for column in &blobs {
            read_blobs(&dataset, column, &batch).await?;
        }
        rows += batch.num_rows() as u64;
    }
    if let Some((all, Some(deleted))) = live
        && rows != (all as u64).saturating_sub(deleted as u64)
    {
        return Err(Error::internal(format!(
            "it holds {rows} rows, its manifest says {all} of which {deleted} are deleted"
        )));
    }
    Ok(rows)
}

/// Read the bytes of the blobs that the table itself holds.
async fn read_blobs(dataset: &Arc<Dataset>, column: &str, batch: &RecordBatch) -> Result<()> {
    let failed = |e: lance::Error| Error::lance(format!("blob column {column} cannot be read"), e);
    let addresses = batch
        .column_by_name(ROW_ADDRESS)
        .and_then(|a| a.as_primitive_opt::<UInt64Type>())
        .ok_or_else(|| Error::internal("the scan gave no row addresses"))?;
    // An external blob is no part of the root, and opening it would ask for it.
    let kinds = batch
        .column_by_name(column)
        .and_then(|c| c.as_struct_opt())
        .and_then(|c| c.column_by_name("kind"))
        .and_then(|c| c.as_primitive_opt::<UInt8Type>());
    let held: Vec<u64> = addresses
        .values()
        .iter()
        .enumerate()
        .filter(|(row, _)| {
            kinds.is_none_or(|k| k.is_null(*row) || k.value(*row) != BlobKind::External as u8)
        })
        .map(|(_, address)| *address)
        .collect();
    for chunk in held.chunks(BLOBS_AT_ONCE) {
        let blobs = dataset
            .take_blobs_by_addresses(chunk, column)
            .await
            .map_err(failed)?;
        for blob in blobs.into_iter().flatten() {
            if blob.kind() == BlobKind::External {
                continue;
            }
            let size = blob.size();
            let mut read = 0;
            loop {
                let part = blob.read_up_to(BLOB_BYTES).await.map_err(failed)?;
                if part.is_empty() {
                    break;
                }
                read += part.len() as u64;
            }
            if read != size {
                return Err(Error::internal(format!(
                    "a blob of column {column} has {read} bytes, its descriptor says {size}"
                )));
            }
        }
    }
    Ok(())
}
