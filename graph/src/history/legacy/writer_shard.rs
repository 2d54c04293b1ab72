//! `OGLW0001`: the writer shards of the locator (`docs/format/history.md` 7.5).

use ulid::Ulid;

use super::bytes::Bytes;
use super::chain::ChainKind;
use crate::digest;
use crate::error::{Error, Result};
use crate::model::measure::TAIL_BYTES;

const MAGIC: &[u8; 8] = b"OGLW0001";
const HEADER_BYTES: usize = 12;
/// An entry without its two names.
const ENTRY_BYTES: usize = 77;

/// One writer: a native ref, or a logical branch none of whose refs is left, and the data files that
/// hold its commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterEntry {
    /// What kind of writer.
    pub kind: ChainKind,
    /// Native ref (the logical name of an orphaned writer); `None` is main.
    pub native: Option<String>,
    /// Native ref it forked from; `None` when it forked from main or has no parent.
    pub parent: Option<String>,
    /// Version it forked at.
    pub parent_version: u64,
    /// Its pinned head version.
    pub head_version: u64,
    /// Its last commit.
    pub head: Ulid,
    /// Number of its first data file.
    pub first_file: u32,
    /// How many data files it owns.
    pub files: u32,
}

impl WriterEntry {
    fn native_text(&self) -> &str {
        self.native.as_deref().unwrap_or_default()
    }

    fn parent_text(&self) -> &str {
        self.parent.as_deref().unwrap_or_default()
    }

    /// SHA-256 of the native name, of the empty text for main.
    pub fn digest(&self) -> [u8; 32] {
        digest::sha256(self.native_text().as_bytes())
    }

    /// The order of entries.
    pub(super) fn sort_key(&self) -> ([u8; 32], u8) {
        (self.digest(), self.kind.code())
    }

    pub(super) fn encoded_len(&self) -> usize {
        ENTRY_BYTES + self.native_text().len() + self.parent_text().len()
    }

    /// The last data file of this writer.
    pub fn last_file(&self) -> Option<u32> {
        self.first_file.checked_add(self.files)?.checked_sub(1)
    }

    fn check(&self, object: &str) -> Result<()> {
        let bad = |what: &str| {
            Error::internal(format!("{object}: writer '{}' {what}", self.native_text()))
        };
        if (self.kind == ChainKind::Main) != self.native_text().is_empty() {
            return Err(bad("is main by its name or by its kind, not by both"));
        }
        if self.kind == ChainKind::Main && (self.parent.is_some() || self.parent_version != 0) {
            return Err(bad("is main and has a parent"));
        }
        if self.native.as_deref() == Some("") || self.parent.as_deref() == Some("") {
            return Err(bad("has an empty name"));
        }
        let longest = self.native_text().len().max(self.parent_text().len());
        if longest > usize::from(u16::MAX) {
            return Err(bad("has a name above 65535 bytes"));
        }
        if self.files == 0 || self.last_file().is_none() {
            return Err(bad("owns no data file"));
        }
        Ok(())
    }
}

/// A decoded writer shard: at least one entry, strictly ascending by digest, then kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterShard {
    entries: Vec<WriterEntry>,
}

