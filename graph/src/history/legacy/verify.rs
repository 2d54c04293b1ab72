//! Verifying the legacy area against its directory (`docs/format/history.md` 7.12).
//!
//! Everything is read again, through no cache. Content that differs, a listed object that is missing
//! included, is [`Error::Internal`]; a read that failed is [`Error::Storage`]. One data file is held at a
//! time; what stays is 16 bytes a commit.

use std::collections::BTreeSet;

use futures::TryStreamExt as _;
use ulid::Ulid;

use super::digest::record_digest;
use super::directory::Directory;
use super::id_shard::IdShard;
use super::layout::LegacyPlan;
use super::writer_shard::WriterShard;
use crate::digest::{sha256, sha256_hex};
use crate::error::{Error, Result};
use crate::history::extent::{check_address, decode_records};
use crate::history::limit_as_internal;
use crate::history::path::{ExtentKey, HISTORY_DIR, Listed, Listing, ObjectKey};
use crate::model::HistoryRecord;
use crate::model::measure::{MAX_OBJECT_BYTES, TAIL_BYTES};
use crate::store::Root;
use crate::ulids;

/// A legacy area that agrees with its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The directory.
    pub directory: Directory,
    /// SHA-256 of the whole directory object.
    pub directory_sha256: String,
}

impl Verified {
    /// The four counts: commits, data files, id shards, writer shards.
    pub fn counts(&self) -> (u64, u32, u32, u32) {
        let d = &self.directory;
        // The directory has at most 524 288 bytes.
        (
            d.commits,
            d.files.len() as u32,
            d.id_shards.len() as u32,
            d.writer_shards.len() as u32,
        )
    }

    /// Require the directory's digest and counts to be those of `plan` ([`Error::Internal`] otherwise).
    pub fn check_plan(&self, plan: &LegacyPlan) -> Result<()> {
        let planned = (
            plan.commits,
            plan.data_files,
            plan.id_shards,
            plan.writer_shards,
        );
        if self.directory_sha256 != plan.directory_sha256 {
            return Err(Error::internal(format!(
                "the legacy directory hashes to {}, the intent binds {}",
                self.directory_sha256, plan.directory_sha256
            )));
        }
        if self.counts() != planned {
            return Err(Error::internal(format!(
                "the legacy directory lists {:?} commits, files, id and writer shards, the intent \
                 binds {planned:?}",
                self.counts()
            )));
        }
        Ok(())
    }
}

/// Read and decode the directory; `None` means that the root has no legacy area.
pub async fn read_directory(root: &Root) -> Result<Option<(Directory, String)>> {
    let found = root
        .get(&ObjectKey::Directory.key(), TAIL_BYTES)
        .await
        .map_err(limit_as_internal)?;
    let Some(bytes) = found else {
        return Ok(None);
    };
    Ok(Some((Directory::decode(&bytes)?, sha256_hex(&bytes))))
}

/// Read a listed object whole; its absence is a content difference.
async fn listed(root: &Root, key: &str, max: u64) -> Result<bytes::Bytes> {
    root.get(key, max)
        .await
        .map_err(limit_as_internal)?
        .ok_or_else(|| Error::internal(format!("{key} is listed in the directory and missing")))
}

/// A listed shard: its bytes must hash to the listed digest.
pub(in crate::history) async fn listed_shard(
    root: &Root,
    key: &str,
    sha: &[u8; 32],
) -> Result<bytes::Bytes> {
    let bytes = listed(root, key, TAIL_BYTES).await?;
    if sha256(&bytes) != *sha {
        return Err(Error::internal(format!(
            "{key} hashes to {}, the directory lists {}",
            sha256_hex(&bytes),
            hex::encode(sha)
        )));
    }
    Ok(bytes)
}

/// Sees a legacy area while it is read against its directory.
pub trait Inspector: Send {
    /// A data file passed every check; its canonical records in row order.
    fn data_file(&mut self, _number: u32, _records: Vec<HistoryRecord>) -> Result<()> {
        Ok(())
    }

    /// An id shard passed every check.
    fn id_shard(&mut self, _number: u32, _shard: &IdShard) -> Result<()> {
        Ok(())
    }

    /// A writer shard passed every check.
    fn writer_shard(&mut self, _number: u32, _shard: &WriterShard) -> Result<()> {
        Ok(())
    }

    /// `object` violates a check, or could not be read. An error of this call stops the inspection there.
    fn violation(&mut self, object: &str, error: Error) -> Result<()>;
}

/// Stops at the first violation.
struct First;

impl Inspector for First {
    fn violation(&mut self, _object: &str, error: Error) -> Result<()> {
        Err(error)
    }
}

/// Verify the whole legacy area; the first violation is the error. `None` when there is no directory.
pub async fn verify(root: &Root) -> Result<Option<Verified>> {
    let Some((directory, directory_sha256)) = read_directory(root).await? else {
        return Ok(None);
    };
    let listed = list_data_files(root).await?;
    inspect(root, &directory, &listed, &mut First).await?;
    Ok(Some(Verified {
        directory,
        directory_sha256,
    }))
}

