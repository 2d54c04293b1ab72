//! The commits of a branch: head and buffer, then what `__history` holds, down to genesis.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::history::first_parent_chain;
use crate::history::lookup::HistoryReader;
use crate::manifest::scan::{ReadMode, read_branch};
use crate::model::Commit;
use crate::store::Root;

/// The first-parent lineage of `branch` (`None` = main), newest first. `__history` is read only when the
/// held commits name a parent outside themselves; a first parent that is nowhere is
/// [`crate::Error::Internal`].
pub async fn commit_list(root: &Root, branch: Option<&str>) -> Result<Vec<Commit>> {
    let (_, state) = read_branch(root, branch, ReadMode::State).await?;
    let held: BTreeMap<&str, &Commit> = state
        .held_commits()
        .map(|c| (c.graph_commit_id.as_str(), c))
        .collect();
    let outside = state
        .held_commits()
        .filter_map(|c| c.parent_commit_id.as_deref())
        .any(|parent| !held.contains_key(parent));
    let archived = if outside {
        HistoryReader::new(root.clone()).full_lineage().await?
    } else {
        BTreeMap::new()
    };
    let chain = first_parent_chain(&state.head, |id| {
        held.get(id).copied().or_else(|| archived.get(id))
    })?;
    Ok(chain.into_iter().rev().cloned().collect())
}
