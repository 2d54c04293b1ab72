//! Records from JSONL text.

use std::io::BufRead;

use crate::error::RecordError;
use crate::record::Record;
use crate::types::Types;

/// Most bytes of one record's text: 32 MiB (8.2).
pub const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;

/// Reads a sequence of JSON objects.
pub struct RecordReader<'t, R: BufRead> {
    input: R,
    types: &'t Types,
}

impl<'t, R: BufRead> RecordReader<'t, R> {
    /// A reader of `input`.
    pub fn new(input: R, types: &'t Types) -> Self {
        Self { input, types }
    }
}

impl<R: BufRead> Iterator for RecordReader<'_, R> {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = (&self.input, self.types);
        None
    }
}
