//! What one branch of a stamp 6, 8 or 9 root holds: the rows of its newest version.
//!
//! Reads one version of `__manifest` whole. Unlike [`crate::HeadScan`], which serves the upgrade, it accepts the key
//! clock of stamp 6, the table's own data version (`docs/format/legacy-manifest.md` 3).

use std::collections::{BTreeMap, BTreeSet};

use graph::model::names::{MAIN, logical_name};
use graph::model::{Pin, TableIdentity};
use graph::refs::{self, BranchIdentifier, NativeRef};
use graph::stamp::{PENDING_KEY, StampReading};
use graph::store::{ManifestVersion, Root};
use graph::{Error, Result};

use super::change::Stamp;
use crate::admission::Candidate;
use crate::fold::head_commit;
use crate::row::{LegacyCommit, Registration, Row};
use crate::scan::{Scan, fold_rows};
use crate::shape::Shape;

/// Stamps whose roots these commands finish.
pub const SERVED_STAMPS: [u32; 3] = [6, 8, 9];

/// Every logical column; the flat `base_objects` is never read.
const COLUMNS: &[&str] = &[
    "object_id",
    "object_type",
    "location",
    "metadata",
    "table_key",
    "stable_table_id",
    "table_incarnation_id",
    "table_version",
    "table_branch",
    "row_count",
];

/// The rows of one version, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogRows {
    /// `table` rows.
    pub registrations: BTreeMap<TableIdentity, Registration>,
    /// `table_version` rows by table and key clock.
    pub pins: BTreeMap<(TableIdentity, u64), Pin>,
    /// `table_tombstone` rows by table and key clock: the number they carry.
    pub tombstones: BTreeMap<(TableIdentity, u64), u64>,
    /// `graph_commit` rows, inherited ones included.
    pub commits: Vec<LegacyCommit>,
    /// `graph_head` rows: logical branch (`main` for main) to commit id.
    pub heads: BTreeMap<String, String>,
    /// Ids of the commits added row by row, to notice a second one.
    seen: BTreeSet<String>,
}

impl CatalogRows {
    /// Add a decoded row; a second row of one key and a row of a later stamp are refused.
    pub fn add(&mut self, stamp: Stamp, row: Row) -> std::result::Result<(), String> {
        let twice = |held: bool| match held {
            true => Err("a second row of this key".to_string()),
            false => Ok(()),
        };
        match row {
            Row::Table(r) => twice(self.registrations.insert(r.identity, r).is_some()),
            Row::Pin { identity, pin } => {
                stamp.check_clock(pin.manifest_version, pin.table_version)?;
                twice(
                    self.pins
                        .insert((identity, pin.manifest_version), pin)
                        .is_some(),
                )
            }
            Row::Tombstone {
                identity,
                clock,
                sealed_version,
                ..
            } => {
                stamp.check_clock(clock, sealed_version)?;
                twice(
                    self.tombstones
                        .insert((identity, clock), sealed_version)
                        .is_some(),
                )
            }
            Row::Commit(commit) => {
                let new = self.seen.insert(commit.id.clone());
                self.commits.push(commit);
                twice(!new)
            }
            Row::Head { branch, commit } => twice(self.heads.insert(branch, commit).is_some()),
            Row::Contract(_) => Err("a schema_contract row, which these stamps do not have".into()),
        }
    }

    /// The pin a table shows: the one with the greatest clock, unless a tombstone has at least that clock.
    pub fn live_pin(&self, identity: TableIdentity) -> Option<&Pin> {
        let of = (identity, 0)..=(identity, u64::MAX);
        let (&(_, clock), pin) = self.pins.range(of.clone()).next_back()?;
        let sealed = self.tombstones.range(of).next_back();
        sealed.is_none_or(|(&(_, at), _)| at < clock).then_some(pin)
    }

    /// The version a publish expectation is compared with: that of the live pin, else the number of the last
    /// tombstone, else 0 (`docs/format/recovery-sidecars.md` 12).
    pub fn published_version(&self, identity: TableIdentity) -> u64 {
        if let Some(pin) = self.live_pin(identity) {
            return pin.table_version;
        }
        let of = (identity, 0)..=(identity, u64::MAX);
        let last = self.tombstones.range(of).next_back();
        last.map_or(0, |(_, sealed)| *sealed)
    }

    /// Tables that show a pin, by alias.
    pub fn live(&self) -> impl Iterator<Item = (&Registration, &Pin)> {
        self.registrations
            .values()
            .filter_map(|r| self.live_pin(r.identity).map(|pin| (r, pin)))
    }

