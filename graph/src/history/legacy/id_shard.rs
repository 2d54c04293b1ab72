//! `OGLI0001`: the id shards of the locator (`docs/format/history.md` 7.4).

use ulid::Ulid;

use super::bytes::Bytes;
use super::layout::LEGACY_SHARD_ENTRIES;
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"OGLI0001";
const HEADER_BYTES: usize = 12;
const ENTRY_BYTES: usize = 24;

/// Where one commit stands. Orders by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdEntry {
    /// Commit id.
    pub id: Ulid,
    /// Data file number.
    pub file: u32,
    /// Row in that file, from 0.
    pub row: u32,
}

/// A decoded id shard: 1 to 21 844 entries, ids strictly ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdShard {
    entries: Vec<IdEntry>,
}

impl IdShard {
    /// A shard of these entries, checked.
    pub fn new(object: &str, entries: Vec<IdEntry>) -> Result<Self> {
        if entries.is_empty() || entries.len() > LEGACY_SHARD_ENTRIES as usize {
            return Err(Error::internal(format!(
                "{object}: {} entries, expected 1 to {LEGACY_SHARD_ENTRIES}",
                entries.len()
            )));
        }
        match entries.windows(2).find(|pair| pair[0].id >= pair[1].id) {
            None => Ok(Self { entries }),
            Some(pair) => Err(Error::internal(format!(
                "{object}: commit {} follows {}",
                pair[1].id, pair[0].id
            ))),
        }
    }

    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + ENTRY_BYTES * self.entries.len());
        out.extend_from_slice(MAGIC);
        // At most 21 844.
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.id.to_bytes());
            out.extend_from_slice(&entry.file.to_le_bytes());
            out.extend_from_slice(&entry.row.to_le_bytes());
        }
        out
    }

    /// Decode and check an object; `object` names it in the [`Error::Internal`].
    pub fn decode(object: &str, bytes: &[u8]) -> Result<Self> {
        let mut at = Bytes::open(object, bytes, MAGIC)?;
        let count = at.u32()? as usize;
        if count > LEGACY_SHARD_ENTRIES as usize || at.remaining() != count * ENTRY_BYTES {
            return Err(at.bad(format_args!(
                "{count} entries do not take {} bytes",
                at.remaining()
            )));
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(IdEntry {
                id: at.ulid()?,
                file: at.u32()?,
                row: at.u32()?,
            });
        }
        at.finish()?;
        let shard = Self::new(object, entries)?;
        if shard.encode() != bytes {
            return Err(Error::internal(format!(
                "{object} does not re-encode to itself"
            )));
        }
        Ok(shard)
    }

    /// The entries, ids ascending.
    pub fn entries(&self) -> &[IdEntry] {
        &self.entries
    }

    /// The entry of a commit.
    pub fn find(&self, id: Ulid) -> Option<IdEntry> {
        let at = self.entries.binary_search_by_key(&id, |e| e.id).ok()?;
        self.entries.get(at).copied()
    }
}
