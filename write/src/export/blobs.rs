//! The cells of a blob column (`docs/format/tables-and-schema.md` 2.4).

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch, StructArray};
use bytes::Bytes;
use graph::Error;
use graph::store::guarded;
use lance::Dataset;
use records::BlobCell;

use crate::error::Result;

/// Blobs opened at once, so that large ones do not add up.
const OPENED_AT_ONCE: usize = 64;

/// The descriptor kind of an object outside of the graph.
const EXTERNAL: u8 = 3;

/// One cell that is not null.
#[derive(Debug, Clone)]
pub(super) enum Cell {
    /// Bytes the table itself holds.
    Bytes(Bytes),
    /// A whole object outside of the graph.
    External(String),
}

impl Cell {
    pub fn shown(&self) -> BlobCell<'_> {
        match self {
            Self::Bytes(bytes) => BlobCell::Bytes(bytes),
            Self::External(uri) => BlobCell::External(uri),
        }
    }
}

/// The cells of the blob column `column` of `batch`, whose rows have these row ids. The batch holds descriptors, so an
/// external object is named without being opened. A part of one is refused: JSONL has no spelling for it.
pub(super) async fn read(
    dataset: &Arc<Dataset>,
    batch: &RecordBatch,
    column: &str,
    rows: &[u64],
) -> Result<Vec<Option<Cell>>> {
    let described = Descriptors::of(batch, column)?;
    let mut cells: Vec<Option<Cell>> = Vec::with_capacity(rows.len());
    let mut managed = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        cells.push(match described.kind(index) {
            None => None,
            Some(EXTERNAL) => Some(Cell::External(described.external(index, dataset)?)),
            Some(_) => {
                managed.push((index, *row));
                None
            }
        });
    }
    for part in managed.chunks(OPENED_AT_ONCE) {
        let ids: Vec<u64> = part.iter().map(|(_, row)| *row).collect();
        let bytes = read_managed(dataset, column, ids).await?;
        for ((index, _), bytes) in part.iter().zip(bytes) {
            cells[*index] = Some(Cell::Bytes(bytes));
        }
    }
    Ok(cells)
}

/// The stored descriptors of a blob column.
struct Descriptors<'b> {
    column: &'b str,
    cells: &'b StructArray,
}

impl<'b> Descriptors<'b> {
    fn of(batch: &'b RecordBatch, column: &'b str) -> Result<Self> {
        let cells = batch
            .column_by_name(column)
            .and_then(|c| c.as_struct_opt())
            .ok_or_else(|| Error::internal(format!("blob column {column} has no descriptors")))?;
        Ok(Self { column, cells })
    }

    fn kind(&self, index: usize) -> Option<u8> {
        if self.cells.is_null(index) {
            return None;
        }
        let kinds = self.cells.column_by_name("kind");
        let kinds = kinds.and_then(|c| c.as_primitive_opt::<UInt8Type>());
        // A column without kinds cannot be told from one the table holds: reading it will say what it is.
        Some(kinds.map_or(0, |k| k.value(index)))
    }

    fn number<T: ArrowPrimitiveType>(&self, name: &str, index: usize) -> Result<T::Native> {
        self.cells
            .column_by_name(name)
            .and_then(|c| c.as_primitive_opt::<T>())
            .map(|c| c.value(index))
            .ok_or_else(|| {
                Error::internal(format!("blob column {}: {name} is missing", self.column)).into()
            })
    }

    fn external(&self, index: usize, dataset: &Dataset) -> Result<String> {
        let uri = self
            .cells
            .column_by_name("blob_uri")
            .and_then(|c| c.as_string_opt::<i32>())
            .map(|c| c.value(index))
            .ok_or_else(|| {
                Error::internal(format!("blob column {}: blob_uri is missing", self.column))
            })?;
        let base = self.number::<UInt32Type>("blob_id", index)?;
        let uri = match base {
            0 => uri.to_string(),
            _ => {
                let base = dataset.manifest().base_paths.get(&base).ok_or_else(|| {
                    Error::internal(format!(
                        "blob column {}: '{uri}' lies in base path {base}, which the manifest does not name",
                        self.column
                    ))
                })?;
                format!("{}/{uri}", base.path.trim_end_matches('/'))
            }
        };
        let from = self.number::<UInt64Type>("position", index)?;
        let size = self.number::<UInt64Type>("size", index)?;
        if from != 0 || size != 0 {
            return Err(Error::refused(format!(
                "blob column {}: a cell names {size} bytes from {from} on of '{uri}', and an export can only name whole \
                 objects; load those bytes into the graph first",
                self.column
            ))
            .into());
        }
        Ok(uri)
    }
}

async fn read_managed(dataset: &Arc<Dataset>, column: &str, rows: Vec<u64>) -> Result<Vec<Bytes>> {
    let object = dataset.uri().to_string();
    let context = format!("cannot read blob column {column} of {object}");
    let (dataset, column) = (dataset.clone(), column.to_string());
    let read = guarded(&object, async move {
        let lance = |e| Error::lance(context.clone(), e);
        let blobs = dataset.take_blobs(&rows, &column).await.map_err(lance)?;
        let mut read = Vec::with_capacity(rows.len());
        for blob in blobs.into_iter().flatten() {
            read.push(blob.read().await.map_err(lance)?);
        }
        if read.len() != rows.len() {
            return Err(Error::internal(format!(
                "{context}: {} cells were asked for, {} came",
                rows.len(),
                read.len()
            )));
        }
        Ok(read)
    })
    .await?;
    Ok(read)
}