    /// The live table of an alias.
    pub fn live_named(&self, table_key: &str) -> Option<(&Registration, &Pin)> {
        self.live().find(|(r, _)| r.table_key == table_key)
    }

    /// The commit a new one takes as its parent: the greatest by version, time and id, whatever `graph_head` says.
    pub fn head_commit(&self) -> Option<&LegacyCommit> {
        head_commit(&self.commits)
    }

    /// A commit by its id.
    pub fn commit(&self, id: &str) -> Option<&LegacyCommit> {
        self.commits.iter().find(|c| c.id == id)
    }

    /// Two live tables under one alias, if there are any.
    pub fn clash(&self) -> Option<&str> {
        let mut seen = BTreeMap::new();
        self.live()
            .find(|(r, _)| seen.insert(&r.table_key, r.identity).is_some())
            .map(|(r, _)| r.table_key.as_str())
    }
}

/// One branch of a root as it stands.
#[derive(Debug, Clone)]
pub struct BranchCatalog {
    /// Logical name; `None` is main.
    pub branch: Option<String>,
    /// Native ref; `None` is main.
    pub native: Option<String>,
    /// Lance identifier of the native ref; empty for main.
    pub identifier: BranchIdentifier,
    /// Stamp of the version.
    pub stamp: Stamp,
    /// The opened version.
    pub version: ManifestVersion,
    /// Its rows.
    pub rows: CatalogRows,
}

impl BranchCatalog {
    /// Read the newest version of a live branch (`None` and `main` are main). No such branch is
    /// [`Error::NotFound`]; a stamp that is not served or an upgrade in flight [`Error::Refused`].
    pub async fn read(root: &Root, branch: Option<&str>) -> Result<Self> {
        let native = refs::resolve_branch(root, branch).await?;
        Self::of(root, native, None).await
    }

    /// The same branch at an older version.
    pub async fn at(&self, root: &Root, version: u64) -> Result<CatalogRows> {
        let opened = root
            .open_manifest(self.native.as_deref(), Some(version))
            .await?;
        rows_of_version(&opened, self.stamp).await
    }

    async fn of(root: &Root, native: Option<NativeRef>, version: Option<u64>) -> Result<Self> {
        let name = native.as_ref().map(|n| n.native.clone());
        let version = root.open_manifest(name.as_deref(), version).await?;
        let stamp = served(&version)?;
        let rows = rows_of_version(&version, stamp).await?;
        Ok(Self {
            branch: name.as_deref().map(|n| logical_name(n).to_string()),
            identifier: native.map(|n| n.contents.identifier).unwrap_or_default(),
            native: name,
            stamp,
            version,
            rows,
        })
    }

    /// The logical name as rows and messages spell it.
    pub fn name(&self) -> &str {
        self.branch.as_deref().unwrap_or(MAIN)
    }

    /// The commit that the `graph_head` row of this branch names.
    pub fn graph_head(&self) -> Option<&str> {
        self.rows.heads.get(self.name()).map(String::as_str)
    }
}

/// The logical names of the live branches besides main, ascending.
pub async fn live_branches(root: &Root) -> Result<Vec<String>> {
    let refs = refs::live_refs(root).await?;
    Ok(refs.iter().map(|r| r.logical().to_string()).collect())
}

/// The stamp of a version that these commands may read and write.
fn served(version: &ManifestVersion) -> Result<Stamp> {
    let candidate = Candidate::of(version);
    let refuse = |why: String| Err(Error::refused(format!("{}: {why}", version.describe())));
    if candidate.pending.is_some() {
        return refuse(format!(
            "it carries the key {PENDING_KEY}: a storage upgrade was started here; finish it with omnigraph upgrade"
        ));
    }
    let stamp = match candidate.stamp {
        StampReading::Number(n) => match Stamp::of(n) {
            Some(stamp) => stamp,
            None => {
                return refuse(format!(
                    "it has stamp {n}; recovery serves the stamps 6, 8 and 9 only"
                ));
            }
        },
        StampReading::Absent => return refuse("it has no stamp".into()),
        StampReading::NotANumber(text) => return refuse(format!("its stamp is '{text}'")),
    };
    if candidate.shape != Some(Shape::Flat) {
        return refuse(format!(
            "stamp {} stores one column per field, but its columns are not those",
            stamp.get()
        ));
    }
    Ok(stamp)
}

async fn rows_of_version(version: &ManifestVersion, stamp: Stamp) -> Result<CatalogRows> {
    let whole = Scan {
        flat: COLUMNS,
        content: &[],
        filter: None,
        fragments: None,
    };
    let rows = CatalogRows::default();
    fold_rows(version, Shape::Flat, whole, rows, move |rows, _, row| {
        rows.add(stamp, row)
    })
    .await
}
