//! Behaviours 33 to 36: what readers of the converted graph see of its past.

use std::collections::{BTreeMap, BTreeSet};

use fixtures::legacy_writer::{LegacyRow, create_branch};
use graph::history::lookup::HistoryReader;
use graph::model::{PinMetadata, TableIdentity};
use graph::store::Root;
use graph::table::open_pin;
use graph::view::{At, commit_list, snapshot};
use upgrade::Outcome;

use crate::support::*;

async fn converted(kind: Kind) -> (Case, Root) {
    let case = kind.copy().await;
    assert_eq!(case.execute().await.outcome, Outcome::Completed);
    let root = case.root().await;
    (case, root)
}

#[test]
fn b33_numeric_snapshots_serve_the_commit_at_or_below() {
    run(|| async {
        for kind in [Kind::S8, Kind::S9, Kind::S13] {
            let (case, root) = converted(kind).await;
            // (branch, first version, numbers of the commits served from there on)
            let served: [(Option<&str>, u64, &[usize]); 4] = [
                (None, 1, &[1, 2, 2, 4, 4, 4, 4]),
                (Some("feature"), 2, &[2, 2, 5, 6, 6]),
                (Some("fresh"), 4, &[5, 5]),
                (Some("child"), 3, &[3, 3]),
            ];
            for (branch, first, commits) in served {
                for (version, number) in (first..).zip(commits) {
                    let shown = snapshot(&root, branch, &At::Version(version))
                        .await
                        .unwrap();
                    let id = &shown.head.graph_commit_id;
                    assert_eq!(id, case.names.commit(*number), "{branch:?} {version}");
                    assert_eq!(shown.manifest_version, version);
                    assert_eq!(shown.branch.as_deref(), branch);
                    // Commit 1 has a contract of its own at stamp 13.
                    let hash = shown.head.schema_contract.unwrap();
                    let later = kind != Kind::S13 || *number > 1;
                    assert_eq!(hash == case.names.contract.head(), later);
                }
                let below = snapshot(&root, branch, &At::Version(first - 1)).await;
                assert!(below.unwrap_err().is_not_found(), "{branch:?}");
                let above = first + commits.len() as u64;
                let above = snapshot(&root, branch, &At::Version(above)).await;
                assert!(above.unwrap_err().is_not_found(), "{branch:?}");
            }
        }
    });
}

#[test]
fn b33_old_versions_keep_their_tables_and_names() {
    run(|| async {
        let (_case, root) = converted(Kind::S9).await;
        let shown = |version| {
            let root = root.clone();
            async move {
                let shown = snapshot(&root, None, &At::Version(version)).await.unwrap();
                let row = |t: &graph::model::TableRow| {
                    let pin = t.state.pin().map(|p| (p.table_version, p.row_count));
                    (t.table_key.clone(), pin)
                };
                shown.tables.iter().map(row).collect::<Vec<_>>()
            }
        };
        let is = |key: &str, pin| (key.to_string(), pin);
        assert_eq!(
            shown(1).await,
            [
                is("node:Draft", Some((1, 0))),
                is("node:Human", Some((1, 0))),
                is("edge:Knows", Some((1, 0))),
            ]
        );
        for version in [2, 3] {
            assert_eq!(
                shown(version).await,
                [
                    is("node:Draft", None),
                    is("node:Person", Some((2, 4))),
                    is("edge:Knows", Some((2, 2))),
                ]
            );
        }
        for version in 4..=7 {
            assert_eq!(shown(version).await[1], is("node:Person", Some((3, 7))));
        }
    });
}

#[test]
fn b33_a_branch_made_after_the_upgrade() {
    run(|| async {
        let (case, root) = converted(Kind::S9).await;
        let main = root.open_manifest(None, None).await.unwrap();
        create_branch(&root, &main.dataset, "later.01M9000000000000000000000B")
            .await
            .unwrap();
        let at = snapshot(&root, Some("later"), &At::Version(7))
            .await
            .unwrap();
        assert_eq!(at.head.graph_commit_id, case.names.commit(4));
        let below = snapshot(&root, Some("later"), &At::Version(6)).await;
        assert!(below.unwrap_err().is_not_found());
        let list = commit_list(&root, Some("later")).await.unwrap();
        assert_eq!(list.len(), 3);
    });
}

