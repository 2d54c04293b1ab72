//! Drift that raw Lance writers leave, at every stamp served.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::tree::{tree_changes, tree_digest};
use graph::model::names::MAIN;
use legacy::publish::BranchCatalog;
use recover::repair::{Action, Classification, DatasetReport, RepairOptions, RepairReport, repair};

use crate::carried::carry;
use crate::support::edit::*;
use crate::support::*;

async fn run_repair(path: &Path, confirm: bool, force: bool) -> RepairReport {
    let options = RepairOptions {
        confirm,
        force,
        now: Some(NOW),
    };
    repair(&open(path).await, &options).await.unwrap()
}

fn of<'a>(report: &'a RepairReport, branch: Option<&str>, key: &str) -> &'a DatasetReport {
    report
        .datasets
        .iter()
        .find(|d| d.type_key == key && d.branch.as_deref() == branch)
        .unwrap_or_else(|| panic!("{key} is not in {report:#?}"))
}

/// The folder of a table on a branch, and its ref.
async fn place(path: &Path, branch: Option<&str>, key: &str) -> (String, Option<String>) {
    let catalog = BranchCatalog::read(&open(path).await, branch)
        .await
        .unwrap();
    let (registration, pin) = catalog.rows.live_named(key).unwrap();
    (registration.table_path.clone(), pin.table_branch.clone())
}

async fn head_actor(path: &Path, branch: Option<&str>) -> Option<String> {
    let catalog = BranchCatalog::read(&open(path).await, branch)
        .await
        .unwrap();
    let head = catalog.rows.head_commit().unwrap();
    assert_eq!(catalog.graph_head(), Some(head.id.as_str()));
    head.actor.clone()
}

/// One root of each stamp, with a table of several fragments, one without blobs to append to, and another.
async fn roots(archives: &Path) -> Vec<(fixtures::sample::UnpackedRoot, u32)> {
    let mut all = Vec::new();
    for stamp in [6, 8, 9] {
        let root = stopped(archives, "observatory");
        if stamp != 6 {
            carry(root.path(), stamp).await;
        }
        all.push((root, stamp));
    }
    all
}

#[test]
fn compactions_are_healed_and_the_rest_only_by_force() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (root, stamp) in roots(&archives).await {
            let path = root.path();
            let opened = open(path).await;
            let clean = run_repair(path, true, false).await;
            let drifted = |r: &RepairReport| {
                r.datasets
                    .iter()
                    .filter(|d| d.action != Action::NoOp)
                    .count()
            };
            assert_eq!(drifted(&clean), 0, "stamp {stamp}: {clean:#?}");
            assert_eq!(clean.commits, []);

            let (observed, _) = place(path, None, "edge:Observed").await;
            let (duty, _) = place(path, None, "edge:OnDuty").await;
            let (used, _) = place(path, None, "edge:UsedOn").await;
            let (night, _) = place(path, None, "node:Night").await;
            // Two fragments to compact (indexed ones do not join others), published like a write.
            raw_append(&opened, &observed, None).await;
            raw_append(&opened, &observed, None).await;
            let first = run_repair(path, true, true).await;
            assert_eq!(of(&first, None, "edge:Observed").action, Action::Forced);
            assert_eq!(
                head_actor(path, None).await.as_deref(),
                Some("omnigraph:repair:force")
            );

            raw_compaction(&opened, &observed, None).await;
            raw_append(&opened, &duty, None).await;
            raw_delete(&opened, &night, None, "true").await;
            raw_index(&opened, &used, None).await;
            let before = tree_digest(path).unwrap();
            let preview = run_repair(path, false, false).await;
            let after = tree_digest(path).unwrap();
            assert_eq!(
                tree_changes(&before, &after),
                [""; 0],
                "a preview publishes nothing"
            );
            assert!(preview.is_success());
            for (key, class, operations) in [
                (
                    "edge:Observed",
                    Classification::VerifiedMaintenance,
                    &["ReserveFragments", "Rewrite"][..],
                ),
                ("edge:OnDuty", Classification::Suspicious, &["Append"]),
                ("node:Night", Classification::Suspicious, &["Delete"]),
                ("edge:UsedOn", Classification::Suspicious, &["CreateIndex"]),
                ("node:Target", Classification::NoDrift, &[]),
            ] {
                let row = of(&preview, None, key);
                assert_eq!(row.classification, class, "{row:?}");
                assert_eq!(row.operations, operations, "{row:?}");
                let action = if operations.is_empty() {
                    Action::NoOp
                } else {
                    Action::Preview
                };
                assert_eq!(row.action, action, "{row:?}");
            }

            let rows_before = left(path, &BTreeSet::new()).await.rows;
            let healed = run_repair(path, true, false).await;
            assert!(!healed.is_success(), "three tables are refused");
            assert_eq!(of(&healed, None, "edge:Observed").action, Action::Healed);
            assert_eq!(of(&healed, None, "edge:OnDuty").action, Action::Refused);
            assert_eq!(healed.commits.len(), 1);
            assert_eq!(
                healed.graph_manifest_version,
                Some(healed.commits[0].graph_manifest_version)
            );
            assert_eq!(
                head_actor(path, None).await.as_deref(),
                Some("omnigraph:repair")
            );
            let rows = left(path, &BTreeSet::new()).await.rows;
            assert_eq!(
                rows["main edge:Observed"].num_rows(),
                rows_before["main edge:Observed"].num_rows()
            );
            assert_eq!(rows["main edge:OnDuty"], rows_before["main edge:OnDuty"]);

            let forced = run_repair(path, true, true).await;
            assert!(forced.is_success());
            assert_eq!(
                head_actor(path, None).await.as_deref(),
                Some("omnigraph:repair:force")
            );
            let rows = left(path, &BTreeSet::new()).await.rows;
            let count = |key: &str| rows[&format!("{MAIN} {key}")].num_rows();
            assert_eq!(
                count("edge:OnDuty"),
                rows_before["main edge:OnDuty"].num_rows() + 2
            );
            assert_eq!(count("node:Night"), 0);
            assert_eq!(
                drifted(&run_repair(path, true, true).await),
                0,
                "nothing is left"
            );
        }
    });
}

