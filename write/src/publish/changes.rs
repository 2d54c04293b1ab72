//! What a publish changes, applied to the rows it read (`docs/format/manifest-v14.md` 9 steps 3 and 4). Pure.

use std::collections::{BTreeMap, BTreeSet};

use graph::Error;
use graph::manifest::BranchState;
use graph::model::table::canonical_path;
use graph::model::{Pin, PinMetadata, TableIdentity, TableRow, TableState};
use graph::schema::contract::Contract;

use crate::error::{Result, WriteError};

/// A registration or a rename; applied before the updates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A table that appears. Its row starts registered.
    Register {
        /// Type id and incarnation.
        identity: TableIdentity,
        /// Alias.
        table_key: String,
    },
    /// A type that got another name; the pin stays as it is.
    Rename {
        /// Which table; must be pinned.
        identity: TableIdentity,
        /// The alias it must have.
        from: String,
        /// The alias it gets, of the same kind.
        to: String,
    },
}

/// A pin or a drop of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// The table shows another version.
    Pin {
        /// Which table.
        identity: TableIdentity,
        /// Alias after the bindings.
        table_key: String,
        /// The version; its clock is set by the publish.
        pin: Box<NewPin>,
    },
    /// The table is gone for good.
    Drop {
        /// Which table; must not be dropped yet.
        identity: TableIdentity,
        /// What the tombstone seals.
        sealed_version: u64,
    },
}

/// A [`Pin`] whose clock is the version that the publish writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPin {
    /// Published dataset version: the pin before plus the links staged since.
    pub table_version: u64,
    /// Native ref of the table dataset; carried over.
    pub table_branch: Option<String>,
    /// Live rows.
    pub row_count: u64,
    /// Metadata of the staged manifest.
    pub metadata: PinMetadata,
}

/// The changes of one publish. Each identity has at most one binding and at most one update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Registrations and renames.
    pub bindings: Vec<Binding>,
    /// Pins and drops.
    pub updates: Vec<Update>,
    /// The contract that replaces the accepted one.
    pub contract: Option<Contract>,
}

/// What a table must look like when the publish reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedTable {
    /// Which table.
    pub identity: TableIdentity,
    /// Its alias.
    pub table_key: String,
    /// Its published version; a dropped one's sealed version; 0 for an absent or registered one.
    pub table_version: u64,
    /// Native ref it must be pinned on, when that is to be compared.
    pub table_branch: Option<Option<String>>,
}

impl ExpectedTable {
    /// Exactly what `row` says.
    pub fn of(row: &TableRow) -> Self {
        Self {
            identity: row.identity,
            table_key: row.table_key.clone(),
            table_version: published(Some(row)),
            table_branch: row.state.pin().map(|p| p.table_branch.clone()),
        }
    }
}

fn published(row: Option<&TableRow>) -> u64 {
    match row.map(|r| &r.state) {
        None | Some(TableState::Registered) => 0,
        Some(TableState::Pinned(pin)) => pin.table_version,
        Some(TableState::Dropped { sealed_version, .. }) => *sealed_version,
    }
}

/// Compare the expectations in identity order; the first that does not hold is the conflict.
pub fn check_expected(state: &BranchState, expected: &[ExpectedTable]) -> Result<()> {
    let mut ordered: Vec<&ExpectedTable> = expected.iter().collect();
    ordered.sort_by_key(|e| e.identity);
    for want in ordered {
        let row = state.table(want.identity);
        if let Some(found) = row
            && found.table_key != want.table_key
        {
            return Err(WriteError::changed(
                format!("dataset_binding:{}", want.identity),
                &want.table_key,
                &found.table_key,
            ));
        }
        let actual = published(row);
        if actual != want.table_version {
            return Err(WriteError::VersionMismatch {
                table_key: want.table_key.clone(),
                expected: want.table_version,
                actual,
            });
        }
        if let Some(branch) = &want.table_branch {
            let found = row.and_then(|r| r.state.pin()).map(|p| &p.table_branch);
            if found != Some(branch) {
                let name = |b: Option<&String>| b.map_or("main", String::as_str).to_string();
                return Err(WriteError::changed(
                    format!("native_ref:{}", want.table_key),
                    name(branch.as_ref()),
                    found.map_or_else(|| "no pin".to_string(), |b| name(b.as_ref())),
                ));
            }
        }
    }
    Ok(())
}

