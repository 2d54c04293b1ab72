//! JSONL records of a graph: from text to typed rows and back (`docs/format/tables-and-schema.md` 8).
//!
//! ```text
//! JSONL --[RecordReader]--> Record --[BatchBuilder]--> RecordBatch --[LineWriter]--> JSONL
//! ```
//!
//! [`Types`] is the accepted schema as all three need it. What can be judged on one record alone (types,
//! widths, null, enum, range, check, the derived id) is judged by the reader, with the line. What takes
//! several rows (unique, endpoints, cardinality, repeated ids) is the caller's, who has [`unique_texts`]
//! for it. Nothing here touches storage.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod batch;
mod calendar;
mod cell;
mod column;
mod error;
mod key;
mod line;
mod reader;
mod record;
mod rules;
mod types;
mod unique;
mod value;

#[cfg(test)]
mod tests;

pub use batch::BatchBuilder;
pub use error::RecordError;
pub use line::{BlobCell, LineWriter};
pub use reader::{MAX_RECORD_BYTES, RecordReader};
pub use record::Record;
pub use types::{KeyMember, Member, Property, TableType, Types};
pub use unique::unique_texts;
pub use value::{Blob, Value, canonical_text};