#[test]
fn a_branch_answers_for_its_own_fork() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (root, stamp) in roots(&archives).await {
            let path = root.path();
            let (location, branch) = place(path, Some("survey"), "edge:Observed").await;
            assert_eq!(branch.as_deref(), Some("survey"));
            let main = head_actor(path, None).await;
            raw_append(&open(path).await, &location, branch.as_deref()).await;
            let refused = run_repair(path, true, false).await;
            let row = of(&refused, Some("survey"), "edge:Observed");
            assert_eq!(
                (row.action, row.classification),
                (Action::Refused, Classification::Suspicious)
            );
            let forced = run_repair(path, true, true).await;
            assert_eq!(forced.graph_manifest_version, None, "main got no commit");
            assert_eq!(forced.commits.len(), 1, "stamp {stamp}");
            assert_eq!(forced.commits[0].branch.as_deref(), Some("survey"));
            let after = left(path, &BTreeSet::new()).await;
            let pin = &after.pins["survey"]["edge:Observed"];
            assert_eq!(
                (pin.0, pin.1.as_deref()),
                (row.lance_head_version, Some("survey"))
            );
            assert_eq!(head_actor(path, None).await, main);
        }
    });
}

#[test]
fn a_version_without_a_record_is_unverifiable() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "observatory");
        let path = root.path();
        let (duty, _) = place(path, None, "edge:OnDuty").await;
        let opened = open(path).await;
        let pinned = newest(&opened, &duty, None).await.manifest().version;
        raw_append(&opened, &duty, None).await;
        raw_append(&opened, &duty, None).await;
        let gone = format!("{}.manifest", u64::MAX - (pinned + 1));
        std::fs::remove_file(path.join(&duty).join("_versions").join(gone)).unwrap();
        let report = run_repair(path, true, false).await;
        let row = of(&report, None, "edge:OnDuty");
        assert_eq!(
            (row.action, row.classification),
            (Action::Refused, Classification::Unverifiable)
        );
        assert!(
            row.error
                .as_deref()
                .unwrap()
                .contains(&(pinned + 1).to_string()),
            "{row:?}"
        );
        assert_eq!(row.operations, [""; 0]);
    });
}

#[test]
fn what_repair_waits_for() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (name, words) in [
            ("sc-load-confirmed", "01M8PHWYFKR2AXM9P6FQKQB792"),
            ("s8-lock-ab1", "__schema_apply_lock__"),
            ("s14-evolution", "stamp 14"),
        ] {
            let root = stopped(&archives, name);
            let before = tree_digest(root.path()).unwrap();
            let options = RepairOptions {
                confirm: true,
                force: true,
                now: None,
            };
            let error = repair(&open(root.path()).await, &options)
                .await
                .unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            let after = tree_digest(root.path()).unwrap();
            assert_eq!(tree_changes(&before, &after), [""; 0]);
        }
        let root = stopped(&archives, "observatory");
        let options = RepairOptions {
            force: true,
            ..RepairOptions::default()
        };
        assert!(repair(&open(root.path()).await, &options).await.is_err());
        std::fs::write(root.path().join("_schema.pg.staging"), "x").unwrap();
        let error = repair(&open(root.path()).await, &RepairOptions::default())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("_schema.pg.staging"), "{error}");
    });
}

#[test]
fn the_foreign_sample_is_named_by_the_upgrade_check_and_healed_here() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "s9-foreign");
        let options = upgrade::UpgradeOptions {
            check: true,
            ..upgrade::UpgradeOptions::default()
        };
        let check = upgrade::upgrade(&open(root.path()).await, &options).await;
        assert_eq!(check.tables_above_pin, 1, "{check:#?}");
        assert!(upgrade::report::render(&check).contains("omnigraph repair"));
        let report = run_repair(root.path(), true, true).await;
        assert_eq!(of(&report, None, "node:Target").action, Action::Forced);
        let check = upgrade::upgrade(&open(root.path()).await, &options).await;
        assert_eq!(check.tables_above_pin, 0, "{check:#?}");
        assert!(!upgrade::report::render(&check).contains("omnigraph repair"));
        let done = upgrade::upgrade(
            &open(root.path()).await,
            &upgrade::UpgradeOptions::default(),
        )
        .await;
        assert_eq!(done.outcome, upgrade::Outcome::Completed, "{done:#?}");
    });
}
