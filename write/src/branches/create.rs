//! Creating a branch: a shallow clone of the source version, then the ref object, created only if absent.
//!
//! The ref is the moment of creation. A stop before it leaves a tree that no ref names and that shows nothing of its
//! own; `cleanup` reclaims it. No graph commit is recorded.

use futures::TryStreamExt as _;
use graph::manifest::scan::{ReadMode, open_branch, read_state};
use graph::model::names::logical_name;
use graph::refs::{self, NativeRef};
use graph::store::{MANIFEST_DIR, ManifestVersion, Root, guarded};
use graph::{Error, stamp};
use lance::Dataset;
use ulid::Ulid;

use super::{finish_retirements, names};
use crate::error::{Result, WriteError};
use crate::gates;

/// A branch that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Logical name.
    pub branch: String,
    /// Native ref.
    pub native: String,
    /// Native ref of the source; `None` is main.
    pub parent: Option<String>,
    /// Version of the source, and the branch's first version.
    pub version: u64,
    /// Effective head.
    pub head: String,
}

/// Create `branch` at the newest version of `from` (`None` = main). An ambiguous failure is resolved by reading the
/// ref; when that does not tell, the outcome is an error that says how to look.
pub async fn create(root: &Root, branch: &str, from: Option<&str>) -> Result<Created> {
    if root.uri().contains('?') {
        return Err(WriteError::invalid(format!(
            "{}: Lance would write the branch outside of a root with '?' in its path; move the graph first (a graph \
             without branches can be moved)",
            root.uri()
        )));
    }
    let _held = gates::pass(root, Some(branch), &[]).await;
    finish_retirements(root).await?;
    let now = std::time::SystemTime::now();
    let native = format!("{branch}.{}", Ulid::from_datetime(now));
    names::check(branch, &refs::live_refs(root).await?)?;
    require_free_tree(root, branch, &native).await?;
    let source = open_branch(root, from).await?;
    let state = read_state(&source, ReadMode::State).await?;
    if let Err(cause) = clone_version(root, &source, &native).await
        && !landed(root, &source, &native, &cause).await?
    {
        return Err(cause.into());
    }
    require_only(root, branch, &native).await?;
    Ok(Created {
        branch: branch.to_string(),
        native,
        parent: source.native,
        version: source.version,
        head: state.head.graph_commit_id,
    })
}

/// No retired tree may enclose the new one, and nothing may lie at its place.
async fn require_free_tree(root: &Root, branch: &str, native: &str) -> Result<()> {
    for place in names::enclosing(native) {
        if root.exists(&refs::archive_key(place)).await? {
            return Err(WriteError::invalid(format!(
                "branch '{branch}' would lie inside the kept history of the deleted branch '{}'; choose another name",
                logical_name(place)
            )));
        }
    }
    let tree = format!("{MANIFEST_DIR}/tree/{native}");
    match root.list(&tree)?.try_next().await? {
        None => Ok(()),
        Some((key, _)) => Err(WriteError::Graph(Error::Conflict(format!(
            "{key} lies where the new branch would; run the command again"
        )))),
    }
}

async fn clone_version(root: &Root, source: &ManifestVersion, native: &str) -> graph::Result<()> {
    let object = format!("branch {native}");
    let (params, name) = (root.store_params().clone(), native.to_string());
    let (from, version) = (source.native.clone(), source.version);
    let mut dataset = Dataset::clone(&source.dataset);
    guarded(&object, async move {
        dataset
            .create_branch(&name, (from.as_deref(), Some(version)), Some(params))
            .await
            .map(|_| ())
            .map_err(|e| Error::lance(format!("cannot create branch {name}"), e))
    })
    .await
}

/// Whether the ref stands there in spite of `cause`: same parent, same version, the parent's identifier plus one pair.
async fn landed(
    root: &Root,
    source: &ManifestVersion,
    native: &str,
    cause: &Error,
) -> Result<bool> {
    let unknown = |e: Error| {
        Error::storage(
            format!(
                "it is not known whether branch {native} was created ({cause}); look with: omnigraph branch list {}",
                stamp::shell_word(root.uri())
            ),
            e.to_string(),
        )
    };
    let Some(found) = refs::read_ref(root, native).await.map_err(unknown)? else {
        return Ok(false);
    };
    let parent = match &source.native {
        None => Vec::new(),
        Some(parent) => {
            let contents = refs::read_ref(root, parent).await.map_err(unknown)?;
            contents
                .ok_or_else(|| Error::Conflict(format!("branch '{parent}' was deleted meanwhile")))?
                .identifier
                .version_mapping
        }
    };
    let mapping = &found.identifier.version_mapping;
    let ours = found.parent_branch == source.native
        && found.parent_version == source.version
        && mapping.len() == parent.len() + 1
        && mapping.starts_with(&parent);
    if ours {
        root.open_manifest(Some(native), None).await?;
    }
    Ok(ours)
}

/// Two creators of one name have two refs. Whoever sees the other one takes its own back.
async fn require_only(root: &Root, branch: &str, native: &str) -> Result<()> {
    let others: Vec<NativeRef> = refs::live_refs(root)
        .await?
        .into_iter()
        .filter(|r| r.logical() == branch && r.native != native)
        .collect();
    let Some(other) = others.first() else {
        return Ok(());
    };
    root.delete(&refs::ref_key(native)).await?;
    remove_tree(root, native).await?;
    Err(WriteError::Graph(Error::Conflict(format!(
        "branch '{branch}' was created meanwhile by another process ({}); nothing of this attempt is left",
        other.native
    ))))
}

/// Delete the objects of exactly this tree; it was created by this call and nothing lies below it.
async fn remove_tree(root: &Root, native: &str) -> Result<()> {
    let prefix = format!("{MANIFEST_DIR}/tree/{native}");
    let keys: Vec<(String, u64)> = root.list(&prefix)?.try_collect().await?;
    for (key, _) in keys {
        root.delete(&key).await?;
    }
    Ok(())
}
