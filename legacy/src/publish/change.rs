//! What one publish changes, and the rows that say so. Pure (`docs/format/recovery-sidecars.md` 12).

use graph::model::names::MAIN;
use graph::model::{Pin, TableIdentity, table::canonical_path};
use graph::refs::BranchIdentifier;

use super::catalog::{BranchCatalog, CatalogRows, SERVED_STAMPS};
use super::rows::NewRow;
use crate::row::{LegacyCommit, Registration};

/// A stamp that is written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp, when it is 6, 8 or 9.
    pub fn of(stamp: u32) -> Option<Self> {
        SERVED_STAMPS.contains(&stamp).then_some(Self(stamp))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Whether key clocks are the table's own versions (stamp 6) and not versions of `__manifest`.
    pub fn has_data_clock(self) -> bool {
        self.0 == 6
    }

    /// The clock of a row about table version `table_version` that manifest version `manifest` writes.
    fn clock(self, table_version: u64, manifest: u64) -> u64 {
        match self.has_data_clock() {
            true => table_version,
            false => manifest,
        }
    }

    pub(super) fn check_clock(self, clock: u64, version: u64) -> Result<(), String> {
        if self.has_data_clock() && clock != version {
            return Err(format!(
                "its key ends in {clock}, its table_version is {version}; at stamp 6 they are equal"
            ));
        }
        Ok(())
    }
}

/// One change of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Register a table that is not known yet.
    Register {
        /// Its identity.
        identity: TableIdentity,
        /// Its alias.
        table_key: String,
    },
    /// Give a table another alias.
    Rename {
        /// Its identity.
        identity: TableIdentity,
        /// The alias it has.
        expected_key: String,
        /// The version it shows.
        expected_version: u64,
        /// The alias it gets.
        table_key: String,
    },
    /// Pin a version.
    Update {
        /// Its identity.
        identity: TableIdentity,
        /// Its alias after this publish.
        table_key: String,
        /// The version it shows.
        expected_version: u64,
        /// The pin; its clock is ignored.
        pin: Pin,
    },
    /// Drop a table.
    Tombstone {
        /// Its identity.
        identity: TableIdentity,
        /// Its alias.
        table_key: String,
        /// The number of the tombstone, one above the version the table shows.
        version: u64,
    },
}

/// The commit a publish makes; its parent is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Commit id.
    pub id: String,
    /// Author.
    pub actor: Option<String>,
    /// Merged source head.
    pub merged_parent: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
}

/// The exact state of the branch that a roll-forward was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precondition {
    /// Lance identifier of the branch.
    pub identifier: BranchIdentifier,
    /// The commit its `graph_head` row names; `None` when it has no such row.
    pub graph_head: Option<String>,
}

/// Why a publish was not made. Nothing of it landed.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Storage or damage.
    #[error(transparent)]
    Graph(#[from] graph::Error),
    /// The branch is not the one the publish was decided on.
    #[error("ReadSetChanged {member}: expected {expected}, found {actual}")]
    ReadSetChanged {
        /// `branch_identifier:<b>`, `graph_head:<b>`, `dataset_binding:<identity>`.
        member: String,
        /// What was decided on.
        expected: String,
        /// What is there.
        actual: String,
    },
    /// A table shows another version.
    #[error(
        "PublishedDatasetVersionMismatch {table_key}: expected version {expected}, found {actual}"
    )]
    VersionMismatch {
        /// The table.
        table_key: String,
        /// What was decided on.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// The change contradicts the catalog.
    #[error("{0}")]
    Invalid(String),
    /// The version was taken by others on every attempt.
    #[error(
        "__manifest was written by another process during each of {0} attempts; stop it, then rerun"
    )]
    Contended(u32),
}

/// Check that the branch is still the one a publish was decided on.
pub fn check_precondition(
    catalog: &BranchCatalog,
    precondition: &Precondition,
) -> Result<(), PublishError> {
    let name = catalog.name();
    let words = |head: Option<&str>| head.unwrap_or("no row").to_string();
    if catalog.identifier != precondition.identifier {
        return Err(PublishError::ReadSetChanged {
            member: format!("branch_identifier:{name}"),
            expected: format!("{:?}", precondition.identifier.version_mapping),
            actual: format!("{:?}", catalog.identifier.version_mapping),
        });
    }
    let expected = precondition.graph_head.as_deref();
    if catalog.graph_head() != expected {
        return Err(PublishError::ReadSetChanged {
            member: format!("graph_head:{name}"),
            expected: words(expected),
            actual: words(catalog.graph_head()),
        });
    }
    Ok(())
}

