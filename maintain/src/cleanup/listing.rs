//! One listing of a table: what lies at its root location and in each of its native trees
//! (`docs/format/maintenance.md` 5.5, 5.7 and 5.8).
//!
//! The listing is streamed. Of a location that is traced every object with a key is kept (about 100 bytes each, at
//! most [`MAX_OBJECTS`] a table); of the other trees only counts and manifests.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt as _;
use graph::store::{ListedObject, Root};
use graph::table::is_detached;
use graph::{Error, Result};

/// Most objects of one table that a trace holds in memory. A table with more is reported and kept whole.
pub const MAX_OBJECTS: usize = 4_000_000;
/// The folders of Lance's layout, and the one of the graph's own.
const LAYOUT: [&str; 6] = [
    "_versions",
    "_transactions",
    "data",
    "_deletions",
    "_indices",
    "_omnigraph",
];

/// An object of a location, relative to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Relative to the location.
    pub path: Box<str>,
    /// Bytes.
    pub size: u64,
    /// Microseconds since the epoch.
    pub modified: i64,
}

/// Number and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Total {
    /// Count one more.
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What lies at one location.
#[derive(Debug, Clone, Default)]
pub struct Location {
    /// Manifests by Lance version, detached ones too (bit 63), with their bytes.
    pub manifests: BTreeMap<u64, u64>,
    /// Objects with a key, when the location is traced.
    pub objects: Vec<Object>,
    /// Objects without a key: never touched.
    pub layout: Total,
    /// Names that end like a manifest and are none this build can read.
    pub odd: Vec<String>,
    /// Whether a retirement archive lies in it.
    pub archived: bool,
    /// Everything.
    pub all: Total,
    /// When its newest object was written.
    pub newest: i64,
}

/// What lies below one table path.
#[derive(Debug, Clone, Default)]
pub struct TableListing {
    /// By native branch; `None` is the root location.
    pub locations: BTreeMap<Option<String>, Location>,
    /// Ref objects by native name, with the time they were written.
    pub refs: BTreeMap<String, i64>,
    /// Names of tags.
    pub tags: BTreeSet<String>,
    /// The first object below `tree/` that belongs to no tree that can be told.
    pub unplaced: Option<String>,
}

/// Where an object of a table belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place<'a> {
    Root(&'a str),
    Tree(&'a str, &'a str),
    Unplaced,
}

/// The tree of a path below `tree/`, and the rest: the name ends before the first folder of the layout.
pub fn split_tree(below: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for segment in below.split('/') {
        let file = at + segment.len() == below.len();
        let inside = (!file && LAYOUT.contains(&segment))
            || (file && segment.starts_with("_omnigraph_retired_branch.json"));
        if inside {
            let name = below[..at].strip_suffix('/')?;
            return Some((name, &below[at..]));
        }
        at += segment.len() + 1;
    }
    None
}

/// Whether the trees of a branch of this name can be told from their paths.
pub fn is_placeable(native: &str) -> bool {
    !native.split('/').any(|s| LAYOUT.contains(&s))
}

fn place(path: &str) -> Place<'_> {
    match path.strip_prefix("tree/") {
        None => Place::Root(path),
        Some(below) => match split_tree(below) {
            Some((name, rest)) => Place::Tree(name, rest),
            None => Place::Unplaced,
        },
    }
}

/// The key under which an object lives and dies, or `None` for one that no cleanup touches
/// (`docs/format/maintenance.md` 5.7, orphans).
pub fn key_of(path: &str) -> Option<&str> {
    let (folder, rest) = path.split_once('/')?;
    match folder {
        "data" => match rest.split_once('/') {
            None => rest.ends_with(".lance").then_some(path),
            // The sidecar's parent is written without its ending; the caller adds it.
            Some((stem, file)) => {
                let sidecar = file.ends_with(".blob") && !file.contains('/');
                sidecar.then(|| &path[..folder.len() + 1 + stem.len()])
            }
        },
        "_deletions" | "_transactions" => Some(path),
        "_omnigraph" => rest.starts_with("deleted_ids/").then_some(path),
        "_indices" => {
            let (uuid, _) = rest.split_once('/')?;
            Some(&path[..folder.len() + 1 + uuid.len()])
        }
        "_versions" => rest.starts_with(".tmp").then_some(path),
        _ => None,
    }
}

/// Whether a keyed object is a blob sidecar; its key lacks `.lance` then.
pub fn is_sidecar(path: &str) -> bool {
    path.starts_with("data/") && path.ends_with(".blob")
}

/// The Lance version of a manifest's file name. `Err` for a name that ends like one and is none.
fn version_of(name: &str) -> Option<std::result::Result<u64, ()>> {
    let stem = name.strip_suffix(".manifest")?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parsed = match stem.strip_prefix('d') {
        Some(number) => number
            .parse::<u64>()
            .ok()
            .filter(|v| is_detached(*v) && v.to_string() == number),
        None if stem.len() == 20 && digits(stem) => stem
            .parse::<u64>()
            .ok()
            .map(|inverted| u64::MAX - inverted)
            .filter(|v| !is_detached(*v)),
        None => None,
    };
    Some(parsed.ok_or(()))
}

/// File name of the manifest of a version.
pub fn manifest_name(version: u64) -> String {
    if is_detached(version) {
        format!("d{version}.manifest")
    } else {
        format!("{:020}.manifest", u64::MAX - version)
    }
}

