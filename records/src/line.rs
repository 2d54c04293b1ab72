//! A stored row as a line of an export.

use arrow_array::RecordBatch;

use crate::error::RecordError;
use crate::types::{TableType, Types};

/// A blob of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobCell<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// The URI of a whole external object.
    External(&'a str),
}

/// Prints rows of one table.
#[derive(Debug)]
pub struct LineWriter<'t> {
    types: &'t Types,
    table: &'t TableType,
}

impl<'t> LineWriter<'t> {
    /// A writer for rows of `table`.
    pub fn new(types: &'t Types, table: &'t TableType) -> Self {
        Self { types, table }
    }

    /// Append the line of row `row`, LF included.
    pub fn line(
        &self,
        batch: &RecordBatch,
        row: usize,
        blobs: &[Option<BlobCell<'_>>],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let _ = (self.types, self.table, batch, row, blobs, out);
        Err(RecordError::new("not written yet"))
    }
}
