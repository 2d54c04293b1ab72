//! `OGLD0001`: the directory of the legacy area (`docs/format/history.md` 7.9).
//!
//! It is created last, so its existence implies that every object it lists was created.

use ulid::Ulid;

use super::bytes::Bytes;
use super::layout::LEGACY_LAYOUT_VERSION;
use crate::digest;
use crate::error::{Error, Result};
use crate::history::path::LEGACY_MAX_FILES;
use crate::model::measure::{HISTORY_BLOCK_SLOTS, TAIL_BYTES};

const MAGIC: &[u8; 8] = b"OGLD0001";
const HEADER_BYTES: u64 = 56;
const FILE_BYTES: u64 = 52;
const ID_SHARD_BYTES: u64 = 68;
const WRITER_SHARD_BYTES: u64 = 100;
const PARENT_BYTES: u64 = 16;
const TRAILER_BYTES: usize = 32;
/// The name of the object in messages.
const OBJECT: &str = "__history/legacy/locator/directory.oglx";

/// One data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileListing {
    /// `graph_manifest_version` of its first record.
    pub first_version: u64,
    /// `graph_manifest_version` of its last record.
    pub last_version: u64,
    /// Its rows.
    pub rows: u32,
    /// Record digest (7.6).
    pub digest: [u8; 32],
}

/// One id shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdShardListing {
    /// Its first id.
    pub first: Ulid,
    /// Its last id.
    pub last: Ulid,
    /// Its entries.
    pub entries: u32,
    /// SHA-256 of the object.
    pub sha256: [u8; 32],
}

/// One writer shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterShardListing {
    /// Its first name digest.
    pub first: [u8; 32],
    /// Its last name digest.
    pub last: [u8; 32],
    /// Its entries.
    pub entries: u32,
    /// SHA-256 of the object.
    pub sha256: [u8; 32],
}

/// The decoded directory. Entry *n* of each list describes object number *n*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Stamp of the source.
    pub source_stamp: u32,
    /// Attempt of the upgrade intent.
    pub attempt: Ulid,
    /// Commits of all data files.
    pub commits: u64,
    /// Data files.
    pub files: Vec<FileListing>,
    /// Id shards.
    pub id_shards: Vec<IdShardListing>,
    /// Writer shards.
    pub writer_shards: Vec<WriterShardListing>,
    /// Merged parents some commit names and no ref holds, ascending.
    pub absent_parents: Vec<Ulid>,
}

/// The size of a directory with these counts; saturating.
fn size(files: u64, ids: u64, writers: u64, parents: u64) -> u64 {
    [
        files.saturating_mul(FILE_BYTES),
        ids.saturating_mul(ID_SHARD_BYTES),
        writers.saturating_mul(WRITER_SHARD_BYTES),
        parents.saturating_mul(PARENT_BYTES),
    ]
    .iter()
    .fold(HEADER_BYTES + TRAILER_BYTES as u64, |sum, n| {
        sum.saturating_add(*n)
    })
}

impl Directory {
    /// Bytes the encoded directory takes.
    pub fn encoded_len(&self) -> u64 {
        size(
            self.files.len() as u64,
            self.id_shards.len() as u64,
            self.writer_shards.len() as u64,
            self.absent_parents.len() as u64,
        )
    }

