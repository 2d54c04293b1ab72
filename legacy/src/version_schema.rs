//! What retained versions say about their tables (`docs/format/legacy-manifest.md` 6.3).
//!
//! Only `table` and `schema_contract` rows are read: membership and aliases belong to the version
//! itself, pins and drops come from the head by clock.
//!
//! A publish of stamps 6 to 9 adds a fragment and leaves the others, so a version shares nearly all its
//! fragments with the one before. Fragments are immutable (a data file and a deletion file, both named
//! by chance), hence [`SchemaReader`] keeps what it found in each and reads a fragment once, not once per
//! version: a history of n publishes costs n fragment reads instead of n²/2. Stamps 10 to 13 overwrite
//! the whole row set instead: there every fragment is read once because it belongs to one version only.
//!
//! The IR text of a contract is large and changes rarely. It is read by a scan of its own, and only when
//! identity or source differ from those of the version read before.

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
use crate::row::{ContractRow, Registration, Row};
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
const CONTRACT_FILTER: &str = "object_type = 'schema_contract'";
/// Fragments, registrations and quarter kilobytes of source kept between groups; about 30 MB.
const KEPT: usize = 131_072;

/// Registrations and contract of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionSchema {
    /// Registered tables in identity order.
    pub registrations: Vec<Registration>,
    /// The contract row, if the version has one.
    pub contract: Option<Arc<SourceContract>>,
}

/// A version as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadVersion {
    /// What it registers.
    pub schema: VersionSchema,
    /// Stable row ids of its `table` rows, with the row.
    pub table_row_ids: Vec<(u64, Registration)>,
}

/// Reads version schemas, each fragment once.
#[derive(Debug, Default)]
pub struct SchemaReader {
    found: HashMap<Key, Found>,
    /// The contract of the last version that had one, and its row without the IR.
    last: Option<(Arc<ContractRow>, Arc<SourceContract>)>,
}

/// What one fragment holds.
#[derive(Debug, Default)]
struct Found {
    registrations: Vec<(u64, Registration)>,
    contract: Option<Arc<ContractRow>>,
}

impl Found {
    fn weight(&self) -> usize {
        let source = self.contract.as_ref().and_then(|row| row.source.as_ref());
        1 + self.registrations.len() + source.map_or(0, |text| text.len() / 256)
    }

    fn add(&mut self, row_id: u64, row: Row) -> std::result::Result<(), String> {
        match row {
            Row::Table(registration) => self.registrations.push((row_id, registration)),
            // No shape below stamp 13 has the column.
            Row::Contract(row) if row.source.is_none() => {
                return Err("a contract row without schema_source".to_string());
            }
            Row::Contract(_) if self.contract.is_some() => {
                return Err("a second contract row".to_string());
            }
            Row::Contract(row) => self.contract = Some(Arc::new(row)),
            _ => return Err("a row that the filter should have left out".to_string()),
        }
        Ok(())
    }
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
    ) -> (Vec<ReadVersion>, Option<Error>) {
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
            let (version, stamp) = &group[at];
            let schema = match read {
                Ok(found) => {
                    self.found.extend(found);
                    self.assemble(version, *stamp, &wanted[at]).await
                }
                Err(error) => Err(error),
            };
            match schema {
                Ok(schema) => schemas.push(schema),
                Err(error) => return (schemas, Some(error)),
            }
        }
        (schemas, None)
    }

    /// Forget everything that the coming group does not show, once enough is kept.
    fn make_room(&mut self, wanted: &[Vec<Wanted>]) {
        let kept: usize = self.found.values().map(Found::weight).sum();
        if kept > KEPT {
            let shown: HashSet<&Key> = wanted.iter().flatten().map(|w| &w.key).collect();
            self.found.retain(|key, _| shown.contains(key));
        }
    }

    async fn assemble(
        &mut self,
        version: &ManifestVersion,
        stamp: AdmittedStamp,
        wanted: &[Wanted],
    ) -> Result<ReadVersion> {
        let wrong = |why: String| Error::internal(format!("{}: {why}", version.describe()));
        let mut table_row_ids = Vec::new();
        let mut row: Option<Arc<ContractRow>> = None;
        for w in wanted {
            // Every fragment was read or known, unless two claim one id.
            let found = self
                .found
                .get(&w.key)
                .ok_or_else(|| wrong(format!("fragment {} is listed twice", w.fragment.id)))?;
            table_row_ids.extend_from_slice(&found.registrations);
            if let Some(held) = &found.contract
                && row.replace(held.clone()).is_some()
            {
                return Err(wrong("a second contract row".into()));
            }
        }
        let contract = match row {
            None => None,
            Some(row) => Some(self.contract(version, stamp, row, wanted).await?),
        };
        Ok(ReadVersion {
            schema: VersionSchema {
                registrations: registered(&table_row_ids, u64::MAX).map_err(wrong)?,
                contract,
            },
            table_row_ids,
        })
    }

    /// The whole contract of a version whose row, without the IR, is `row`.
    async fn contract(
        &mut self,
        version: &ManifestVersion,
        stamp: AdmittedStamp,
        row: Arc<ContractRow>,
        wanted: &[Wanted],
    ) -> Result<Arc<SourceContract>> {
        if let Some((last, contract)) = &self.last
            && *last == row
        {
            // One copy of the source for all fragments that hold it.
            for w in wanted {
                if let Some(held) = self.found.get_mut(&w.key).and_then(|f| f.contract.as_mut()) {
                    *held = last.clone();
                }
            }
            return Ok(contract.clone());
        }
        let contract = read_contract(version, stamp).await?.ok_or_else(|| {
            Error::internal(format!(
                "{}: its contract row is gone between two scans",
                version.describe()
            ))
        })?;
        let contract = Arc::new(contract);
        self.last = Some((row, contract.clone()));
        Ok(contract)
    }
}

