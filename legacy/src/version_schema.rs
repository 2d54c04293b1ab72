//! What retained versions say about their tables (`docs/format/legacy-manifest.md` 6.3).
//!
//! Only `table` and `schema_contract` rows are read: membership and aliases belong to the version
//! itself, pins and drops come from the head by clock.
//!
//! A publish of stamps 6 to 9 adds a fragment and leaves the others, so a version shares nearly all its
//! fragments with the one before. Fragments are immutable (a data file and a deletion file, both named
//! by chance), hence [`SchemaReader`] keeps what it found in each and reads a fragment once, not once per
//! version: a history of n publishes costs n fragment reads instead of n²/2.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::future::join_all;
use graph::digest::sha256;
use graph::model::TableIdentity;
use graph::store::ManifestVersion;
use graph::{Error, Result};
use lance_table::format::Fragment;

use crate::admission::AdmittedStamp;
use crate::contract::SourceContract;
use crate::row::{Registration, Row};
use crate::scan::{Scan, fold_rows};

const COLUMNS: &[&str] = &[
    "object_id",
    "object_type",
    "location",
    "metadata",
    "table_key",
    "stable_table_id",
    "table_incarnation_id",
];
const FILTER: &str = "object_type IN ('table', 'schema_contract')";
/// Fragments and registrations kept between groups; about 30 MB.
const KEPT: usize = 131_072;

/// Registrations and contract of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionSchema {
    /// Registered tables in identity order.
    pub registrations: Vec<Registration>,
    /// The contract row, if the version has one.
    pub contract: Option<Arc<SourceContract>>,
}

/// Reads version schemas, each fragment once.
#[derive(Debug, Default)]
pub struct SchemaReader {
    found: HashMap<Key, Vec<Registration>>,
}

/// Digest of everything that decides what rows a fragment shows.
type Key = [u8; 32];

/// A fragment of a version in the group being read.
struct Wanted {
    key: Key,
    fragment: Fragment,
}

impl SchemaReader {
    /// Read a group of admitted versions at once. Hands back the schemas in order up to the first version
    /// that could not be read, and that version's error.
    pub async fn read(
        &mut self,
        group: &[(ManifestVersion, AdmittedStamp)],
    ) -> (Vec<VersionSchema>, Option<Error>) {
        let wanted: Vec<Vec<Wanted>> = group.iter().map(|(v, s)| fragments(v, *s)).collect();
        self.make_room(&wanted);
        // Every fragment not yet known is read with the first version that shows it, so that a version
        // only ever depends on reads of its own and of versions before it.
        let mut taken: HashSet<Key> = HashSet::new();
        let reads = group.iter().zip(&wanted).map(|((version, stamp), wanted)| {
            let new: Vec<&Wanted> = wanted
                .iter()
                .filter(|w| !self.found.contains_key(&w.key) && taken.insert(w.key))
                .collect();
            read_new(version, *stamp, new)
        });
        let reads: Vec<_> = reads.collect();
        let mut schemas = Vec::with_capacity(group.len());
        for (at, read) in join_all(reads).await.into_iter().enumerate() {
            let schema = read.and_then(|found| {
                self.found.extend(found);
                self.assemble(&group[at].0, &wanted[at])
            });
            match schema {
                Ok(schema) => schemas.push(schema),
                Err(error) => return (schemas, Some(error)),
            }
        }
        (schemas, None)
    }

    /// Forget everything that the coming group does not show, once enough is kept.
    fn make_room(&mut self, wanted: &[Vec<Wanted>]) {
        let kept: usize = self.found.values().map(|r| 1 + r.len()).sum();
        if kept > KEPT {
            let shown: HashSet<&Key> = wanted.iter().flatten().map(|w| &w.key).collect();
            self.found.retain(|key, _| shown.contains(key));
        }
    }

