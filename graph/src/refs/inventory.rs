//! Which refs are live, which are retired.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};

use super::contents::RefContents;
use crate::error::{Error, Result};
use crate::model::names::{self, logical_name};
use crate::store::{MANIFEST_DIR, Root};

/// File name of a retirement archive inside its tree.
const ARCHIVE_NAME: &str = "_omnigraph_retired_branch.json";
/// Name prefix of engine-owned merge-input tags; they do not block retirement.
const MERGE_INPUT_PREFIX: &str = "__omnigraph_merge_input_v1_";
/// What the names of Lance manifests end in.
const MANIFEST_SUFFIX: &str = ".manifest";
/// Most bytes of a ref, archive or tag object. They hold a few strings.
const MAX_REF_BYTES: u64 = 4 << 20;
/// Ref objects read at once.
const CONCURRENT_READS: usize = 16;

/// A ref by its native name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeRef {
    /// Native name.
    pub native: String,
    /// The ref object, or the archive of a retired ref.
    pub contents: RefContents,
}

impl NativeRef {
    /// Its logical name.
    pub fn logical(&self) -> &str {
        logical_name(&self.native)
    }
}

/// Every named ref of a root, each list ascending by native name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefInventory {
    /// Refs without the retirement key.
    pub live: Vec<NativeRef>,
    /// Archives and refs that carry a valid retirement record.
    pub retired: Vec<NativeRef>,
    /// Native names, ascending, of trees that hold a version while neither a ref object nor an archive names
    /// them: what an interrupted creation leaves, and what a lost ref or archive leaves.
    pub unclaimed: Vec<String>,
}

/// A ref object or a retirement archive that cannot be understood.
#[derive(Debug)]
pub struct BrokenRef {
    /// Its key below the root.
    pub object: String,
    /// The native ref it stands for.
    pub native: String,
    /// What is wrong with it.
    pub error: Error,
}

/// Key of a ref object; `/` in the name is stored as `%2F`.
pub fn ref_key(native: &str) -> String {
    format!(
        "{MANIFEST_DIR}/_refs/branches/{}.json",
        native.replace('/', "%2F")
    )
}

/// Key of a ref's retirement archive.
pub fn archive_key(native: &str) -> String {
    format!("{MANIFEST_DIR}/tree/{native}/{ARCHIVE_NAME}")
}

/// The native name of a ref object's file name, or `None` for a file that is no ref object.
fn decode_ref_file(file: &str) -> Option<String> {
    Some(file.strip_suffix(".json")?.replace("%2F", "/"))
}

/// Read one ref object; `None` when it does not exist.
pub async fn read_ref(root: &Root, native: &str) -> Result<Option<RefContents>> {
    read_contents(root, &ref_key(native), native).await
}

async fn read_contents(root: &Root, key: &str, native: &str) -> Result<Option<RefContents>> {
    match root.get(key, MAX_REF_BYTES).await? {
        None => Ok(None),
        Some(bytes) => RefContents::parse(&bytes, native, key).map(Some),
    }
}

/// Every ref object whose native name is `wanted`, split by its retirement record; one that cannot be understood is
/// handed to `broken`.
async fn active_refs(
    root: &Root,
    wanted: impl Fn(&str) -> bool,
    broken: &mut impl FnMut(BrokenRef) -> Result<()>,
) -> Result<RefInventory> {
    let folder = format!("{MANIFEST_DIR}/_refs/branches");
    let (files, folders) = root.list_level(&folder).await?;
    // Skipping it would make a live branch look deleted.
    for odd in &folders {
        let Some(native) = decode_ref_file(odd).filter(|native| wanted(native)) else {
            continue;
        };
        let object = format!("{folder}/{odd}");
        let error = Error::internal(format!(
            "{object} is a folder where the file of a ref is expected; restore the whole root from \
             a backup"
        ));
        broken(BrokenRef {
            object,
            native,
            error,
        })?;
    }
    let names: Vec<String> = files
        .iter()
        .filter_map(|file| decode_ref_file(file))
        .filter(|native| wanted(native))
        .collect();
    let mut read: Vec<(String, Result<Option<RefContents>>)> = futures::stream::iter(names)
        .map(|native| async move {
            let contents = read_ref(root, &native).await;
            (native, contents)
        })
        .buffer_unordered(CONCURRENT_READS)
        .collect()
        .await;
    read.sort_by(|a, b| a.0.cmp(&b.0));
    let mut inventory = RefInventory::default();
    for (native, contents) in read {
        let object = ref_key(&native);
        let judged = contents.and_then(|found| match found {
            // Deleted between the listing and the read: not live any more.
            None => Ok(None),
            Some(contents) => {
                let retired = contents.is_retired(&native, &object)?;
                Ok(Some((contents, retired)))
            }
        });
        match judged {
            Ok(None) => {}
            Ok(Some((contents, true))) => inventory.retired.push(NativeRef { native, contents }),
            Ok(Some((contents, false))) => inventory.live.push(NativeRef { native, contents }),
            Err(error) => broken(BrokenRef {
                object,
                native,
                error,
            })?,
        }
    }
    Ok(inventory)
}

