//! Lance refs of a table: the ref object, its live path-children, the objects of its tree.

use futures::TryStreamExt as _;
use graph::refs::RefContents;
use graph::store::Root;
use graph::{Error, Result};

/// Most bytes of a ref object.
const MAX_REF_BYTES: u64 = 4 << 20;

/// Key of a table's ref object; `/` in the name is stored as `%2F`.
pub fn key(location: &str, branch: &str) -> String {
    format!(
        "{location}/_refs/branches/{}.json",
        branch.replace('/', "%2F")
    )
}

/// The ref object; `None` when there is none.
pub async fn read(root: &Root, location: &str, branch: &str) -> Result<Option<RefContents>> {
    let key = key(location, branch);
    match root.get(&key, MAX_REF_BYTES).await? {
        None => Ok(None),
        Some(bytes) => RefContents::parse(&bytes, branch, &key).map(Some),
    }
}

/// The live refs whose names continue `branch` with a `/`, ascending: their trees lie inside its tree.
pub async fn children(root: &Root, location: &str, branch: &str) -> Result<Vec<String>> {
    let below = format!("{branch}/");
    let names = root
        .list_names(&format!("{location}/_refs/branches"))
        .await?;
    Ok(names
        .iter()
        .filter_map(|n| Some(n.strip_suffix(".json")?.replace("%2F", "/")))
        .filter(|n| n.starts_with(&below))
        .collect())
}

/// What stands in the tree of a ref.
#[derive(Debug, Default)]
pub struct Tree {
    /// Keys of its objects, ascending.
    pub objects: Vec<String>,
    /// A version of another tree inside it.
    pub nested: Option<String>,
    /// Its own versions, ascending.
    pub versions: Vec<u64>,
}

/// List the tree of a ref, whether or not the ref exists.
pub async fn tree(root: &Root, location: &str, branch: &str) -> Result<Tree> {
    let prefix = format!("{location}/tree/{branch}");
    let mut tree = Tree::default();
    let mut keys = root.list(&prefix)?;
    while let Some((key, _)) = keys.try_next().await? {
        let Some(below) = key.strip_prefix(&format!("{prefix}/")) else {
            continue;
        };
        if below.contains("/_versions/") {
            tree.nested = Some(key.clone());
        }
        tree.objects.push(key);
    }
    tree.objects.sort();
    if !tree.objects.is_empty() {
        tree.versions = root.linear_versions(location, Some(branch)).await?;
    }
    Ok(tree)
}

/// Remove a ref and its tree: the ref object first, since it is what makes the tree reachable. The tree may hold no
/// version but `fork`, or those an own transaction was proved for (`proved`), and no other tree.
pub async fn remove(
    root: &Root,
    location: &str,
    branch: &str,
    fork: u64,
    proved: Option<u64>,
) -> Result<()> {
    let found = tree(root, location, branch).await?;
    check_tree(location, branch, &found, fork, proved)?;
    root.delete(&key(location, branch)).await?;
    for object in &found.objects {
        root.delete(object).await?;
    }
    Ok(())
}

/// Refuse a tree that holds anything but what the write made.
pub fn check_tree(
    location: &str,
    branch: &str,
    tree: &Tree,
    fork: u64,
    proved: Option<u64>,
) -> Result<()> {
    if let Some(nested) = &tree.nested {
        return Err(Error::refused(format!(
            "{location}: the tree of ref '{branch}' holds another tree ({nested}), so it is not removed"
        )));
    }
    let last = proved.unwrap_or(fork);
    match tree.versions.iter().find(|v| **v < fork || **v > last) {
        Some(stray) => Err(Error::refused(format!(
            "{location}: the tree of ref '{branch}' holds version {stray}, expected {fork} to {last}; it is not removed"
        ))),
        None => Ok(()),
    }
}
