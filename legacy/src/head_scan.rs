//! The one full scan of a ref's head (`docs/format/legacy-manifest.md` 6.2).
//!
//! A legacy head never drops a registration, so this scan holds every pin and drop ever written on the
//! ref's lineage: the pins of older versions are derived from it, not read again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use graph::Result;
use graph::model::{Pin, TableIdentity};
use graph::store::ManifestVersion;

use crate::admission::AdmittedStamp;
use crate::contract::SourceContract;
use crate::row::{LegacyCommit, Registration, Row};
use crate::scan::{Scan, fold_rows};

/// All logical columns; the flat `base_objects` is never read.
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

/// Everything a head holds, by kind.
#[derive(Debug, Clone, Default)]
pub struct HeadScan {
    /// Version that was scanned.
    pub version: u64,
    /// Every commit row, inherited ones included, in scan order.
    pub commits: Vec<LegacyCommit>,
    /// `graph_head` rows: logical branch (`main` for main) to commit id.
    pub heads: BTreeMap<String, String>,
    /// `table` rows.
    pub registrations: BTreeMap<TableIdentity, Registration>,
    /// Stable row ids of the `table` rows, with the row.
    pub table_row_ids: Vec<(u64, Registration)>,
    /// Pins by table and clock.
    pub pins: BTreeMap<(TableIdentity, u64), Pin>,
    /// Sealed versions of drops by table and clock.
    pub tombstones: BTreeMap<(TableIdentity, u64), u64>,
    /// The contract of the head: its row at stamp 13, the root's below.
    pub contract: Option<Arc<SourceContract>>,
    /// Rows scanned.
    pub rows: u64,
    /// `table` rows among them.
    pub table_rows: u64,
}

/// A scan in progress: the aliases of drops are checked when every `table` row was seen.
#[derive(Default)]
struct Partial {
    scan: HeadScan,
    dropped_as: BTreeMap<(TableIdentity, u64), String>,
}

/// Scan a head whose rows are read as `stamp`. A contradiction among its rows is
/// [`graph::Error::Internal`] naming row and version.
pub(crate) async fn scan(version: &ManifestVersion, stamp: AdmittedStamp) -> Result<HeadScan> {
    let partial = Partial {
        scan: HeadScan {
            version: version.version,
            ..HeadScan::default()
        },
        ..Partial::default()
    };
    let whole = Scan {
        flat: COLUMNS,
        content: &["schema_source", "schema_ir"],
        filter: None,
        fragments: None,
    };
    fold_rows(
        version,
        stamp.shape(),
        whole,
        partial,
        |partial, place, row| {
            if let Row::Table(registration) = &row {
                let ids = &mut partial.scan.table_row_ids;
                ids.push((place.row_id, registration.clone()));
            }
            partial.add(row)
        },
    )
    .await?
    .finish()
    .map_err(|why| graph::Error::internal(format!("{}: {why}", version.describe())))
}

impl HeadScan {
    /// Fold decoded rows of version `version`, without storage.
    pub fn of_rows(
        version: u64,
        rows: impl IntoIterator<Item = Row>,
    ) -> std::result::Result<Self, String> {
        let mut partial = Partial::default();
        partial.scan.version = version;
        for row in rows {
            partial.add(row)?;
        }
        partial.finish()
    }
}

impl Partial {
    fn add(&mut self, row: Row) -> std::result::Result<(), String> {
        let scan = &mut self.scan;
        scan.rows += 1;
        match row {
            Row::Table(registration) => {
                scan.table_rows += 1;
                match scan.registrations.entry(registration.identity) {
                    Entry::Vacant(slot) => {
                        slot.insert(registration);
                    }
                    Entry::Occupied(held) if *held.get() == registration => {}
                    Entry::Occupied(held) => {
                        return Err(format!(
                            "a second row registers the same table as '{}', this one as '{}'",
                            held.get().table_key,
                            registration.table_key
                        ));
                    }
                }
            }
            Row::Pin { identity, pin } => {
                let at = (identity, pin.manifest_version);
                free_clock(scan, at)?;
                scan.pins.insert(at, pin);
            }
            Row::Tombstone {
                identity,
                table_key,
                clock,
                sealed_version,
            } => {
                let at = (identity, clock);
                free_clock(scan, at)?;
                scan.tombstones.insert(at, sealed_version);
                self.dropped_as.insert(at, table_key);
            }
            Row::Commit(commit) => scan.commits.push(commit),
            Row::Head { branch, commit } => {
                if let Some(held) = scan.heads.insert(branch, commit) {
                    return Err(format!(
                        "a second row of this key, the other one names {held}"
                    ));
                }
            }
            Row::Contract(row) => {
                if scan.contract.is_some() {
                    return Err("a second contract row".to_string());
                }
                scan.contract = Some(Arc::new(row.into_contract()?));
            }
        }
        Ok(())
    }