/// The rows after `changes`, ascending by identity; `version` is the version that is being written. A change
/// that does not fit the rows is [`Error::Internal`]: its caller prepared it from the same state.
pub fn apply(state: &BranchState, changes: &Changes, version: u64) -> Result<Vec<TableRow>> {
    let mut rows: BTreeMap<TableIdentity, TableRow> = state
        .tables
        .iter()
        .map(|row| (row.identity, row.clone()))
        .collect();
    let mut bound = BTreeSet::new();
    for binding in &changes.bindings {
        let identity = match binding {
            Binding::Register { identity, .. } | Binding::Rename { identity, .. } => *identity,
        };
        once(&mut bound, identity, "binding")?;
        bind(&mut rows, binding)?;
    }
    let mut updated = BTreeSet::new();
    for update in &changes.updates {
        let identity = match update {
            Update::Pin { identity, .. } | Update::Drop { identity, .. } => *identity,
        };
        once(&mut updated, identity, "update")?;
        let row = rows
            .get_mut(&identity)
            .ok_or_else(|| Error::internal(format!("table {identity} is not registered")))?;
        if let TableState::Dropped { dropped_at, .. } = row.state {
            return Err(Error::internal(format!(
                "table {} ({identity}) was dropped at version {dropped_at}",
                row.table_key
            ))
            .into());
        }
        row.state = updated_state(row, update, version)?;
    }
    Ok(rows.into_values().collect())
}

fn once(seen: &mut BTreeSet<TableIdentity>, identity: TableIdentity, what: &str) -> Result<()> {
    if seen.insert(identity) {
        return Ok(());
    }
    Err(Error::internal(format!("a publish holds two {what}s of table {identity}")).into())
}

fn bind(rows: &mut BTreeMap<TableIdentity, TableRow>, binding: &Binding) -> Result<()> {
    match binding {
        Binding::Register {
            identity,
            table_key,
        } => {
            let row = TableRow {
                identity: *identity,
                table_path: canonical_path(table_key, *identity)?,
                table_key: table_key.clone(),
                state: TableState::Registered,
            };
            match rows.get(identity) {
                None => {
                    rows.insert(*identity, row);
                }
                Some(found) if found.table_key == *table_key => {}
                Some(found) => {
                    return Err(Error::Conflict(format!(
                        "table {identity} is registered as {}, not as {table_key}",
                        found.table_key
                    ))
                    .into());
                }
            }
        }
        Binding::Rename { identity, from, to } => {
            let row = rows
                .get_mut(identity)
                .filter(|row| row.table_key == *from && row.state.pin().is_some())
                .ok_or_else(|| {
                    Error::internal(format!("no pinned table {identity} is called {from}"))
                })?;
            if canonical_path(to, *identity)? != row.table_path {
                return Err(Error::internal(format!(
                    "a rename from {from} to {to} would move the table"
                ))
                .into());
            }
            row.table_key.clone_from(to);
        }
    }
    Ok(())
}

