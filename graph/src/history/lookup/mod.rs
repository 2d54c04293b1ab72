//! Finding commits by id (`docs/format/history.md` 9.1 and 9.2).
//!
//! [`HistoryReader`] is a handle over one root with a bounded cache of immutable objects. It remembers
//! whether the root has a legacy directory; no other absence and no listing is kept.

mod addressed;
mod budget;
mod cache;
mod fetch;
mod found;
mod opaque;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ulid::Ulid;

pub use budget::{DEFAULT_LINEAGE_BYTES, KEY_BYTES, ROW_CHARGE};
pub use cache::CACHE_BYTES;

use budget::Budget;
use cache::Cache;
pub(super) use fetch::Row;
use found::Found;

use super::commit_id::BlockAddress;
use super::legacy::{Directory, IdShard, WriterShard, listed_shard, read_directory};
use super::path::{ExtentKey, ObjectKey};
use crate::error::{Error, Result};
use crate::model::{Commit, HistoryRecord};
use crate::store::Root;
use crate::ulids;

/// What a handle knows of the legacy directory.
#[derive(Debug, Clone, Default)]
enum LegacyArea {
    #[default]
    Unknown,
    Absent,
    Present(Arc<Directory>),
}

#[derive(Debug, Default)]
struct State {
    cache: Cache,
    legacy: LegacyArea,
}

/// Reads the history of one root.
#[derive(Debug)]
pub struct HistoryReader {
    root: Root,
    state: Mutex<State>,
}

impl HistoryReader {
    /// A handle over `root`. Nothing is read yet.
    pub fn new(root: Root) -> Self {
        Self {
            root,
            state: Mutex::default(),
        }
    }