#[test]
fn b34_lineages_and_lookup_cross_the_upgrade() {
    run(|| async {
        for kind in [Kind::S8, Kind::S9, Kind::S13] {
            let (case, root) = converted(kind).await;
            let n = &case.names;
            for (branch, numbers) in [
                (None, &[4, 2, 1][..]),
                (Some("feature"), &[6, 5, 2, 1]),
                (Some("fresh"), &[5, 2, 1]),
                // Commit 3 was written by the retired `gone`.
                (Some("child"), &[3, 2, 1]),
            ] {
                let list = commit_list(&root, branch).await.unwrap();
                let ids: Vec<&str> = list.iter().map(|c| c.graph_commit_id.as_str()).collect();
                let expected: Vec<&str> = numbers.iter().map(|i| n.commit(*i)).collect();
                assert_eq!(ids, expected, "{branch:?}");
                assert_eq!(list.last().unwrap().parent_commit_id, None);
                let generations: Vec<u64> = list.iter().map(|c| c.generation).collect();
                assert!(generations.is_sorted_by(|a, b| a > b), "{generations:?}");
                assert_eq!(generations.last(), Some(&0));
            }
            for number in 1..=6 {
                let at = At::Commit(n.commit(number).to_string());
                let shown = snapshot(&root, Some("child"), &at).await.unwrap();
                assert_eq!(shown.head.graph_commit_id, n.commit(number));
            }
            let unknown = At::Commit("01ARZ3NDEKTSV4RRFFQ69G5FAV".into());
            assert!(
                snapshot(&root, None, &unknown)
                    .await
                    .unwrap_err()
                    .is_not_found()
            );

            let all = HistoryReader::new(root.clone())
                .full_lineage()
                .await
                .unwrap();
            assert_eq!(all.len(), 6);
            let ancestors = |id: &str| {
                let (mut found, mut open) = (BTreeSet::new(), vec![id.to_string()]);
                while let Some(id) = open.pop() {
                    let commit = &all[&id];
                    open.extend(commit.parent_commit_id.clone());
                    open.extend(commit.merged_parent_commit_id.clone());
                    found.insert(id);
                }
                found
            };
            // The merge base of `child` and main is commit 3: main merged it.
            let (child, main) = (ancestors(n.commit(3)), ancestors(n.commit(4)));
            let common = child.intersection(&main);
            let base = common.max_by_key(|id| all[*id].generation).unwrap();
            assert_eq!(base, n.commit(3));
            assert_eq!(
                all[n.commit(3)].native_branch.as_deref(),
                Some(n.gone.as_str())
            );
            assert_eq!(all[n.commit(3)].graph_branch.as_deref(), Some("gone"));
        }
    });
}

#[test]
fn b35_writers_with_commits_are_listed_idle_is_not() {
    run(|| async {
        for kind in [Kind::S8, Kind::S9Lock] {
            let (case, root) = converted(kind).await;
            let n = &case.names;
            let reader = HistoryReader::new(root);
            for (native, number) in [
                (None, Some(4)),
                (Some(n.feature.as_str()), Some(6)),
                (Some(&n.gone), Some(3)),
                (Some(&n.idle), None),
                (Some(&n.fresh), None),
                (Some(&n.child), None),
                (n.lock.as_deref().or(Some("nobody")), None),
            ] {
                let head = reader.writer_head(native).await.unwrap();
                let id = head.map(|c| c.graph_commit_id);
                assert_eq!(id.as_deref(), number.map(|i| n.commit(i)), "{native:?}");
            }
        }
    });
}

/// Alias, location and pin of every visible table.
type Pins = BTreeMap<TableIdentity, (String, String, u64, Option<String>, u64, u64, PinMetadata)>;

/// The pins of a source head by its rows alone: the greatest clock, unless dropped at or above it.
fn source_pins(rows: &[LegacyRow], linear: bool) -> Pins {
    let of = |kind: &'static str| rows.iter().filter(move |r| r.object_type == kind);
    let mut pins = Pins::new();
    for table in of("table") {
        let identity = table.identity().unwrap();
        let same = |r: &&LegacyRow| r.identity() == Some(identity);
        let pin = of("table_version").filter(same).max_by_key(|r| r.clock());
        let dropped = of("table_tombstone").filter(same).map(|r| r.clock()).max();
        let Some(pin) = pin.filter(|p| dropped.is_none_or(|d| d < p.clock())) else {
            continue;
        };
        let mut metadata = PinMetadata::parse(pin.metadata.as_deref().unwrap(), "pin").unwrap();
        if linear {
            metadata.last_linear_version = pin.table_version;
        }
        pins.insert(
            identity,
            (
                table.table_key.clone(),
                table.location.clone().unwrap(),
                pin.table_version.unwrap(),
                pin.table_branch.clone(),
                pin.row_count.unwrap(),
                pin.clock().unwrap(),
                metadata,
            ),
        );
    }
    pins
}

#[test]
fn b36_converted_refs_serve_their_source_pins() {
    run(|| async {
        for kind in [Kind::S8, Kind::S9, Kind::S9Overwritten, Kind::S13] {
            let case = kind.copy().await;
            let linear = kind != Kind::S13;
            let legacy = case.legacy(&[]).await;
            assert_eq!(case.execute().await.outcome, Outcome::Completed);
            let root = case.root().await;
            for (native, (state, _)) in left(&case).await.heads {
                let expected = source_pins(&legacy.state(native.as_deref()).unwrap().rows, linear);
                assert_eq!(expected.len(), 2);
                let mut served = Pins::new();
                for table in state.visible_tables() {
                    let pin = table.state.pin().unwrap();
                    assert_eq!(
                        pin.metadata.last_linear_version,
                        linear.then_some(pin.table_version)
                    );
                    let opened = open_pin(&root, table, pin).await.unwrap();
                    let rows = opened.dataset.count_rows(None).await.unwrap();
                    assert_eq!(rows as u64, pin.row_count, "{native:?} {}", table.table_key);
                    served.insert(
                        table.identity,
                        (
                            table.table_key.clone(),
                            table.table_path.clone(),
                            pin.table_version,
                            pin.table_branch.clone(),
                            pin.row_count,
                            pin.manifest_version,
                            pin.metadata.clone(),
                        ),
                    );
                }
                assert_eq!(served, expected, "{native:?}");
            }
        }
    });
}