/// The contract row of one admitted version with both texts, `None` when it has none. Two rows, or one
/// without a text (which is every one below stamp 13), are errors.
pub async fn read_contract(
    version: &ManifestVersion,
    stamp: AdmittedStamp,
) -> Result<Option<SourceContract>> {
    let scan = Scan {
        flat: COLUMNS,
        content: &["schema_source", "schema_ir"],
        filter: Some(CONTRACT_FILTER),
        fragments: None,
    };
    fold_rows(version, stamp.shape(), scan, None, |found, _, row| {
        let Row::Contract(row) = row else {
            return Err("a row that the filter should have left out".to_string());
        };
        if found.replace(row.into_contract()?).is_some() {
            return Err("a second contract row".to_string());
        }
        Ok(())
    })
    .await
}

/// Read fragments that no earlier read of this run showed.
async fn read_new(
    version: &ManifestVersion,
    stamp: AdmittedStamp,
    new: Vec<&Wanted>,
) -> Result<HashMap<Key, Found>> {
    if new.is_empty() {
        return Ok(HashMap::new());
    }
    let scan = Scan {
        flat: COLUMNS,
        content: &["schema_source"],
        filter: Some(FILTER),
        fragments: Some(new.iter().map(|w| w.fragment.clone()).collect()),
    };
    let keys: HashMap<u64, Key> = new.iter().map(|w| (w.fragment.id, w.key)).collect();
    // A fragment without such rows is known to have none.
    let empty = keys.values().map(|key| (*key, Found::default())).collect();
    fold_rows(
        version,
        stamp.shape(),
        scan,
        empty,
        move |found, place, row| {
            let of: Option<&mut Found> = keys
                .get(&place.fragment)
                .and_then(|key| HashMap::get_mut(found, key));
            match of {
                Some(held) => held.add(place.row_id, row),
                None => Err(format!(
                    "the row is of fragment {}, which was not asked for",
                    place.fragment
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

/// The tables that the rows with ids below `before` register, in identity order.
pub fn registered(
    rows: &[(u64, Registration)],
    before: u64,
) -> std::result::Result<Vec<Registration>, String> {
    let mut tables: BTreeMap<TableIdentity, &Registration> = BTreeMap::new();
    for (_, registration) in rows.iter().filter(|(id, _)| *id < before) {
        match tables.entry(registration.identity) {
            Entry::Vacant(slot) => {
                slot.insert(registration);
            }
            Entry::Occupied(held) if *held.get() == registration => {}
            Entry::Occupied(held) => {
                return Err(format!(
                    "two rows register table {}, one as '{}', one as '{}'",
                    registration.identity,
                    held.get().table_key,
                    registration.table_key
                ));
            }
        }
    }
    Ok(tables.into_values().cloned().collect())
}