    /// The root this handle reads.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Forget everything; needed when the whole root was restored, or the upgrade just wrote the
    /// directory.
    pub fn clear(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held leaves at most a missing cache entry.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lineage of these commits, by id, within `budget` bytes. Commits that share an object with a
    /// wanted one may be handed back too; an id that no object holds is missing from the answer. Running
    /// out of budget is [`Error::Internal`].
    pub async fn lineage(
        &self,
        ids: &BTreeSet<String>,
        budget: Option<u64>,
    ) -> Result<BTreeMap<String, Commit>> {
        self.find(ids, &mut Budget::new(budget)).await
    }

    /// The records of these commits, by id, tables in identity order. An id that no object holds is
    /// missing from the answer.
    pub async fn records(&self, ids: &BTreeSet<String>) -> Result<BTreeMap<String, HistoryRecord>> {
        let mut rows: BTreeMap<String, HistoryRecord> =
            self.find(ids, &mut Budget::new(None)).await?;
        rows.retain(|id, _| ids.contains(id));
        Ok(rows)
    }

    /// One commit without its tables; `None` when no object holds it.
    pub async fn commit(&self, id: &str) -> Result<Option<Commit>> {
        let ids = BTreeSet::from([id.to_string()]);
        let mut rows = self.lineage(&ids, Some(DEFAULT_LINEAGE_BYTES)).await?;
        Ok(rows.remove(id))
    }

    /// One record; `None` when no object holds it.
    pub async fn record(&self, id: &str) -> Result<Option<HistoryRecord>> {
        let ids = BTreeSet::from([id.to_string()]);
        Ok(self.records(&ids).await?.remove(id))
    }

    async fn find<R: Row>(
        &self,
        ids: &BTreeSet<String>,
        budget: &mut Budget,
    ) -> Result<BTreeMap<String, R>> {
        budget.admit_ids(ids.len())?;
        let mut addressed: BTreeMap<Ulid, Vec<BlockAddress>> = BTreeMap::new();
        let mut opaque: BTreeSet<&str> = BTreeSet::new();
        for id in ids {
            match BlockAddress::parse(id)? {
                Some(address) => addressed.entry(address.block).or_default().push(address),
                None if id.is_empty() => return Err(Error::internal("a commit id is empty")),
                None => {
                    opaque.insert(id);
                }
            }
        }
        let mut found = Found::default();
        for (block, wanted) in addressed {
            self.find_in_block(block, &wanted, budget, &mut found)
                .await?;
        }
        self.find_opaque(opaque, budget, &mut found).await?;
        let rows = found.into_rows();
        budget.charge(ROW_CHARGE.saturating_mul(rows.len() as u64))?;
        Ok(rows)
    }

    /// The legacy directory; `None` when the root has no legacy area. Read once a handle.
    pub async fn directory(&self) -> Result<Option<Arc<Directory>>> {
        self.directory_within(&mut Budget::new(None)).await
    }

    async fn directory_within(&self, budget: &mut Budget) -> Result<Option<Arc<Directory>>> {
        let known = self.state().legacy.clone();
        match known {
            LegacyArea::Present(directory) => return Ok(Some(directory)),
            LegacyArea::Absent => return Ok(None),
            LegacyArea::Unknown => {}
        }
        budget.charge(KEY_BYTES)?;
        let read = read_directory(&self.root).await?;
        let directory = read.map(|(directory, _)| Arc::new(directory));
        if let Some(directory) = &directory {
            budget.charge(directory.encoded_len())?;
        }
        self.state().legacy = match &directory {
            Some(directory) => LegacyArea::Present(directory.clone()),
            None => LegacyArea::Absent,
        };
        Ok(directory)
    }

    /// Whether a merged parent may be held nowhere: the legacy directory lists it as absent.
    pub async fn is_absent_parent(&self, id: &str) -> Result<bool> {
        let Some(id) = ulids::parse_canonical(id) else {
            return Ok(false);
        };
        Ok(self
            .directory()
            .await?
            .is_some_and(|d| d.absent_parents.binary_search(&id).is_ok()))
    }

    async fn id_shard(
        &self,
        directory: &Directory,
        n: u32,
        budget: &mut Budget,
    ) -> Result<Arc<IdShard>> {
        let key = ObjectKey::IdShard(n).key();
        budget.charge(KEY_BYTES)?;
        if let Some(cache::Held::Ids(shard)) = self.state().cache.get(&key) {
            return Ok(shard);
        }
        let listing = directory
            .id_shards
            .get(n as usize)
            .ok_or_else(|| Error::internal(format!("{key} is not listed")))?;
        let bytes = listed_shard(&self.root, &key, &listing.sha256).await?;
        budget.charge(bytes.len() as u64)?;
        let shard = Arc::new(IdShard::decode(&key, &bytes)?);
        self.state()
            .cache
            .insert(key, cache::Held::Ids(shard.clone()));
        Ok(shard)
    }

    pub(super) async fn writer_shard(
        &self,
        directory: &Directory,
        n: u32,
    ) -> Result<Arc<WriterShard>> {
        let key = ObjectKey::WriterShard(n).key();
        if let Some(cache::Held::Writers(shard)) = self.state().cache.get(&key) {
            return Ok(shard);
        }
        let listing = directory
            .writer_shards
            .get(n as usize)
            .ok_or_else(|| Error::internal(format!("{key} is not listed")))?;
        let bytes = listed_shard(&self.root, &key, &listing.sha256).await?;
        let shard = Arc::new(WriterShard::decode(&key, &bytes)?);
        self.state()
            .cache
            .insert(key, cache::Held::Writers(shard.clone()));
        Ok(shard)
    }

    /// The rows of one extent outside any budget; `None` when it does not exist.
    pub(super) async fn extent<R: Row>(&self, key: &ExtentKey) -> Result<Option<Arc<Vec<R>>>> {
        R::fetch(self, key, &mut Budget::new(None)).await
    }
}

/// The merged view of several extents, for readers that list.
pub(super) fn merge<R: Row>(rows: &mut Found<R>, key: &ExtentKey, extent: &[R]) -> Result<()> {
    extent.iter().try_for_each(|row| rows.add(key, row))
}

pub(super) use found::Found as MergedRows;