    fn finish(self) -> std::result::Result<HeadScan, String> {
        let scan = self.scan;
        for ((identity, clock), alias) in &self.dropped_as {
            match scan.registrations.get(identity) {
                None => {
                    return Err(format!(
                        "the drop of table {identity} at version {clock} ({alias}) names a table that \
                         has no 'table' row"
                    ));
                }
                Some(held) if held.table_key != *alias => {
                    return Err(format!(
                        "the drop of table {identity} at version {clock} calls it '{alias}', its \
                         'table' row calls it '{}'",
                        held.table_key
                    ));
                }
                Some(_) => {}
            }
        }
        // A 'table' row is never removed, and a pin that no row registers would silently be left out of
        // every record.
        if let Some((identity, clock)) = scan
            .pins
            .keys()
            .find(|(identity, _)| !scan.registrations.contains_key(identity))
        {
            return Err(format!(
                "the pin of table {identity} at version {clock} names a table that has no 'table' row"
            ));
        }
        Ok(scan)
    }
}

/// A pin or drop needs a clock of its own, at or below the scanned version.
fn free_clock(scan: &HeadScan, at: (TableIdentity, u64)) -> std::result::Result<(), String> {
    if at.1 > scan.version {
        return Err(format!(
            "its clock {} is above the version {} it is stored in",
            at.1, scan.version
        ));
    }
    if scan.pins.contains_key(&at) || scan.tombstones.contains_key(&at) {
        return Err(format!(
            "table {} already has a pin or drop at clock {}",
            at.0, at.1
        ));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::row::ContractRow;
    use graph::model::{ContractHead, PinMetadata};

    fn id(n: u64) -> TableIdentity {
        TableIdentity::new(n, n).unwrap()
    }

    fn table(n: u64, key: &str) -> Row {
        Row::Table(Registration {
            identity: id(n),
            table_key: key.into(),
            table_path: format!("nodes/{n}"),
        })
    }

    fn pin(n: u64, clock: u64) -> Row {
        Row::Pin {
            identity: id(n),
            pin: Pin {
                table_version: 1,
                table_branch: None,
                row_count: 0,
                metadata: PinMetadata::default(),
                manifest_version: clock,
            },
        }
    }

    fn drop(n: u64, key: &str, clock: u64) -> Row {
        Row::Tombstone {
            identity: id(n),
            table_key: key.into(),
            clock,
            sealed_version: 9,
        }
    }

    fn head(branch: &str) -> Row {
        Row::Head {
            branch: branch.into(),
            commit: "C".into(),
        }
    }

    #[test]
    fn rows_are_sorted_by_kind_whatever_their_order() {
        let rows = [
            drop(1, "node:A", 5),
            pin(1, 3),
            table(1, "node:A"),
            pin(1, 4),
            head("main"),
        ];
        for rotation in 0..rows.len() {
            let mut rows = rows.to_vec();
            rows.rotate_left(rotation);
            let scan = HeadScan::of_rows(5, rows).unwrap();
            assert_eq!((scan.rows, scan.table_rows), (5, 1));
            assert_eq!(
                (scan.pins.len(), scan.tombstones.len(), scan.heads.len()),
                (2, 1, 1)
            );
        }
        let twice = HeadScan::of_rows(1, [table(1, "node:A"), table(1, "node:A")]).unwrap();
        assert_eq!((twice.table_rows, twice.registrations.len()), (2, 1));
    }

    #[test]
    fn contradictions_are_refused() {
        let contract = |source: Option<&str>, ir: Option<&str>| {
            Row::Contract(ContractRow {
                head: ContractHead {
                    schema_ir_hash: "h".into(),
                    schema_identity_version: 2,
                    schema_identity_domain: "d".into(),
                },
                source: source.map(str::to_string),
                ir: ir.map(str::to_string),
            })
        };
        let a = || table(1, "node:A");
        for (rows, words) in [
            (vec![a(), pin(1, 6)], "above the version 5"),
            (vec![a(), drop(1, "node:A", 6)], "above the version 5"),
            (vec![a(), pin(1, 3), pin(1, 3)], "already has a pin or drop"),
            (
                vec![a(), pin(1, 3), drop(1, "node:A", 3)],
                "already has a pin or drop",
            ),
            (
                vec![a(), drop(1, "node:A", 3), drop(1, "node:A", 3)],
                "already has",
            ),
            (vec![head("x"), head("x")], "second row of this key"),
            (vec![a(), table(1, "node:B")], "second row registers"),
            (vec![drop(1, "node:A", 3)], "has no 'table' row"),
            (vec![drop(1, "node:B", 3), a()], "calls it 'node:B'"),
            (vec![pin(2, 3), a()], "has no 'table' row"),
            (vec![contract(None, None)], "without schema_source"),
            (vec![contract(None, Some("{}"))], "without schema_source"),
            (vec![contract(Some("x"), None)], "without schema_ir"),
            (
                vec![contract(Some("x"), Some("{}")); 2],
                "second contract row",
            ),
        ] {
            let why = HeadScan::of_rows(5, rows).expect_err(words);
            assert!(why.contains(words), "{why} does not say {words}");
        }
    }
}
