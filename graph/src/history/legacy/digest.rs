//! The record digest of a data file: SHA-256 over the JSON of its canonical records, never over Lance
//! bytes (`docs/format/history.md` 7.6).

use std::borrow::Borrow;
use std::io::{self, Write};

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::model::HistoryRecord;

struct Hashing(Sha256);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The digest of canonical records. The JSON is hashed as it is produced.
pub fn record_digest<R: Borrow<HistoryRecord>>(records: &[R]) -> Result<[u8; 32]> {
    let mut sink = Hashing(Sha256::new());
    for (n, record) in records.iter().enumerate() {
        sink.0.update(if n == 0 { b"[" } else { b"," });
        serde_json::to_writer(&mut sink, record.borrow())
            .map_err(|e| Error::internal(format!("a history record has no JSON: {e}")))?;
    }
    sink.0.update(if records.is_empty() {
        b"[]".as_slice()
    } else {
        b"]".as_slice()
    });
    Ok(sink.0.finalize().into())
}
