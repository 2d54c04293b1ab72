//! From chains to the legacy objects, without storage (`docs/format/history.md` 7.3 to 7.10).
//!
//! The plan is a pure function of chains, layout, attempt, source stamp and absent parents, so a resumed run
//! reproduces it and compares.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ulid::Ulid;

use super::chain::{Chain, ordered};
use super::digest::record_digest;
use super::directory::{Directory, FileListing, IdShardListing, WriterShardListing};
use super::id_shard::{IdEntry, IdShard};
use super::layout::{LegacyLayout, LegacyPlan};
use super::writer_shard::{WriterEntry, WriterShard};
use crate::digest::{sha256, sha256_hex};
use crate::error::{Error, Result};
use crate::history::path::{LEGACY_MAX_FILES, ObjectKey};
use crate::model::HistoryRecord;
use crate::model::measure::{MAX_RECORD_BYTES, commit_bytes, record_bytes};
use crate::ulids;

/// Every legacy object of an upgrade. The records are shared with the chains.
#[derive(Debug, Clone)]
pub struct PlannedObjects {
    /// What the intent binds.
    pub plan: LegacyPlan,
    /// Records of data file *n*, canonical.
    pub data_files: Vec<Vec<Arc<HistoryRecord>>>,
    /// Id shard *n*.
    pub id_shards: Vec<Bytes>,
    /// Writer shard *n*.
    pub writer_shards: Vec<Bytes>,
    /// The directory.
    pub directory: Bytes,
    /// Sum of `record_bytes` over all records.
    pub record_bytes: u64,
}

/// Plan the legacy objects. A directory above its bound is [`Error::Limit`] (and nothing else is);
/// inconsistent chains and records over their bounds are [`Error::Internal`].
pub fn plan(
    chains: &[Chain],
    layout: &LegacyLayout,
    attempt: Ulid,
    source_stamp: u32,
    absent_parents: &BTreeSet<Ulid>,
) -> Result<PlannedObjects> {
    layout.check()?;
    let mut cutter = Cutter {
        layout,
        files: Vec::new(),
        ids: Vec::new(),
        record_bytes: 0,
    };
    let mut writers = Vec::new();
    let chains = ordered(chains)?;
    for chain in chains {
        let first_file = cutter.next_number()?;
        let head = cutter.cut(chain)?;
        writers.push(WriterEntry {
            kind: chain.kind,
            native: chain.native.clone(),
            parent: chain.parent.clone(),
            parent_version: chain.parent_version,
            head_version: chain.head_version,
            head,
            first_file,
            files: cutter.next_number()? - first_file,
        });
    }
    let Cutter {
        files: data_files,
        mut ids,
        record_bytes,
        ..
    } = cutter;
    let commits = ids.len() as u64;
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(Error::internal(format!(
            "commit {} stands in two places",
            pair[0].id
        )));
    }

    let mut files = Vec::with_capacity(data_files.len());
    for records in &data_files {
        files.push(listing(records)?);
    }
    let mut id_shards = Vec::new();
    let mut id_listings = Vec::new();
    for (n, chunk) in ids.chunks(layout.shard_entries as usize).enumerate() {
        let name = ObjectKey::IdShard(n as u32).key();
        let shard = IdShard::new(&name, chunk.to_vec())?;
        let bytes = Bytes::from(shard.encode());
        if let (Some(first), Some(last)) = (chunk.first(), chunk.last()) {
            id_listings.push(IdShardListing {
                first: first.id,
                last: last.id,
                entries: chunk.len() as u32,
                sha256: sha256(&bytes),
            });
        }
        id_shards.push(bytes);
    }
    drop(ids);
    let mut writer_shards = Vec::new();
    let mut writer_listings = Vec::new();
    for shard in WriterShard::cut(writers, |n| ObjectKey::WriterShard(n).key())? {
        let bytes = Bytes::from(shard.encode());
        if let (Some(first), Some(last)) = (shard.entries().first(), shard.entries().last()) {
            writer_listings.push(WriterShardListing {
                first: first.digest(),
                last: last.digest(),
                entries: shard.entries().len() as u32,
                sha256: sha256(&bytes),
            });
        }
        writer_shards.push(bytes);
    }
    let directory = Directory {
        source_stamp,
        attempt,
        commits,
        files,
        id_shards: id_listings,
        writer_shards: writer_listings,
        absent_parents: absent_parents.iter().copied().collect(),
    };
    let directory = Bytes::from(directory.encode()?);
    Ok(PlannedObjects {
        plan: LegacyPlan {
            layout: *layout,
            commits,
            data_files: data_files.len() as u32,
            id_shards: id_shards.len() as u32,
            writer_shards: writer_shards.len() as u32,
            directory_sha256: sha256_hex(&directory),
        },
        data_files,
        id_shards,
        writer_shards,
        directory,
        record_bytes,
    })
}

