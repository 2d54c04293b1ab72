//! One writer a table, fed with batches from a thread that may block.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
use lance::Dataset;
use lance::dataset::transaction::Transaction;
use records::{BatchBuilder, Record, TableType, Types};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::facts::{Facts, Fingerprint};
use crate::error::{Result, WriteError};
use crate::table;

/// Rows of a batch.
const BATCH_ROWS: usize = 8_192;
/// Bytes of a batch, so that wide rows do not add up.
const BATCH_BYTES: usize = 8 << 20;
/// Batches on their way to a writer.
const BATCHES_AHEAD: usize = 2;

/// A table that is being written.
pub(super) struct Sink {
    builder: BatchBuilder,
    sender: SyncSender<RecordBatch>,
    writer: JoinHandle<graph::Result<Transaction>>,
    facts: Facts,
}

/// A table whose rows are all handed over.
pub(super) struct Closed {
    /// Ends with the staged transaction.
    pub writer: JoinHandle<graph::Result<Transaction>>,
    /// What went by.
    pub facts: Facts,
}

impl Sink {
    /// Start a writer that replaces all rows of `base`.
    pub fn open(table: &TableType, base: Arc<Dataset>, handle: &Handle) -> Self {
        let (sender, receiver) = sync_channel::<RecordBatch>(BATCHES_AHEAD);
        let batches = receiver.into_iter().map(Ok::<_, ArrowError>);
        let reader = RecordBatchIterator::new(batches, table.schema.clone());
        Self {
            builder: BatchBuilder::new(table),
            sender,
            writer: handle.spawn(table::overwrite(base, Box::new(reader))),
            facts: Facts::of(table),
        }
    }

    /// Take one record.
    pub fn push(&mut self, types: &Types, record: Record, prints: &Fingerprint) -> Result<()> {
        let table = &types.tables()[record.table];
        self.facts.add(table, &record, prints)?;
        self.builder.push(record)?;
        if self.builder.rows() >= BATCH_ROWS || self.builder.bytes() >= BATCH_BYTES {
            self.flush(types, table, prints)?;
        }
        Ok(())
    }

    /// Hand over what is collected.
    pub fn flush(&mut self, types: &Types, table: &TableType, prints: &Fingerprint) -> Result<()> {
        if self.builder.rows() == 0 {
            return Ok(());
        }
        let (batch, lines) = self.builder.finish()?;
        self.facts.add_batch(types, table, &batch, &lines, prints)?;
        self.sender
            .send(batch)
            .map_err(|_| WriteError::invalid(format!("the writer of {} stopped", table.table_key)))
    }

    /// Whether a row that went by has this id.
    pub fn shows(&self, id: &str, prints: &Fingerprint) -> bool {
        self.facts.has(prints.of(id))
    }

    /// End the stream.
    pub fn close(self) -> Closed {
        Closed {
            writer: self.writer,
            facts: self.facts,
        }
    }
}
