//! What one manifest of a location refers to (`docs/format/maintenance.md` 5.5 and 5.7).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::{StreamExt as _, TryStreamExt as _};
use graph::store::{ManifestParts, Root};
use graph::table::is_detached;
use graph::{Error, Result};
use lance_table::format::DataFile;
use lance_table::io::deletion::relative_deletion_file_path;

use super::listing::{Location, manifest_name};
use super::staging::Witness;

const DELETED_IDS: &str = "omnigraph.deleted_ids_path";
/// Manifests of one location read at once.
const CONCURRENT_READS: usize = 8;

/// Paths of one location, each stored once.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    ids: HashMap<Box<str>, u32>,
}

impl Paths {
    /// The number of a path.
    pub fn id(&mut self, path: &str) -> u32 {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        // A location holds at most a few million objects, and a manifest of more files would not be read.
        let id = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.ids.insert(path.into(), id);
        id
    }

    /// The number of a path that some manifest refers to.
    pub fn get(&self, path: &str) -> Option<u32> {
        self.ids.get(path).copied()
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// One manifest, reduced to what a plan asks of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The detached version its transaction was staged on; `None` when it was a linear one.
    pub link: Option<u64>,
    /// The writer's witness, when it is valid.
    pub witness: Option<Witness>,
    /// Numbers of the paths it refers to in this location, without repeats.
    pub paths: Vec<u32>,
    /// Base paths its files come from, as they are written.
    pub origins: Vec<String>,
}

/// The facts of a location's manifests.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    /// Read ones, by Lance version.
    pub facts: BTreeMap<u64, Facts>,
    /// Listed ones that cannot be understood, with why.
    pub unreadable: BTreeMap<u64, String>,
    /// The paths they name.
    pub paths: Paths,
}

/// What a manifest refers to. A base id without a base path is [`Error::Internal`].
pub fn facts_of(parts: &ManifestParts, paths: &mut Paths) -> Result<Facts> {
    let manifest = &parts.manifest;
    let mut own: BTreeSet<u32> = BTreeSet::new();
    let mut bases: BTreeSet<u32> = BTreeSet::new();
    let mut refer = |base: Option<u32>, path: &str| match base {
        Some(base) => {
            bases.insert(base);
        }
        None => {
            own.insert(paths.id(path));
        }
    };
    for fragment in manifest.fragments.iter() {
        let overlays = fragment.overlays.iter().map(|o| &o.data_file);
        let files: Vec<&DataFile> = fragment.files.iter().chain(overlays).collect();
        for file in files {
            refer(file.base_id, &format!("data/{}", file.path));
        }
        if let Some(deletion) = &fragment.deletion_file {
            refer(
                deletion.base_id,
                &relative_deletion_file_path(fragment.id, deletion),
            );
        }
    }
    for index in &parts.indices {
        refer(index.base_id, &format!("_indices/{}", index.uuid));
    }
    let mut link = None;
    if let Some(file) = &manifest.transaction_file {
        refer(None, &format!("_transactions/{file}"));
        if let Some((read_version, rest)) = file.split_once('-') {
            link = read_version.parse().ok().filter(|v| is_detached(*v));
            // Named here even when the transaction that would name it is gone.
            let uuid = rest.strip_suffix(".txn").unwrap_or(rest);
            refer(None, &format!("_omnigraph/deleted_ids/{uuid}.json"));
        }
    }
    if let Some(path) = parts.properties.as_ref().and_then(|p| p.get(DELETED_IDS)) {
        refer(None, path);
    }
    let mut origins = Vec::new();
    for id in bases {
        let base = manifest.base_paths.get(&id).ok_or_else(|| {
            Error::internal(format!(
                "version {} reads files of base {id}, which it does not list",
                manifest.version
            ))
        })?;
        origins.push(base.path.clone());
    }
    Ok(Facts {
        link,
        witness: parts.properties.as_ref().and_then(Witness::read),
        paths: own.into_iter().collect(),
        origins,
    })
}

/// The folder of a location, relative to the root.
pub fn place(table_path: &str, native: Option<&str>) -> String {
    match native {
        None => table_path.to_string(),
        Some(native) => format!("{table_path}/tree/{native}"),
    }
}

/// Read every listed manifest of a location. One that vanished meanwhile is left out, one that cannot be understood is
/// noted; a storage failure is an error.
pub async fn read_all(
    root: &Root,
    table_path: &str,
    native: Option<&str>,
    listed: &Location,
) -> Result<Manifests> {
    let place = place(table_path, native);
    let mut out = Manifests::default();
    let versions: Vec<u64> = listed.manifests.keys().copied().collect();
    let mut reads = futures::stream::iter(versions)
        .map(|version| {
            let (root, place) = (root.clone(), place.clone());
            let native = native.map(str::to_string);
            async move {
                let key = format!("{place}/_versions/{}", manifest_name(version));
                let read = root
                    .read_manifest_parts(&place, &key, native.as_deref(), version)
                    .await;
                match read {
                    Ok(parts) => Ok(Some((version, Ok(parts)))),
                    Err(e) if e.is_storage() => Err(e),
                    Err(e) if e.is_not_found() => Ok(None),
                    Err(e) => Ok(Some((version, Err(e.to_string())))),
                }
            }
        })
        .buffer_unordered(CONCURRENT_READS);
    while let Some(read) = reads.try_next().await? {
        let Some((version, parts)) = read else {
            continue;
        };
        match parts.and_then(|p| facts_of(&p, &mut out.paths).map_err(|e| e.to_string())) {
            Ok(facts) => {
                out.facts.insert(version, facts);
            }
            Err(why) => {
                out.unreadable.insert(version, why);
            }
        }
    }
    Ok(out)
}

/// The base paths of every manifest of a tree that is not traced. One that cannot be understood is an error: what it
/// borrows cannot be told.
pub async fn origins_of(
    root: &Root,
    table_path: &str,
    native: &str,
    listed: &Location,
) -> Result<Vec<String>> {
    let read = read_all(root, table_path, Some(native), listed).await?;
    if let Some((version, why)) = read.unreadable.first_key_value() {
        return Err(Error::internal(format!(
            "version {version} of tree '{native}': {why}"
        )));
    }
    Ok(read.facts.into_values().flat_map(|f| f.origins).collect())
}
