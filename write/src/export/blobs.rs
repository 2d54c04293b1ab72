//! The cells of a blob column (`docs/format/tables-and-schema.md` 2.4).

use std::sync::Arc;

use bytes::Bytes;
use graph::Error;
use graph::store::guarded;
use lance::Dataset;
use lance_core::datatypes::BlobKind;
use records::BlobCell;

use crate::error::Result;

/// Blobs opened at once, so that large ones do not add up.
const OPENED_AT_ONCE: usize = 64;

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

/// The cells of `column` in the rows with these row ids, in their order. A part of an external object is refused:
/// JSONL has no spelling for it.
pub(super) async fn read(
    dataset: &Arc<Dataset>,
    column: &str,
    rows: &[u64],
) -> Result<Vec<Option<Cell>>> {
    let mut cells = Vec::with_capacity(rows.len());
    for part in rows.chunks(OPENED_AT_ONCE) {
        let object = dataset.uri().to_string();
        let context = format!("cannot read blob column {column} of {object}");
        let (dataset, column, part) = (dataset.clone(), column.to_string(), part.to_vec());
        let found = guarded(&object, async move {
            let lance = |e| Error::lance(context.clone(), e);
            let blobs = dataset.take_blobs(&part, &column).await.map_err(lance)?;
            if blobs.len() != part.len() {
                return Err(Error::internal(format!(
                    "{context}: {} cells were asked for, {} came",
                    part.len(),
                    blobs.len()
                )));
            }
            let mut cells = Vec::with_capacity(blobs.len());
            for blob in blobs {
                cells.push(match blob {
                    None => None,
                    Some(blob) if blob.kind() == BlobKind::External => {
                        let uri = blob.uri().unwrap_or_default().to_string();
                        if blob.position() != 0 {
                            return Err(Error::refused(format!(
                                "{context}: a cell names bytes from {} on of '{uri}', and an export can only name \
                                 whole objects; load those bytes into the graph first",
                                blob.position()
                            )));
                        }
                        Some(Cell::External(uri))
                    }
                    Some(blob) => Some(Cell::Bytes(blob.read().await.map_err(lance)?)),
                });
            }
            Ok(cells)
        })
        .await?;
        cells.extend(found);
    }
    Ok(cells)
}