fn updated_state(row: &TableRow, update: &Update, version: u64) -> Result<TableState> {
    Ok(match update {
        Update::Pin { table_key, pin, .. } => {
            if row.table_key != *table_key {
                return Err(Error::internal(format!(
                    "table {} is called {}, not {table_key}",
                    row.identity, row.table_key
                ))
                .into());
            }
            TableState::Pinned(Pin {
                table_version: pin.table_version,
                table_branch: pin.table_branch.clone(),
                row_count: pin.row_count,
                metadata: pin.metadata.clone(),
                manifest_version: version,
            })
        }
        Update::Drop { sealed_version, .. } => TableState::Dropped {
            dropped_at: version,
            sealed_version: *sealed_version,
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::testing::{chain, pin, pinned, state};

    fn with_tables() -> BranchState {
        BranchState {
            tables: vec![pinned(1, "node:A", 4, 1), pinned(2, "edge:E", 2, 1)],
            ..state(chain(&["g"]))
        }
    }

    fn new_pin(table_version: u64) -> Box<NewPin> {
        let old = pin(table_version, 0);
        Box::new(NewPin {
            table_version,
            table_branch: None,
            row_count: 1,
            metadata: old.metadata,
        })
    }

    #[test]
    fn expectations_are_compared_in_identity_order() {
        let state = with_tables();
        let mut expected: Vec<ExpectedTable> = state.tables.iter().map(ExpectedTable::of).collect();
        check_expected(&state, &expected).unwrap();
        expected[1].table_version = 9;
        expected[0].table_key = "node:B".into();
        expected.reverse();
        let member = match check_expected(&state, &expected) {
            Err(WriteError::ReadSetChanged { member, .. }) => member,
            other => panic!("{other:?}"),
        };
        assert!(member.starts_with("dataset_binding:"), "{member}");
        expected[1].table_key = "node:A".into();
        assert!(matches!(
            check_expected(&state, &expected),
            Err(WriteError::VersionMismatch {
                expected: 9,
                actual: 2,
                ..
            })
        ));
        expected[0].table_version = 2;
        expected[0].table_branch = Some(Some("fork".into()));
        assert!(matches!(
            check_expected(&state, &expected),
            Err(WriteError::ReadSetChanged { member, .. }) if member == "native_ref:edge:E"
        ));
        let absent = ExpectedTable {
            identity: TableIdentity::new(9, 9).unwrap(),
            table_key: "node:New".into(),
            table_version: 0,
            table_branch: None,
        };
        check_expected(&state, &[absent]).unwrap();
    }

    #[test]
    fn bindings_come_before_updates() {
        let state = with_tables();
        let (a, new) = (
            state.tables[0].identity,
            TableIdentity::new(9, 109).unwrap(),
        );
        let changes = Changes {
            bindings: vec![
                Binding::Rename {
                    identity: a,
                    from: "node:A".into(),
                    to: "node:B".into(),
                },
                Binding::Register {
                    identity: new,
                    table_key: "node:A".into(),
                },
            ],
            updates: vec![
                Update::Pin {
                    identity: new,
                    table_key: "node:A".into(),
                    pin: new_pin(1),
                },
                Update::Drop {
                    identity: state.tables[1].identity,
                    sealed_version: 2,
                },
            ],
            contract: None,
        };
        let rows = apply(&state, &changes, 7).unwrap();
        let shown: Vec<(&str, u64)> = rows
            .iter()
            .map(|r| {
                let clock = match &r.state {
                    TableState::Pinned(p) => p.manifest_version,
                    TableState::Dropped { dropped_at, .. } => *dropped_at,
                    TableState::Registered => 0,
                };
                (r.table_key.as_str(), clock)
            })
            .collect();
        assert_eq!(shown, [("node:B", 1), ("edge:E", 7), ("node:A", 7)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let state = with_tables();
        let identity = state.tables[0].identity;
        let pin_as = |table_key: &str| Update::Pin {
            identity,
            table_key: table_key.into(),
            pin: new_pin(5),
        };
        let absent = TableIdentity::new(8, 8).unwrap();
        for changes in [
            Changes {
                updates: vec![pin_as("node:A"), pin_as("node:A")],
                ..Changes::default()
            },
            Changes {
                updates: vec![pin_as("node:X")],
                ..Changes::default()
            },
            Changes {
                updates: vec![Update::Drop {
                    identity: absent,
                    sealed_version: 1,
                }],
                ..Changes::default()
            },
            Changes {
                bindings: vec![Binding::Register {
                    identity,
                    table_key: "node:Other".into(),
                }],
                ..Changes::default()
            },
            Changes {
                bindings: vec![Binding::Rename {
                    identity,
                    from: "node:A".into(),
                    to: "edge:A".into(),
                }],
                ..Changes::default()
            },
        ] {
            assert!(apply(&state, &changes, 7).is_err(), "{changes:?}");
        }
        let mut dropped = state.clone();
        dropped.tables[0].state = TableState::Dropped {
            dropped_at: 1,
            sealed_version: 4,
        };
        let changes = Changes {
            updates: vec![pin_as("node:A")],
            ..Changes::default()
        };
        assert!(apply(&dropped, &changes, 7).is_err());
    }
}