impl WriterShard {
    /// A shard of these entries, checked.
    pub fn new(object: &str, entries: Vec<WriterEntry>) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::internal(format!("{object} has no entries")));
        }
        let mut size = HEADER_BYTES;
        for entry in &entries {
            entry.check(object)?;
            size = size.saturating_add(entry.encoded_len());
        }
        if size as u64 > TAIL_BYTES {
            return Err(Error::internal(format!(
                "{object} takes {size} bytes, above {TAIL_BYTES}"
            )));
        }
        match entries
            .windows(2)
            .find(|pair| pair[0].sort_key() >= pair[1].sort_key())
        {
            None => Ok(Self { entries }),
            Some(pair) => Err(Error::internal(format!(
                "{object}: writers '{}' and '{}' are not in order",
                pair[0].native_text(),
                pair[1].native_text()
            ))),
        }
    }

    /// Cut sorted entries into shards greedily, each at most 524 288 bytes. `object(n)` names shard *n*.
    pub(super) fn cut(
        mut entries: Vec<WriterEntry>,
        object: impl Fn(u32) -> String,
    ) -> Result<Vec<Self>> {
        entries.sort_by_cached_key(WriterEntry::sort_key);
        if let Some(pair) = entries
            .windows(2)
            .find(|pair| pair[0].sort_key() == pair[1].sort_key())
        {
            return Err(Error::internal(format!(
                "two writers of one kind are named '{}'",
                pair[0].native_text()
            )));
        }
        let mut shards: Vec<Self> = Vec::new();
        let mut current: Vec<WriterEntry> = Vec::new();
        let mut size = HEADER_BYTES;
        for entry in entries {
            let length = entry.encoded_len();
            if !current.is_empty() && (size + length) as u64 > TAIL_BYTES {
                let name = object(shards.len() as u32);
                shards.push(Self::new(&name, std::mem::take(&mut current))?);
                size = HEADER_BYTES;
            }
            size += length;
            current.push(entry);
        }
        if !current.is_empty() {
            let name = object(shards.len() as u32);
            shards.push(Self::new(&name, current)?);
        }
        Ok(shards)
    }

    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let size = self
            .entries
            .iter()
            .map(WriterEntry::encoded_len)
            .sum::<usize>();
        let mut out = Vec::with_capacity(HEADER_BYTES + size);
        out.extend_from_slice(MAGIC);
        // An entry takes 77 bytes and the shard at most 524 288.
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.digest());
            out.push(entry.kind.code());
            for name in [entry.native_text(), entry.parent_text()] {
                // At most 65 535, checked.
                out.extend_from_slice(&(name.len() as u16).to_le_bytes());
                out.extend_from_slice(name.as_bytes());
            }
            out.extend_from_slice(&entry.parent_version.to_le_bytes());
            out.extend_from_slice(&entry.head_version.to_le_bytes());
            out.extend_from_slice(&entry.head.to_bytes());
            out.extend_from_slice(&entry.first_file.to_le_bytes());
            out.extend_from_slice(&entry.files.to_le_bytes());
        }
        out
    }

    /// Decode and check an object; `object` names it in the [`Error::Internal`].
    pub fn decode(object: &str, bytes: &[u8]) -> Result<Self> {
        if bytes.len() as u64 > TAIL_BYTES {
            return Err(Error::internal(format!(
                "{object} has {} bytes, above {TAIL_BYTES}",
                bytes.len()
            )));
        }
        let mut at = Bytes::open(object, bytes, MAGIC)?;
        let count = at.u32()? as usize;
        if count > at.remaining() / ENTRY_BYTES {
            return Err(at.bad(format_args!("{count} entries cannot fit")));
        }
        let named = |text: &str| (!text.is_empty()).then(|| text.to_string());
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let _digest: [u8; 32] = at.array()?;
            let code = at.u8()?;
            entries.push(WriterEntry {
                kind: ChainKind::from_code(code)
                    .ok_or_else(|| at.bad(format_args!("kind {code} of a writer")))?,
                native: named(at.text()?),
                parent: named(at.text()?),
                parent_version: at.u64()?,
                head_version: at.u64()?,
                head: at.ulid()?,
                first_file: at.u32()?,
                files: at.u32()?,
            });
        }
        at.finish()?;
        let shard = Self::new(object, entries)?;
        // This also proves that each stored digest is the digest of the stored name.
        if shard.encode() != bytes {
            return Err(Error::internal(format!(
                "{object} does not re-encode to itself"
            )));
        }
        Ok(shard)
    }

    /// The entries in order.
    pub fn entries(&self) -> &[WriterEntry] {
        &self.entries
    }
}