    fn assemble(&self, version: &ManifestVersion, wanted: &[Wanted]) -> Result<VersionSchema> {
        let mut tables = BTreeMap::new();
        for w in wanted {
            // Every fragment was read or known, unless two claim one id.
            let found = self.found.get(&w.key).ok_or_else(|| {
                Error::internal(format!(
                    "{}: fragment {} is listed twice",
                    version.describe(),
                    w.fragment.id
                ))
            })?;
            for registration in found {
                add(&mut tables, registration)
                    .map_err(|why| Error::internal(format!("{}: {why}", version.describe())))?;
            }
        }
        Ok(VersionSchema {
            registrations: tables.into_values().collect(),
            contract: None,
        })
    }
}

/// Read fragments that no earlier read of this run showed.
async fn read_new(
    version: &ManifestVersion,
    stamp: AdmittedStamp,
    new: Vec<&Wanted>,
) -> Result<HashMap<Key, Vec<Registration>>> {
    if new.is_empty() {
        return Ok(HashMap::new());
    }
    let scan = Scan {
        flat: COLUMNS,
        filter: Some(FILTER),
        fragments: Some(new.iter().map(|w| w.fragment.clone()).collect()),
    };
    let keys: HashMap<u64, Key> = new.iter().map(|w| (w.fragment.id, w.key)).collect();
    // A fragment without such rows is known to have none.
    let empty = keys.values().map(|key| (*key, Vec::new())).collect();
    fold_rows(
        version,
        stamp.shape(),
        scan,
        empty,
        move |found, fragment, row| {
            let registration = match row {
                Row::Table(registration) => registration,
                Row::Contract(_) => return Err("a contract row without schema_source".to_string()),
                _ => return Err("a row that the filter should have left out".to_string()),
            };
            let of: Option<&mut Vec<Registration>> = keys
                .get(&fragment)
                .and_then(|key| HashMap::get_mut(found, key));
            match of {
                Some(list) => {
                    list.push(registration);
                    Ok(())
                }
                None => Err(format!(
                    "the row is of fragment {fragment}, which was not asked for"
                )),
            }
        },
    )
    .await
}

/// The fragments of a version with their keys.
fn fragments(version: &ManifestVersion, stamp: AdmittedStamp) -> Vec<Wanted> {
    let dataset = &version.dataset;
    let manifest = dataset.manifest();
    let place = |base: Option<u32>| match base {
        None => dataset.uri().to_string(),
        Some(id) => manifest.base_paths.get(&id).map_or_else(
            || format!("base {id} of {}", dataset.uri()),
            |b| b.path.clone(),
        ),
    };
    // Files name their columns by field id.
    let fields: Vec<_> = dataset
        .schema()
        .fields
        .iter()
        .map(|f| (f.id, f.name.as_str()))
        .collect();
    manifest
        .fragments
        .iter()
        .map(|fragment| {
            let files: Vec<_> = fragment
                .files
                .iter()
                .map(|f| (place(f.base_id), &f.path, &f.fields, &f.column_indices))
                .collect();
            let deletions = fragment
                .deletion_file
                .as_ref()
                .map(|d| (place(d.base_id), d.read_version, d.id, &d.file_type));
            // Overlays are no part of this format; a fragment that has any is told apart by version.
            let overlaid =
                (!fragment.overlays.is_empty()).then_some((&version.native, version.version));
            let all = (
                stamp.shape(),
                &fields,
                fragment.id,
                files,
                deletions,
                overlaid,
            );
            Wanted {
                key: sha256(format!("{all:?}").as_bytes()),
                fragment: fragment.clone(),
            }
        })
        .collect()
}

fn add(
    tables: &mut BTreeMap<TableIdentity, Registration>,
    registration: &Registration,
) -> std::result::Result<(), String> {
    match tables.entry(registration.identity) {
        Entry::Vacant(slot) => {
            slot.insert(registration.clone());
            Ok(())
        }
        Entry::Occupied(held) if held.get() == registration => Ok(()),
        Entry::Occupied(held) => Err(format!(
            "two rows register table {}, one as '{}', one as '{}'",
            registration.identity,
            held.get().table_key,
            registration.table_key
        )),
    }
}