impl Location {
    /// Take one object at `path`; those with a key only when the location is `traced`. Whether it is held.
    pub fn add(&mut self, path: &str, size: u64, modified: i64, traced: bool) -> bool {
        self.all.add(size);
        self.newest = self.newest.max(modified);
        self.archived |= path == "_omnigraph_retired_branch.json";
        if let Some(name) = path.strip_prefix("_versions/")
            && !name.starts_with(".tmp")
            && let Some(version) = version_of(name)
        {
            match version {
                Ok(version) => {
                    self.manifests.insert(version, size);
                }
                Err(()) => {
                    self.odd.push(path.to_string());
                    self.layout.add(size);
                }
            }
            return true;
        }
        if key_of(path).is_none() {
            self.layout.add(size);
            return false;
        }
        if traced {
            self.objects.push(Object {
                path: path.into(),
                size,
                modified,
            });
        }
        traced
    }
}

impl TableListing {
    /// Take one object of `path` relative to the table; `traced` says which locations are kept whole.
    fn add(
        &mut self,
        path: &str,
        size: u64,
        modified: i64,
        traced: &BTreeSet<Option<String>>,
    ) -> bool {
        match place(path) {
            Place::Unplaced => {
                self.unplaced.get_or_insert_with(|| path.to_string());
                false
            }
            Place::Tree(name, rest) => {
                let native = Some(name.to_string());
                let keep = traced.contains(&native);
                self.locations
                    .entry(native)
                    .or_default()
                    .add(rest, size, modified, keep)
            }
            Place::Root(path) => {
                if let Some(file) = path.strip_prefix("_refs/branches/")
                    && let Some(name) = file.strip_suffix(".json")
                {
                    self.refs.insert(name.replace("%2F", "/"), modified);
                } else if let Some(file) = path.strip_prefix("_refs/tags/")
                    && let Some(name) = file.strip_suffix(".json")
                {
                    self.tags.insert(name.to_string());
                }
                let keep = traced.contains(&None);
                self.locations
                    .entry(None)
                    .or_default()
                    .add(path, size, modified, keep)
            }
        }
    }

    /// Whether nothing lies below the table path.
    pub fn is_empty(&self) -> bool {
        self.locations.is_empty() && self.unplaced.is_none()
    }
}

/// List a table once. More than [`MAX_OBJECTS`] objects to hold are [`Error::Limit`].
pub async fn list_table(
    root: &Root,
    table_path: &str,
    traced: &BTreeSet<Option<String>>,
) -> Result<TableListing> {
    let mut listing = TableListing::default();
    let mut seen = 0_usize;
    let prefix = format!("{table_path}/");
    let mut objects = root.list_objects(table_path)?;
    while let Some(ListedObject {
        key,
        size,
        modified,
    }) = objects.try_next().await?
    {
        let Some(path) = key.strip_prefix(&prefix) else {
            continue;
        };
        seen += usize::from(listing.add(path, size, modified, traced));
        if seen > MAX_OBJECTS {
            return Err(Error::limit(
                format!("the number of objects below {table_path}"),
                MAX_OBJECTS as u64,
                seen as u64,
            ));
        }
    }
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_objects() {
        for (path, key) in [
            ("data/a.lance", Some("data/a.lance")),
            ("data/a/0100.blob", Some("data/a")),
            ("data/a/b/0100.blob", None),
            ("data/a.tmp", None),
            ("data/a/x.txt", None),
            ("_deletions/0-1-2.arrow", Some("_deletions/0-1-2.arrow")),
            ("_transactions/1-a.txn", Some("_transactions/1-a.txn")),
            (
                "_omnigraph/deleted_ids/u.json",
                Some("_omnigraph/deleted_ids/u.json"),
            ),
            ("_omnigraph/other.json", None),
            ("_indices/u/part.lance", Some("_indices/u")),
            ("_indices/u/a/b", Some("_indices/u")),
            ("_indices/stray", None),
            (
                "_versions/.tmp_1.manifest",
                Some("_versions/.tmp_1.manifest"),
            ),
            ("_versions/latest_version_hint.json", None),
            ("_refs/tags/t.json", None),
            ("tree/b/data/a.lance", None),
            ("notes.txt", None),
        ] {
            assert_eq!(key_of(path), key, "{path}");
        }
    }

    #[test]
    fn manifest_names() {
        let detached = (1_u64 << 63) | 77;
        for version in [1, 9, u64::MAX >> 1, detached] {
            assert_eq!(version_of(&manifest_name(version)), Some(Ok(version)));
        }
        for odd in [
            "1.manifest",
            "d5.manifest",
            "dx.manifest",
            ".manifest",
            "00000000000000000001.manifest",
        ] {
            assert_eq!(version_of(odd), Some(Err(())), "{odd}");
        }
        assert_eq!(version_of("latest_version_hint.json"), None);
    }

    #[test]
    fn trees_of_paths() {
        for (below, want) in [
            ("b/data/x.lance", Some(("b", "data/x.lance"))),
            (
                "t/a/_versions/1.manifest",
                Some(("t/a", "_versions/1.manifest")),
            ),
            (
                "b/_omnigraph_retired_branch.json",
                Some(("b", "_omnigraph_retired_branch.json")),
            ),
            (
                "b/_omnigraph/deleted_ids/u.json",
                Some(("b", "_omnigraph/deleted_ids/u.json")),
            ),
            ("b/stray.txt", None),
            ("data/_versions/1.manifest", None),
            ("_versions/1.manifest", None),
            ("b/data", None),
        ] {
            assert_eq!(split_tree(below), want, "{below}");
        }
        assert!(is_placeable("team/a"));
        assert!(!is_placeable("team/data"));
    }
}