/// Read everything `directory` lists and hand it, or what is wrong with it, to `inspector`. `data_files` are
/// the numbers that stand under `legacy/data/`.
pub async fn inspect(
    root: &Root,
    directory: &Directory,
    data_files: &BTreeSet<u32>,
    inspector: &mut dyn Inspector,
) -> Result<()> {
    let files = directory.files.len();
    for n in data_files.iter().filter(|n| **n as usize >= files) {
        let key = ExtentKey::LegacyData(*n).key();
        let error = Error::internal(format!(
            "{key} exists, the directory lists {files} data files"
        ));
        inspector.violation(&key, error)?;
    }
    // `None` stands for a file that could not be read: what the shards say of it is not judged.
    let mut ids: Vec<Option<Vec<Ulid>>> = Vec::with_capacity(files);
    for (n, file) in directory.files.iter().enumerate() {
        let extent = ExtentKey::LegacyData(n as u32);
        match verify_data_file(root, extent, file.rows, &file.digest).await {
            Ok((held, records)) => {
                ids.push(Some(held));
                inspector.data_file(n as u32, records)?;
            }
            Err(e) => {
                ids.push(None);
                inspector.violation(&extent.key(), e)?;
            }
        }
    }
    let mut entries = Some(0u64);
    for (n, listing) in directory.id_shards.iter().enumerate() {
        let key = ObjectKey::IdShard(n as u32).key();
        match verify_id_shard(root, &key, &listing.sha256, &ids).await {
            Ok(shard) => {
                entries = entries.map(|sum| sum + shard.entries().len() as u64);
                inspector.id_shard(n as u32, &shard)?;
            }
            Err(e) => {
                entries = None;
                inspector.violation(&key, e)?;
            }
        }
    }
    let rows = ids
        .iter()
        .try_fold(0u64, |sum, file| Some(sum + file.as_ref()?.len() as u64));
    if let (Some(rows), Some(entries)) = (rows, entries)
        && (rows != directory.commits || entries != directory.commits)
    {
        let error = Error::internal(format!(
            "the legacy area holds {rows} rows and {entries} id entries for {} commits",
            directory.commits
        ));
        inspector.violation(&ObjectKey::Directory.key(), error)?;
    }
    for (n, listing) in directory.writer_shards.iter().enumerate() {
        let key = ObjectKey::WriterShard(n as u32).key();
        match verify_writer_shard(root, &key, &listing.sha256, &ids).await {
            Ok(shard) => inspector.writer_shard(n as u32, &shard)?,
            Err(e) => inspector.violation(&key, e)?,
        }
    }
    Ok(())
}

async fn verify_id_shard(
    root: &Root,
    key: &str,
    sha256: &[u8; 32],
    ids: &[Option<Vec<Ulid>>],
) -> Result<IdShard> {
    let bytes = listed_shard(root, key, sha256).await?;
    let shard = IdShard::decode(key, &bytes)?;
    for entry in shard.entries() {
        let held = match ids.get(entry.file as usize) {
            Some(None) => continue,
            Some(Some(file)) => file.get(entry.row as usize),
            None => None,
        };
        if held != Some(&entry.id) {
            return Err(Error::internal(format!(
                "{key} places commit {} at row {} of data file {}, which holds {}",
                entry.id,
                entry.row,
                entry.file,
                held.map_or_else(|| "no such row".to_string(), Ulid::to_string)
            )));
        }
    }
    Ok(shard)
}

async fn verify_writer_shard(
    root: &Root,
    key: &str,
    sha256: &[u8; 32],
    ids: &[Option<Vec<Ulid>>],
) -> Result<WriterShard> {
    let bytes = listed_shard(root, key, sha256).await?;
    let shard = WriterShard::decode(key, &bytes)?;
    for writer in shard.entries() {
        let last = match writer.last_file().and_then(|file| ids.get(file as usize)) {
            Some(None) => continue,
            Some(Some(file)) => file.last(),
            None => None,
        };
        if last != Some(&writer.head) {
            return Err(Error::internal(format!(
                "{key} names commit {} as head of writer '{}', its last data file ends with {}",
                writer.head,
                writer.native.as_deref().unwrap_or("main"),
                last.map_or_else(|| "nothing".to_string(), Ulid::to_string)
            )));
        }
    }
    Ok(shard)
}

/// The numbers of the data files under `legacy/data/`.
async fn list_data_files(root: &Root) -> Result<BTreeSet<u32>> {
    let mut listed = BTreeSet::new();
    let mut listing = Listing::default();
    let mut keys = root.list(HISTORY_DIR)?;
    while let Some((key, _)) = keys.try_next().await? {
        if let Listed::Extent(ExtentKey::LegacyData(n)) = listing.classify(&key)? {
            listed.insert(n);
        }
    }
    Ok(listed)
}

async fn verify_data_file(
    root: &Root,
    extent: ExtentKey,
    rows: u32,
    digest: &[u8; 32],
) -> Result<(Vec<Ulid>, Vec<HistoryRecord>)> {
    let key = extent.key();
    let bytes = listed(root, &key, MAX_OBJECT_BYTES).await?;
    let records = decode_records(&key, bytes).await?;
    let commits: Vec<_> = records.iter().map(|r| &r.commit).collect();
    check_address(&extent, &commits)?;
    if records.len() != rows as usize {
        return Err(Error::internal(format!(
            "{key} holds {} rows, the directory lists {rows}",
            records.len()
        )));
    }
    let ids = commits
        .iter()
        .map(|c| {
            ulids::parse_canonical(&c.graph_commit_id).ok_or_else(|| {
                Error::internal(format!(
                    "{key} holds commit '{}', which is no canonical ULID",
                    c.graph_commit_id
                ))
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let records = records
        .into_iter()
        .map(HistoryRecord::canonicalize)
        .collect::<Result<Vec<_>>>()
        .map_err(|e| e.within(&key))?;
    let found = record_digest(&records)?;
    if found != *digest {
        return Err(Error::internal(format!(
            "the records of {key} hash to {}, the directory lists {}",
            hex::encode(found),
            hex::encode(digest)
        )));
    }
    Ok((ids, records))
}
