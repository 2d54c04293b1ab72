//! Verifying the legacy area against its directory (`docs/format/history.md` 7.12).
//!
//! Everything is read again, through no cache. Content that differs, a listed object that is missing
//! included, is [`Error::Internal`]; a read that failed is [`Error::Storage`]. One data file is held at a
//! time; what stays is 16 bytes a commit.

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

/// Verify the whole legacy area. `None` when there is no directory.
pub async fn verify(root: &Root) -> Result<Option<Verified>> {
    let Some((directory, directory_sha256)) = read_directory(root).await? else {
        return Ok(None);
    };
    check_data_listing(root, directory.files.len()).await?;
    let mut ids: Vec<Vec<Ulid>> = Vec::with_capacity(directory.files.len());
    let mut rows = 0u64;
    for (n, file) in directory.files.iter().enumerate() {
        let extent = ExtentKey::LegacyData(n as u32);
        let held = verify_data_file(root, extent, file.rows, &file.digest).await?;
        rows += held.len() as u64;
        ids.push(held);
    }
    let mut entries = 0u64;
    for (n, listing) in directory.id_shards.iter().enumerate() {
        let key = ObjectKey::IdShard(n as u32).key();
        let bytes = listed_shard(root, &key, &listing.sha256).await?;
        let shard = IdShard::decode(&key, &bytes)?;
        for entry in shard.entries() {
            let held = ids
                .get(entry.file as usize)
                .and_then(|file| file.get(entry.row as usize));
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
        entries += shard.entries().len() as u64;
    }
    if rows != directory.commits || entries != directory.commits {
        return Err(Error::internal(format!(
            "the legacy area holds {rows} rows and {entries} id entries for {} commits",
            directory.commits
        )));
    }
    for (n, listing) in directory.writer_shards.iter().enumerate() {
        let key = ObjectKey::WriterShard(n as u32).key();
        let bytes = listed_shard(root, &key, &listing.sha256).await?;
        for writer in WriterShard::decode(&key, &bytes)?.entries() {
            let last = writer
                .last_file()
                .and_then(|file| ids.get(file as usize))
                .and_then(|file| file.last());
            if last != Some(&writer.head) {
                return Err(Error::internal(format!(
                    "{key} names commit {} as head of writer '{}', its last data file ends with {}",
                    writer.head,
                    writer.native.as_deref().unwrap_or("main"),
                    last.map_or_else(|| "nothing".to_string(), Ulid::to_string)
                )));
            }
        }
    }
    Ok(Some(Verified {
        directory,
        directory_sha256,
    }))
}

/// The data files under `legacy/data/` must be exactly `0 .. files`.
async fn check_data_listing(root: &Root, files: usize) -> Result<()> {
    let mut seen = vec![false; files];
    let mut listing = Listing::default();
    let mut keys = root.list(HISTORY_DIR)?;
    while let Some((key, _)) = keys.try_next().await? {
        if let Listed::Extent(ExtentKey::LegacyData(n)) = listing.classify(&key)? {
            match seen.get_mut(n as usize) {
                Some(slot) => *slot = true,
                None => {
                    return Err(Error::internal(format!(
                        "{key} exists, the directory lists {files} data files"
                    )));
                }
            }
        }
    }
    match seen.iter().position(|present| !present) {
        None => Ok(()),
        Some(n) => Err(Error::internal(format!(
            "{} is listed in the directory and missing",
            ExtentKey::LegacyData(n as u32).key()
        ))),
    }
}

async fn verify_data_file(
    root: &Root,
    extent: ExtentKey,
    rows: u32,
    digest: &[u8; 32],
) -> Result<Vec<Ulid>> {
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
    Ok(ids)
}
