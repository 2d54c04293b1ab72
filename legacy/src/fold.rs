//! Pure folds over a head scan: the head commit of a set, and the tables of any version at or below the
//! head (`docs/format/legacy-manifest.md` 6.1, 6.4).

use graph::model::{TableIdentity, TableRow, TableState};

use crate::head_scan::HeadScan;
use crate::row::{LegacyCommit, Registration};

/// The head of a set of commits: the greatest by version, then time, then id. Legacy publishes chose
/// their parent by this rule.
pub fn head_commit<'a>(
    commits: impl IntoIterator<Item = &'a LegacyCommit>,
) -> Option<&'a LegacyCommit> {
    commits.into_iter().max_by_key(|c| commit_order(c))
}

/// The key [`head_commit`] takes the greatest of; orphaned writers order their records by it.
pub fn commit_order(commit: &LegacyCommit) -> (u64, i64, &str) {
    (commit.version, commit.created_at, commit.id.as_str())
}

/// The tables of version `version`: membership and aliases as registered there, pins and drops by
/// clock from the head scan of the lineage. One row per registration, in the given order.
pub fn tables_at(head: &HeadScan, version: u64, registrations: &[Registration]) -> Vec<TableRow> {
    registrations
        .iter()
        .map(|r| TableRow {
            identity: r.identity,
            table_key: r.table_key.clone(),
            table_path: r.table_path.clone(),
            state: state_at(head, version, r.identity),
        })
        .collect()
}

/// The state of one registered table: whichever of its last pin and last drop is later, a drop
/// winning a tie.
fn state_at(head: &HeadScan, version: u64, identity: TableIdentity) -> TableState {
    let clocks = (identity, 0)..=(identity, version);
    let pin = head.pins.range(clocks.clone()).next_back();
    let drop = head.tombstones.range(clocks).next_back();
    match (pin, drop) {
        (pin, Some((&(_, dropped_at), &sealed_version)))
            if pin.is_none_or(|(&(_, clock), _)| clock <= dropped_at) =>
        {
            TableState::Dropped {
                dropped_at,
                sealed_version,
            }
        }
        (Some((_, pin)), _) => TableState::Pinned(pin.clone()),
        _ => TableState::Registered,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use graph::model::{Pin, PinMetadata};
    use proptest::prelude::*;

    fn id(n: u64) -> TableIdentity {
        TableIdentity::new(n, 1).unwrap()
    }

    fn registration(n: u64) -> Registration {
        Registration {
            identity: id(n),
            table_key: format!("node:T{n}"),
            table_path: format!("nodes/{n}"),
        }
    }

    fn head(pins: &[(u64, u64)], drops: &[(u64, u64)]) -> HeadScan {
        let mut scan = HeadScan::default();
        for (table, clock) in pins {
            scan.pins.insert(
                (id(*table), *clock),
                Pin {
                    table_version: clock * 10,
                    table_branch: None,
                    row_count: 1,
                    metadata: PinMetadata::default(),
                    manifest_version: *clock,
                },
            );
        }
        for (table, clock) in drops {
            scan.tombstones.insert((id(*table), *clock), clock * 100);
        }
        scan
    }

    fn spelled(state: &TableState) -> String {
        match state {
            TableState::Registered => "registered".into(),
            TableState::Pinned(pin) => format!("pin {}", pin.manifest_version),
            TableState::Dropped {
                dropped_at,
                sealed_version,
            } => {
                format!("drop {dropped_at} sealed {sealed_version}")
            }
        }
    }

    #[test]
    fn states_by_clock() {
        for (pins, drops, version, want) in [
            (vec![], vec![], 5, "registered"),
            (vec![(1, 3)], vec![], 2, "registered"),
            (vec![(1, 3)], vec![], 3, "pin 3"),
            (vec![(1, 3), (1, 5)], vec![], 4, "pin 3"),
            (vec![(1, 3), (1, 5)], vec![], 9, "pin 5"),
            (vec![(1, 3)], vec![(1, 4)], 3, "pin 3"),
            (vec![(1, 3)], vec![(1, 4)], 4, "drop 4 sealed 400"),
            (vec![(1, 4)], vec![(1, 4)], 4, "drop 4 sealed 400"),
            (vec![(1, 5)], vec![(1, 4)], 5, "pin 5"),
            (vec![], vec![(1, 4)], 4, "drop 4 sealed 400"),
            (vec![(2, 3)], vec![(2, 4)], 9, "registered"),
        ] {
            let rows = tables_at(&head(&pins, &drops), version, &[registration(1)]);
            assert_eq!(
                spelled(&rows[0].state),
                want,
                "{pins:?} {drops:?} at {version}"
            );
        }
    }

    #[test]
    fn membership_and_order_are_the_registrations() {
        let scan = head(&[(1, 1), (2, 1), (3, 1)], &[]);
        let rows = tables_at(&scan, 1, &[registration(3), registration(1)]);
        let keys: Vec<_> = rows.iter().map(|r| r.table_key.as_str()).collect();
        assert_eq!(keys, ["node:T3", "node:T1"]);
    }

    #[test]
    fn the_head_is_the_greatest_by_version_time_and_id() {
        let commit = |id: &str, version, created_at| LegacyCommit {
            id: id.into(),
            branch: None,
            version,
            parent: None,
            merged_parent: None,
            actor: None,
            created_at,
        };
        let rising = [
            commit("Z", 1, 9),
            commit("Y", 2, -1),
            commit("A", 2, 5),
            commit("B", 2, 5),
        ];
        for end in 1..=rising.len() {
            let mut set = rising[..end].to_vec();
            set.reverse();
            assert_eq!(head_commit(&set), Some(&rising[end - 1]));
        }
        assert_eq!(head_commit(&[]), None);
    }

    proptest! {
        /// The fold agrees with replaying pins and drops in clock order.
        #[test]
        fn fold_equals_replay(
            events in proptest::collection::btree_map(1_u64..30, any::<bool>(), 0..12),
            version in 0_u64..32,
        ) {
            let of = |wanted: bool| -> Vec<(u64, u64)> {
                events.iter().filter(|(_, pin)| **pin == wanted).map(|(clock, _)| (1, *clock)).collect()
            };
            let scan = head(&of(true), &of(false));
            let rows = tables_at(&scan, version, &[registration(1)]);
            let last = events.iter().rfind(|(clock, _)| **clock <= version);
            let want = match last {
                None => "registered".to_string(),
                Some((clock, true)) => format!("pin {clock}"),
                Some((clock, false)) => format!("drop {clock} sealed {}", clock * 100),
            };
            prop_assert_eq!(spelled(&rows[0].state), want);
        }
    }
}