/// The rows of a publish that makes version `manifest` of the branch named `branch` (`None` = main), in stored
/// order: registrations and renames, pins and tombstones, commit, head.
pub fn rows_of(
    rows: &CatalogRows,
    stamp: Stamp,
    manifest: u64,
    branch: Option<&str>,
    changes: &[Change],
    lineage: &Lineage,
) -> Result<Vec<NewRow>, PublishError> {
    if rows.commit(&lineage.id).is_some() {
        return Err(PublishError::Invalid(format!(
            "commit {} is already there",
            lineage.id
        )));
    }
    let mut after = rows.clone();
    let (mut tables, mut others) = (Vec::new(), Vec::new());
    for change in changes {
        expect(rows, change)?;
        match change {
            Change::Register {
                identity,
                table_key,
            }
            | Change::Rename {
                identity,
                table_key,
                ..
            } => {
                let registration = Registration {
                    identity: *identity,
                    table_key: table_key.clone(),
                    table_path: canonical_path(table_key, *identity)?,
                };
                // An identical re-registration adds no row.
                if rows.registrations.get(identity) != Some(&registration) {
                    tables.push(NewRow::table(&registration));
                    after.registrations.insert(*identity, registration);
                }
            }
            Change::Update {
                identity,
                table_key,
                pin,
                ..
            } => {
                let clock = stamp.clock(pin.table_version, manifest);
                check_replaced(rows, *identity, clock, table_key, pin)?;
                others.push(NewRow::pin(*identity, table_key, clock, pin));
                after.pins.insert((*identity, clock), pin.clone());
            }
            Change::Tombstone {
                identity,
                table_key,
                version,
            } => {
                let clock = stamp.clock(*version, manifest);
                others.push(NewRow::tombstone(*identity, table_key, clock, *version));
                after.tombstones.insert((*identity, clock), *version);
            }
        }
    }
    validate(&after)?;
    let commit = LegacyCommit {
        id: lineage.id.clone(),
        branch: branch.map(str::to_string),
        version: manifest,
        parent: rows.head_commit().map(|c| c.id.clone()),
        merged_parent: lineage.merged_parent.clone(),
        actor: lineage.actor.clone(),
        created_at: lineage.created_at,
    };
    tables.append(&mut others);
    tables.push(NewRow::commit(&commit));
    tables.push(NewRow::head(branch.unwrap_or(MAIN), &commit));
    Ok(tables)
}

/// The expectation of one change.
fn expect(rows: &CatalogRows, change: &Change) -> Result<(), PublishError> {
    let (identity, table_key, expected) = match change {
        Change::Register {
            identity,
            table_key,
        } => (identity, table_key, 0),
        Change::Rename {
            identity,
            expected_key,
            expected_version,
            ..
        } => {
            let held = rows.registrations.get(identity);
            if held.is_none_or(|r| r.table_key != *expected_key) {
                return Err(PublishError::ReadSetChanged {
                    member: format!("dataset_binding:{identity}"),
                    expected: expected_key.clone(),
                    actual: held.map_or("no table".into(), |r| r.table_key.clone()),
                });
            }
            (identity, expected_key, *expected_version)
        }
        Change::Update {
            identity,
            table_key,
            expected_version,
            ..
        } => (identity, table_key, *expected_version),
        Change::Tombstone {
            identity,
            table_key,
            version,
        } => (identity, table_key, version.saturating_sub(1)),
    };
    let actual = rows.published_version(*identity);
    if actual == expected {
        return Ok(());
    }
    Err(PublishError::VersionMismatch {
        table_key: table_key.clone(),
        expected,
        actual,
    })
}

/// A stored pin row accepts an update only with an equal row count and another branch, or when nothing changes.
fn check_replaced(
    rows: &CatalogRows,
    identity: TableIdentity,
    clock: u64,
    table_key: &str,
    pin: &Pin,
) -> Result<(), PublishError> {
    let Some(held) = rows.pins.get(&(identity, clock)) else {
        return Ok(());
    };
    let handed_off = held.table_branch != pin.table_branch;
    let same = held.metadata == pin.metadata && held.table_version == pin.table_version;
    if held.row_count == pin.row_count && (handed_off || same) {
        return Ok(());
    }
    Err(PublishError::Invalid(format!(
        "table {table_key} already has a row for version {} with {} rows and other metadata",
        pin.table_version, held.row_count
    )))
}

fn validate(after: &CatalogRows) -> Result<(), PublishError> {
    if let Some(alias) = after.clash() {
        return Err(PublishError::Invalid(format!(
            "two live tables would be called {alias}"
        )));
    }
    let stray = after
        .pins
        .keys()
        .chain(after.tombstones.keys())
        .find(|(identity, _)| !after.registrations.contains_key(identity));
    match stray {
        Some((identity, _)) => Err(PublishError::Invalid(format!(
            "table {identity} is pinned or dropped but not registered"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