/// The live named refs, ascending by native name. Main is not among them.
pub async fn live_refs(root: &Root) -> Result<Vec<NativeRef>> {
    Ok(active_refs(root, |_| true, &mut first).await?.live)
}

/// What one listing of `__manifest/tree/` shows, by native name.
#[derive(Debug, Clone, Default)]
pub struct Trees {
    /// Trees with a retirement archive.
    archived: BTreeSet<String>,
    /// Trees with at least one version.
    versioned: BTreeSet<String>,
}

impl Trees {
    /// Take one key, relative to `__manifest/tree/`.
    pub fn add(&mut self, below: &str) {
        if let Some(native) = below
            .strip_suffix(ARCHIVE_NAME)
            .and_then(|n| n.strip_suffix('/'))
        {
            self.archived.insert(native.to_string());
        } else if let Some((tree, file)) = below.rsplit_once('/')
            && file.ends_with(MANIFEST_SUFFIX)
            && let Some(native) = tree.strip_suffix("/_versions")
            && !self.versioned.contains(native)
        {
            self.versioned.insert(native.to_string());
        }
    }

    async fn list(root: &Root) -> Result<Self> {
        let prefix = format!("{MANIFEST_DIR}/tree/");
        let mut trees = Self::default();
        let mut keys = root.list(prefix.trim_end_matches('/'))?;
        while let Some((key, _)) = keys.try_next().await? {
            if let Some(below) = key.strip_prefix(&prefix) {
                trees.add(below);
            }
        }
        Ok(trees)
    }
}

/// Live and retired refs, and the trees of neither. Archives are found by listing `__manifest/tree/`; one
/// without a valid retirement record, or one that differs from a marked ref of the same name, is
/// [`Error::Internal`].
pub async fn inventory(root: &Root) -> Result<RefInventory> {
    collect(root, None, &mut first).await
}

/// [`inventory`] by a listing of `__manifest/tree/` that the caller made.
pub async fn inventory_of(root: &Root, trees: Trees) -> Result<RefInventory> {
    collect(root, Some(trees), &mut first).await
}

/// [`inventory`] that goes on past refs and archives it cannot understand and hands them back; their trees
/// are not called unclaimed.
pub async fn survey(root: &Root) -> Result<(RefInventory, Vec<BrokenRef>)> {
    let mut broken = Vec::new();
    let inventory = collect(root, None, &mut |found| {
        broken.push(found);
        Ok(())
    })
    .await?;
    Ok((inventory, broken))
}

/// The first broken ref ends the read.
fn first(found: BrokenRef) -> Result<()> {
    Err(found.error)
}

