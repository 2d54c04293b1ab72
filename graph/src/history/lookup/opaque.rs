//! Commits without a block address: singletons and the legacy locator (`docs/format/history.md` 9.2, opaque
//! ids).

use std::collections::{BTreeMap, BTreeSet};

use super::budget::Budget;
use super::found::Found;
use super::{HistoryReader, LegacyArea, Row};
use crate::error::{Error, Result};
use crate::history::legacy::Directory;
use crate::history::path::ExtentKey;
use crate::ulids;

impl HistoryReader {
    /// Find opaque commits, in text order.
    pub(super) async fn find_opaque<R: Row>(
        &self,
        mut ids: BTreeSet<&str>,
        budget: &mut Budget,
        found: &mut Found<R>,
    ) -> Result<()> {
        let mut absent: Option<&str> = None;
        let unknown = matches!(self.state().legacy, LegacyArea::Unknown);
        if unknown {
            // Most graphs have no legacy area: do not ask for its directory while singletons answer.
            while let Some(id) = ids.pop_first() {
                if !self.find_singleton(id, budget, found).await? {
                    absent = Some(id);
                    break;
                }
            }
            if absent.is_none() {
                return Ok(());
            }
        } else if ids.is_empty() {
            return Ok(());
        }
        if let Some(directory) = self.directory_within(budget).await? {
            let wanted: Vec<&str> = absent.into_iter().chain(ids).collect();
            ids = self.find_located(&directory, wanted, budget, found).await?;
            if let Some(absent) = absent {
                ids.remove(absent);
            }
        }
        for id in ids {
            self.find_singleton(id, budget, found).await?;
        }
        Ok(())
    }

    async fn find_singleton<R: Row>(
        &self,
        id: &str,
        budget: &mut Budget,
        found: &mut Found<R>,
    ) -> Result<bool> {
        let key = ExtentKey::singleton(id);
        // The address check of the extent proves that its row carries an id of this digest.
        let Some(rows) = R::fetch(self, &key, budget).await? else {
            return Ok(false);
        };
        for row in rows.iter() {
            if row.commit().graph_commit_id != id {
                return Err(Error::internal(format!(
                    "{} holds commit {}, expected {id}",
                    key.key(),
                    row.commit().graph_commit_id
                )));
            }
            found.add(&key, row)?;
        }
        Ok(true)
    }

    /// Find ids through the locator; the ids it does not list are handed back.
    async fn find_located<'a, R: Row>(
        &self,
        directory: &Directory,
        wanted: Vec<&'a str>,
        budget: &mut Budget,
        found: &mut Found<R>,
    ) -> Result<BTreeSet<&'a str>> {
        let mut unlisted = BTreeSet::new();
        let mut by_shard: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for id in wanted {
            // There is no form for other ids in the locator.
            let located = ulids::parse_canonical(id)
                .and_then(|ulid| Some((directory.id_shard_of(ulid)?, ulid)));
            match located {
                Some((shard, ulid)) => by_shard.entry(shard).or_default().push((id, ulid)),
                None => {
                    unlisted.insert(id);
                }
            }
        }
        let mut by_file: BTreeMap<u32, BTreeMap<u32, &str>> = BTreeMap::new();
        for (n, ids) in by_shard {
            let shard = self.id_shard(directory, n, budget).await?;
            for (id, ulid) in ids {
                let Some(entry) = shard.find(ulid) else {
                    unlisted.insert(id);
                    continue;
                };
                let rows = by_file.entry(entry.file).or_default();
                if let Some(other) = rows.insert(entry.row, id) {
                    return Err(Error::internal(format!(
                        "the legacy locator places commits {other} and {id} at row {} of data file {}",
                        entry.row, entry.file
                    )));
                }
            }
        }
        for (file, wanted) in by_file {
            let key = ExtentKey::LegacyData(file);
            let rows = R::fetch(self, &key, budget).await?.ok_or_else(|| {
                Error::internal(format!(
                    "{} is listed in the locator and missing",
                    key.key()
                ))
            })?;
            for (row, id) in wanted {
                match rows.get(row as usize) {
                    Some(held) if held.commit().graph_commit_id == id => found.add(&key, held)?,
                    other => {
                        return Err(Error::internal(format!(
                            "{}: row {row} holds {}, the legacy locator places commit {id} there",
                            key.key(),
                            other.map_or("nothing", |r| r.commit().graph_commit_id.as_str())
                        )));
                    }
                }
            }
        }
        Ok(unlisted)
    }
}