fn listing(records: &[Arc<HistoryRecord>]) -> Result<FileListing> {
    match (records.first(), records.last()) {
        (Some(first), Some(last)) => Ok(FileListing {
            first_version: first.commit.graph_manifest_version,
            last_version: last.commit.graph_manifest_version,
            rows: records.len() as u32,
            digest: record_digest(records)?,
        }),
        _ => Err(Error::internal("an empty legacy data file was planned")),
    }
}

struct Cutter<'a> {
    layout: &'a LegacyLayout,
    files: Vec<Vec<Arc<HistoryRecord>>>,
    ids: Vec<IdEntry>,
    record_bytes: u64,
}

impl Cutter<'_> {
    fn next_number(&self) -> Result<u32> {
        u32::try_from(self.files.len())
            .ok()
            .filter(|n| *n <= LEGACY_MAX_FILES)
            .ok_or_else(|| {
                Error::internal(format!("more than {LEGACY_MAX_FILES} legacy data files"))
            })
    }

    /// Cut one chain into files of its own; the id of its last record.
    fn cut(&mut self, chain: &Chain) -> Result<Ulid> {
        let mut current: Vec<Arc<HistoryRecord>> = Vec::new();
        let (mut held_commits, mut held_records) = (0u64, 0u64);
        let mut head = None;
        for record in &chain.records {
            let record = canonical(record)?;
            let commit = &record.commit;
            let bad = |what: String| {
                Error::internal(format!("commit {}: {what}", commit.graph_commit_id))
            };
            let id = ulids::parse_canonical(&commit.graph_commit_id)
                .ok_or_else(|| bad("a legacy commit id must be a canonical ULID".into()))?;
            commit.check()?;
            let (fields, whole) = (commit_bytes(commit), record_bytes(&record));
            if fields > self.layout.release_bytes || whole > MAX_RECORD_BYTES {
                return Err(bad(format!(
                    "{fields} bytes of fields and {whole} of record, above {} and {MAX_RECORD_BYTES}",
                    self.layout.release_bytes
                )));
            }
            let full = current.last().is_some_and(|last| {
                held_commits.saturating_add(fields) > self.layout.release_bytes
                    || held_records.saturating_add(whole) > self.layout.file_record_bytes
                    || current.len() >= self.layout.block_slots as usize
                    || commit.parent_commit_id.as_deref()
                        != Some(last.commit.graph_commit_id.as_str())
            });
            if full {
                self.files.push(std::mem::take(&mut current));
                (held_commits, held_records) = (0, 0);
            }
            self.ids.push(IdEntry {
                id,
                file: self.next_number()?,
                // At most 16 384.
                row: current.len() as u32,
            });
            held_commits = held_commits.saturating_add(fields);
            held_records = held_records.saturating_add(whole);
            self.record_bytes = self.record_bytes.saturating_add(whole);
            head = Some(id);
            current.push(record);
        }
        self.files.push(current);
        head.ok_or_else(|| Error::internal(format!("chain of {} is empty", chain.describe())))
    }
}

/// The canonical form: the record itself, shared, when it already is canonical.
fn canonical(record: &Arc<HistoryRecord>) -> Result<Arc<HistoryRecord>> {
    let sorted = record
        .tables
        .windows(2)
        .all(|pair| pair[0].identity < pair[1].identity);
    if sorted {
        return Ok(record.clone());
    }
    Ok(Arc::new(HistoryRecord::clone(record).canonicalize()?))
}