async fn collect(
    root: &Root,
    listed: Option<Trees>,
    broken: &mut impl FnMut(BrokenRef) -> Result<()>,
) -> Result<RefInventory> {
    let mut unreadable = BTreeSet::new();
    let mut note = |found: BrokenRef| {
        unreadable.insert(found.native.clone());
        broken(found)
    };
    let mut inventory = active_refs(root, |_| true, &mut note).await?;
    let trees = match listed {
        Some(trees) => trees,
        None => Trees::list(root).await?,
    };
    for native in &trees.archived {
        let key = archive_key(native);
        let judged = match read_contents(root, &key, native).await {
            Ok(None) => continue,
            Ok(Some(contents)) => archived(&inventory, native, &key, contents),
            Err(e) => Err(e),
        };
        match judged {
            Ok(None) => {}
            Ok(Some(retired)) => inventory.retired.push(retired),
            Err(error) => note(BrokenRef {
                object: key,
                native: native.clone(),
                error,
            })?,
        }
    }
    for native in trees.versioned {
        let claimed = |refs: &[NativeRef]| refs.iter().any(|r| r.native == native);
        if !claimed(&inventory.live)
            && !claimed(&inventory.retired)
            && !unreadable.contains(&native)
            // Created or archived since the refs were listed: not lost.
            && read_ref(root, &native).await?.is_none()
            && !root.exists(&archive_key(&native)).await?
        {
            inventory.unclaimed.push(native);
        }
    }
    inventory.retired.sort_by(|a, b| a.native.cmp(&b.native));
    // A live ref of the same native name as an archive would mean that a retired tree was reused.
    for live in &inventory.live {
        if inventory.retired.iter().any(|r| r.native == live.native) {
            broken(BrokenRef {
                object: archive_key(&live.native),
                native: live.native.clone(),
                error: Error::internal(format!(
                    "ref '{}' is live and has a retirement archive",
                    live.native
                )),
            })?;
        }
    }
    Ok(inventory)
}

/// What an archive adds to the refs: nothing beside an equal marked ref object.
fn archived(
    inventory: &RefInventory,
    native: &str,
    key: &str,
    contents: RefContents,
) -> Result<Option<NativeRef>> {
    if !contents.is_retired(native, key)? {
        return Err(Error::internal(format!(
            "{key} is a retirement archive without a retirement record; restore the whole root \
             from a backup"
        )));
    }
    match inventory.retired.iter().find(|r| r.native == native) {
        None => Ok(Some(NativeRef {
            native: native.to_string(),
            contents,
        })),
        Some(marked) if marked.contents == contents => Ok(None),
        Some(_) => Err(Error::internal(format!(
            "{key} differs from the marked ref object {}",
            ref_key(native)
        ))),
    }
}

/// The native ref of a logical branch name (`main` or `None` is main, answered as `None`). No live ref
/// is [`Error::NotFound`], more than one [`Error::Internal`].
pub async fn resolve_branch(root: &Root, logical: Option<&str>) -> Result<Option<NativeRef>> {
    let Some(wanted) = logical.filter(|name| *name != names::MAIN) else {
        return Ok(None);
    };
    let named = |native: &str| logical_name(native) == wanted;
    let mut matching = active_refs(root, named, &mut first).await?.live;
    match (matching.pop(), matching.pop()) {
        (None, _) => Err(Error::not_found(format!("there is no branch '{wanted}'"))),
        (Some(only), None) => Ok(Some(only)),
        (Some(a), Some(b)) => Err(Error::internal(format!(
            "branch '{wanted}' has two live refs, '{}' and '{}'",
            b.native, a.native
        ))),
    }
}

/// Tags that pin a version of this native ref and block its retirement, sorted. Merge-input tags do
/// not count. An unreadable tag object is an error: unknown means keep.
pub async fn tags_on(root: &Root, native: &str) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Tag {
        #[serde(default)]
        branch: Option<String>,
    }
    let folder = format!("{MANIFEST_DIR}/_refs/tags");
    let mut blocking = Vec::new();
    for file in root.list_names(&folder).await? {
        let Some(name) = file.strip_suffix(".json") else {
            continue;
        };
        if name.starts_with(MERGE_INPUT_PREFIX) {
            continue;
        }
        let key = format!("{folder}/{file}");
        let Some(bytes) = root.get(&key, MAX_REF_BYTES).await? else {
            continue;
        };
        let tag: Tag = serde_json::from_slice(&bytes)
            .map_err(|e| Error::internal(format!("{key} is not a valid tag object: {e}")))?;
        if tag.branch.as_deref() == Some(native) {
            blocking.push(name.to_string());
        }
    }
    Ok(blocking)
}
