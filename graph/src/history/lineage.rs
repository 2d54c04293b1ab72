//! The full lineage by listing (`docs/format/history.md` 9.4).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::TryStreamExt as _;

use super::lookup::{HistoryReader, MergedRows, merge};
use super::path::{ExtentKey, HISTORY_DIR, Listed, Listing};
use crate::error::{Error, Result};
use crate::model::{Commit, HistoryRecord};

impl HistoryReader {
    /// Every extent of the root, in key order of their kinds. A key outside the grammar is
    /// [`Error::Internal`].
    pub async fn list_extents(&self) -> Result<BTreeSet<ExtentKey>> {
        let mut listing = Listing::default();
        let mut extents = BTreeSet::new();
        let mut keys = self.root().list(HISTORY_DIR)?;
        while let Some((key, _)) = keys.try_next().await? {
            match listing.classify(&key)? {
                Listed::Extent(extent) => {
                    extents.insert(extent);
                }
                Listed::Skipped | Listed::Temporary => {}
            }
        }
        Ok(extents)
    }

    /// Every commit under `__history/`, by id: the union over all branches, without order. Copies must
    /// be equal and a slot holds one id ([`Error::Internal`] otherwise).
    pub async fn full_lineage(&self) -> Result<BTreeMap<String, Commit>> {
        let mut rows = MergedRows::<Commit>::default();
        for extent in self.list_extents().await? {
            let commits = self.listed_rows::<Commit>(&extent).await?;
            merge(&mut rows, &extent, &commits)?;
        }
        Ok(rows.into_rows())
    }

    /// Hand every extent's records to `visit`, one object at a time; a commit that stands in two objects
    /// is seen twice and compared by the visitor. Nothing is kept beside the cache.
    pub async fn for_each_extent(
        &self,
        mut visit: impl FnMut(&ExtentKey, &[HistoryRecord]) -> Result<()> + Send,
    ) -> Result<()> {
        for extent in self.list_extents().await? {
            let records = self.listed_rows::<HistoryRecord>(&extent).await?;
            visit(&extent, &records)?;
        }
        Ok(())
    }

    async fn listed_rows<R: super::lookup::Row>(
        &self,
        extent: &ExtentKey,
    ) -> Result<std::sync::Arc<Vec<R>>> {
        self.extent::<R>(extent)
            .await?
            .ok_or_else(|| Error::internal(format!("{} was listed and is gone", extent.key())))
    }
}

/// The commits of a branch, oldest first: from `head` along `parent_commit_id` through whatever `held`
/// answers (the branch's buffer, then the lineage of the root). A first parent that is nowhere, and a
/// cycle, are [`Error::Internal`].
pub fn first_parent_chain<'a>(
    head: &'a Commit,
    held: impl Fn(&str) -> Option<&'a Commit>,
) -> Result<Vec<&'a Commit>> {
    let mut chain = vec![head];
    let mut seen = HashSet::from([head.graph_commit_id.as_str()]);
    let mut at = head;
    while let Some(parent) = &at.parent_commit_id {
        let next = held(parent).ok_or_else(|| {
            Error::internal(format!(
                "commit {parent}, first parent of {}, is held nowhere",
                at.graph_commit_id
            ))
        })?;
        if !seen.insert(next.graph_commit_id.as_str()) {
            return Err(Error::internal(format!(
                "the first parents of {} form a cycle through {parent}",
                head.graph_commit_id
            )));
        }
        chain.push(next);
        at = next;
    }
    chain.reverse();
    Ok(chain)
}