    /// The object's bytes, checked. Above 524 288 bytes is [`Error::Limit`], every other violation
    /// [`Error::Internal`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        let length = self.encoded_len();
        if length > TAIL_BYTES {
            return Err(Error::limit(
                "the size of the legacy directory in bytes",
                TAIL_BYTES,
                length,
            ));
        }
        self.check()?;
        Ok(self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_len() as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&LEGACY_LAYOUT_VERSION.to_le_bytes());
        out.extend_from_slice(&self.source_stamp.to_le_bytes());
        out.extend_from_slice(&self.attempt.to_bytes());
        out.extend_from_slice(&self.commits.to_le_bytes());
        // The object is at most 524 288 bytes, so each count fits.
        for count in [
            self.files.len(),
            self.id_shards.len(),
            self.writer_shards.len(),
            self.absent_parents.len(),
        ] {
            out.extend_from_slice(&(count as u32).to_le_bytes());
        }
        for file in &self.files {
            out.extend_from_slice(&file.first_version.to_le_bytes());
            out.extend_from_slice(&file.last_version.to_le_bytes());
            out.extend_from_slice(&file.rows.to_le_bytes());
            out.extend_from_slice(&file.digest);
        }
        for shard in &self.id_shards {
            out.extend_from_slice(&shard.first.to_bytes());
            out.extend_from_slice(&shard.last.to_bytes());
            out.extend_from_slice(&shard.entries.to_le_bytes());
            out.extend_from_slice(&shard.sha256);
        }
        for shard in &self.writer_shards {
            out.extend_from_slice(&shard.first);
            out.extend_from_slice(&shard.last);
            out.extend_from_slice(&shard.entries.to_le_bytes());
            out.extend_from_slice(&shard.sha256);
        }
        for parent in &self.absent_parents {
            out.extend_from_slice(&parent.to_bytes());
        }
        let trailer = digest::sha256(&out);
        out.extend_from_slice(&trailer);
        out
    }

    /// Decode and check an object. Every violation is [`Error::Internal`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let length = bytes.len() as u64;
        if length < HEADER_BYTES + TRAILER_BYTES as u64 || length > TAIL_BYTES {
            return Err(Error::internal(format!("{OBJECT} has {length} bytes")));
        }
        let (body, trailer) = bytes.split_at(bytes.len() - TRAILER_BYTES);
        let mut at = Bytes::open(OBJECT, body, MAGIC)?;
        if digest::sha256(body) != *trailer {
            return Err(at.bad("its trailer does not match its bytes"));
        }
        let version = at.u32()?;
        if version != LEGACY_LAYOUT_VERSION {
            return Err(at.bad(format_args!(
                "layout version {version}, expected {LEGACY_LAYOUT_VERSION}"
            )));
        }
        let source_stamp = at.u32()?;
        let attempt = at.ulid()?;
        let commits = at.u64()?;
        let counts = [at.u32()?, at.u32()?, at.u32()?, at.u32()?];
        let [files, ids, writers, parents] = counts.map(u64::from);
        if counts.iter().any(|c| u64::from(*c) > length)
            || size(files, ids, writers, parents) != length
        {
            return Err(at.bad(format_args!(
                "its counts {counts:?} do not take {length} bytes"
            )));
        }
        let mut directory = Self {
            source_stamp,
            attempt,
            commits,
            files: Vec::with_capacity(files as usize),
            id_shards: Vec::with_capacity(ids as usize),
            writer_shards: Vec::with_capacity(writers as usize),
            absent_parents: Vec::with_capacity(parents as usize),
        };
        for _ in 0..files {
            directory.files.push(FileListing {
                first_version: at.u64()?,
                last_version: at.u64()?,
                rows: at.u32()?,
                digest: at.array()?,
            });
        }
        for _ in 0..ids {
            directory.id_shards.push(IdShardListing {
                first: at.ulid()?,
                last: at.ulid()?,
                entries: at.u32()?,
                sha256: at.array()?,
            });
        }
        for _ in 0..writers {
            directory.writer_shards.push(WriterShardListing {
                first: at.array()?,
                last: at.array()?,
                entries: at.u32()?,
                sha256: at.array()?,
            });
        }
        for _ in 0..parents {
            directory.absent_parents.push(at.ulid()?);
        }
        at.finish()?;
        directory.check()?;
        if directory.bytes() != bytes {
            return Err(Error::internal(format!(
                "{OBJECT} does not re-encode to itself"
            )));
        }
        Ok(directory)
    }

    fn check(&self) -> Result<()> {
        let bad = |what: String| Error::internal(format!("{OBJECT}: {what}"));
        if self.files.len() > LEGACY_MAX_FILES as usize {
            return Err(bad(format!("{} data files", self.files.len())));
        }
        let mut rows = 0u64;
        for (n, file) in self.files.iter().enumerate() {
            if !(1..=HISTORY_BLOCK_SLOTS).contains(&file.rows)
                || file.first_version > file.last_version
            {
                return Err(bad(format!("data file {n} is listed as {file:?}")));
            }
            rows = rows.saturating_add(u64::from(file.rows));
        }
        let mut entries = 0u64;
        for (n, shard) in self.id_shards.iter().enumerate() {
            let one = shard.entries == 1;
            if shard.entries == 0 || shard.first > shard.last || (one && shard.first != shard.last)
            {
                return Err(bad(format!("id shard {n} is listed as {shard:?}")));
            }
            entries = entries.saturating_add(u64::from(shard.entries));
        }
        if let Some(n) = self
            .id_shards
            .windows(2)
            .position(|p| p[0].last >= p[1].first)
        {
            return Err(bad(format!("id shards {n} and {} overlap", n + 1)));
        }
        if rows != self.commits || entries != self.commits {
            return Err(bad(format!(
                "{} commits, {rows} rows and {entries} id entries",
                self.commits
            )));
        }
        for (n, shard) in self.writer_shards.iter().enumerate() {
            if shard.entries == 0 || shard.first > shard.last {
                return Err(bad(format!("writer shard {n} is listed as {shard:?}")));
            }
        }
        // Two entries of one digest may lie in neighbouring shards.
        if let Some(n) = self
            .writer_shards
            .windows(2)
            .position(|p| p[0].last > p[1].first)
        {
            return Err(bad(format!("writer shards {n} and {} overlap", n + 1)));
        }
        if let Some(p) = self.absent_parents.windows(2).find(|p| p[0] >= p[1]) {
            return Err(bad(format!("absent parent {} follows {}", p[1], p[0])));
        }
        Ok(())
    }

    /// The number of the one id shard that can hold `id`.
    pub fn id_shard_of(&self, id: Ulid) -> Option<u32> {
        let n = self.id_shards.partition_point(|s| s.last < id);
        let shard = self.id_shards.get(n)?;
        (shard.first <= id).then_some(n as u32)
    }

    /// The numbers of the writer shards that can hold a name of this digest.
    pub fn writer_shards_of(&self, digest: &[u8; 32]) -> std::ops::Range<u32> {
        let from = self.writer_shards.partition_point(|s| s.last < *digest);
        let to = self.writer_shards.partition_point(|s| s.first <= *digest);
        from as u32..to as u32
    }
}
