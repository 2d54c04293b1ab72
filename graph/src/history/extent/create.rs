//! Creating an extent: put-if-absent, and an existing one must hold equal records
//! (`docs/format/history.md` 8).

use std::borrow::Borrow;

use super::address::check_address;
use super::decode::decode_records;
use super::encode::{Encoded, encode_within};
use crate::error::{Error, Result};
use crate::history::limit_as_internal;
use crate::history::path::ExtentKey;
use crate::model::HistoryRecord;
use crate::model::measure::MAX_OBJECT_BYTES;
use crate::store::{Created, Root};

/// How the creation of an extent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The object is new.
    New,
    /// It existed with equal records.
    Equal,
    /// The records do not fit one object; nothing was written.
    TooLarge,
}

/// Create the extent `key` from canonical records. An existing object is decoded with every check and
/// compared in row order, tables in stored order; other records are [`Error::Internal`]. Lance bytes of
/// equal extents may differ, so they are never compared.
pub async fn create_extent<R: Borrow<HistoryRecord>>(
    root: &Root,
    key: &ExtentKey,
    records: &[R],
) -> Result<Stored> {
    create_within(root, key, records, MAX_OBJECT_BYTES).await
}

/// [`create_extent`] with another size limit.
pub(in crate::history) async fn create_within<R: Borrow<HistoryRecord>>(
    root: &Root,
    key: &ExtentKey,
    records: &[R],
    limit: u64,
) -> Result<Stored> {
    {
        let commits: Vec<_> = records.iter().map(|r| &r.borrow().commit).collect();
        check_address(key, &commits)?;
    }
    let bytes = match encode_within(records, limit).await? {
        Encoded::Fits(bytes) => bytes,
        Encoded::TooLarge => return Ok(Stored::TooLarge),
    };
    let name = key.key();
    let found = match root
        .create(&name, bytes, MAX_OBJECT_BYTES)
        .await
        .map_err(limit_as_internal)?
    {
        Created::New => return Ok(Stored::New),
        Created::Existing(found) => found,
    };
    let stored = decode_records(&name, found).await?;
    let commits: Vec<_> = stored.iter().map(|r| &r.commit).collect();
    check_address(key, &commits)?;
    if stored.len() != records.len() {
        return Err(Error::internal(format!(
            "{name} exists with {} records, expected {}: copies differ",
            stored.len(),
            records.len()
        )));
    }
    match stored
        .iter()
        .zip(records)
        .find(|(a, b)| **a != *(*b).borrow())
    {
        None => Ok(Stored::Equal),
        Some((found, wanted)) => Err(Error::internal(format!(
            "{name} exists with another record of commit {} than that of commit {} to be written: \
             copies differ",
            found.commit.graph_commit_id,
            wanted.borrow().commit.graph_commit_id
        ))),
    }
}
