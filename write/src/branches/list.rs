//! The live branches of a graph.

use futures::{StreamExt as _, TryStreamExt as _};
use graph::manifest::scan::{ReadMode, read_state};
use graph::model::names::{MAIN, SCHEMA_APPLY_LOCK};
use graph::refs;
use graph::stamp::{GuardInput, guard};
use graph::store::Root;

use crate::error::Result;

/// Heads read at once.
const CONCURRENT_READS: usize = 8;

/// One live branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Logical name.
    pub branch: String,
    /// Native ref; `None` is main.
    pub native: Option<String>,
    /// Newest version.
    pub version: u64,
    /// Effective head commit.
    pub head: String,
    /// Whether the branch itself wrote its head.
    pub published: bool,
    /// Native ref it was forked from; `None` is main, and main's own.
    pub parent: Option<String>,
    /// Version it was forked at; `None` for main.
    pub forked_at: Option<u64>,
    /// Unix seconds of its creation; `None` for main.
    pub created_at: Option<u64>,
}

/// Main first, then the live branches by name. The lock of a schema apply is not a branch.
pub async fn list(root: &Root) -> Result<Vec<Listed>> {
    let mut refs: Vec<Option<refs::NativeRef>> = vec![None];
    refs.extend(refs::live_refs(root).await?.into_iter().map(Some));
    let mut listed: Vec<Listed> = futures::stream::iter(refs)
        .map(|found| one(root, found))
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await?;
    listed.retain(|b| b.branch != SCHEMA_APPLY_LOCK);
    listed.sort_by(|a, b| (a.native.is_some(), &a.branch).cmp(&(b.native.is_some(), &b.branch)));
    Ok(listed)
}

async fn one(root: &Root, found: Option<refs::NativeRef>) -> graph::Result<Listed> {
    let named = found.as_ref();
    let version = root
        .open_manifest(named.map(|r| r.native.as_str()), None)
        .await?;
    guard(&GuardInput::of(&version, root.uri()))?;
    let state = read_state(&version, ReadMode::State).await?;
    Ok(Listed {
        branch: named.map_or(MAIN, refs::NativeRef::logical).to_string(),
        native: version.native,
        version: version.version,
        published: state.exact_head().is_some(),
        head: state.head.graph_commit_id,
        parent: named.and_then(|r| r.contents.parent_branch.clone()),
        forked_at: named.map(|r| r.contents.parent_version),
        created_at: named.map(|r| r.contents.create_at),
    })
}
