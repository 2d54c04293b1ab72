//! Shapes beyond the samples: what decides otherwise, and what must not.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::tree::{tree_changes, tree_digest};
use graph::model::names::MAIN;
use legacy::publish::{BranchCatalog, Lineage, publish};
use recover::Report;
use recover::audit;
use recover::plan::{Decision, Purpose, minted};
use recover::report::{Outcome, Status};

use crate::support::edit::*;
use crate::support::*;

/// The report's only sidecar, settled by `decision`.
fn settled(report: &Report, decision: Decision) {
    assert_eq!(report.outcome, Outcome::Recovered, "{report:#?}");
    assert_eq!(report.sidecars.len(), 1);
    assert_eq!(report.sidecars[0].decision, decision, "{report:#?}");
    assert_eq!(report.sidecars[0].status, Status::Settled);
}

async fn kinds(path: &Path) -> Vec<String> {
    let rows = audit::rows(&open(path).await).await.unwrap();
    rows.into_iter().map(|r| r.recovery_kind).collect()
}

async fn main_commits(path: &Path) -> usize {
    let catalog = BranchCatalog::read(&open(path).await, None).await.unwrap();
    catalog.rows.commits.len()
}

#[test]
fn armed_with_every_effect_rolls_back() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in [
            "sc-load-confirmed",
            "sc-merge-confirmed",
            "sc-schema-staged",
        ] {
            let root = stopped(&archives, name);
            let file = only_sidecar(root.path());
            edit(&file, disarm);
            let before = left(root.path(), &BTreeSet::new()).await;
            let report = confirm(root.path()).await;
            settled(&report, Decision::RollBack);
            assert_eq!(kinds(root.path()).await, ["RolledBack"], "{name}");
            let after = left(root.path(), &BTreeSet::new()).await;
            assert_eq!(
                after.rows, before.rows,
                "{name}: the rows are those of the old pins"
            );
            for table in &report.sidecars[0].tables {
                let pin = &after.pins[MAIN][&table.table_key];
                assert_eq!(
                    pin.0,
                    table.head_version + 1,
                    "{name}: pin = HEAD = old HEAD + 1"
                );
            }
            assert!(!after.schema.keys().any(|k| k.ends_with(".staging")));
            assert_eq!(confirm(root.path()).await.outcome, Outcome::Clean);
        }
    });
}

#[test]
fn a_visible_commit_settles_an_armed_sidecar() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in [
            "sc-load-confirmed",
            "sc-merge-confirmed",
            "sc-schema-staged",
        ] {
            let root = stopped(&archives, name);
            let file = only_sidecar(root.path());
            let stored = std::fs::read(&file).unwrap();
            confirm(root.path()).await;
            let done = left(root.path(), &BTreeSet::new()).await;
            // The confirming rewrite and the final delete were lost.
            std::fs::write(&file, &stored).unwrap();
            edit(&file, disarm);
            let report = confirm(root.path()).await;
            settled(&report, Decision::AlreadyVisible);
            assert_eq!(left(root.path(), &BTreeSet::new()).await, done, "{name}");

            // Another transaction than the planned one contradicts.
            std::fs::write(&file, &stored).unwrap();
            edit(&file, |v| {
                disarm(v);
                let effect = &mut payload(v)["effects"][0];
                let kind = effect["kind"].clone();
                let planned = match (kind.is_null(), kind["planned_transactions"].is_array()) {
                    (true, _) => &mut effect["planned_transaction"],
                    (false, true) => &mut effect["kind"]["planned_transactions"][0],
                    (false, false) => &mut effect["kind"]["planned_transaction"],
                };
                planned["uuid"] = "another".into();
            });
            let before = tree_digest(root.path()).unwrap();
            let report = confirm(root.path()).await;
            assert_eq!(report.outcome, Outcome::Refused, "{name}: {report:#?}");
            let after = tree_digest(root.path()).unwrap();
            assert_eq!(tree_changes(&before, &after), [""; 0]);
        }
    });
}

#[test]
fn a_visible_commit_may_have_changed_nothing_in_a_table() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-confirmed");
        let file = only_sidecar(root.path());
        let stored = std::fs::read(&file).unwrap();
        // Publish Observed alone: the write changed nothing in Target.
        let target = location(&file, "node:Target");
        edit(&file, |v| {
            for place in [
                "/tables",
                "/protocol_v3/effects",
                "/protocol_v3/intended_delta/table_updates",
            ] {
                let list = v.pointer_mut(place).unwrap().as_array_mut().unwrap();
                list.retain(|t| t["table_key"] == "edge:Observed");
            }
        });
        settled(&confirm(root.path()).await, Decision::RollForward);
        std::fs::write(&file, &stored).unwrap();
        edit(&file, disarm);
        // Target's planned transaction did land: that contradicts.
        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Refused, "{report:#?}");
        assert!(
            report.sidecars[0].reason.contains("node:Target"),
            "{report:#?}"
        );
        // And when it never did, the write is settled.
        unwrite(root.path(), &target);
        let report = confirm(root.path()).await;
        settled(&report, Decision::AlreadyVisible);
        assert_eq!(kinds(root.path()).await, ["RolledForward"]);
    });
}

#[test]
fn a_published_write_whose_file_stayed_is_recorded_once() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in [
            "sc-load-confirmed",
            "sc-schema-staged",
            "sc-load-armed-partial",
        ] {
            let root = stopped(&archives, name);
            let file = only_sidecar(root.path());
            let stored = std::fs::read(&file).unwrap();
            confirm(root.path()).await;
            let done = left(root.path(), &BTreeSet::new()).await;
            let audit = root.path().join(audit::AUDIT_DIR);
            std::fs::write(&file, &stored).unwrap();
            if name == "sc-load-armed-partial" {
                // Its rollback is visible, and only the recorded plan says what was restored.
                let report = confirm(root.path()).await;
                assert_eq!(report.outcome, Outcome::Refused, "{report:#?}");
                edit(&file, |v| {
                    payload(v)["rollback_audit_outcomes"] = serde_json::json!([
                        {"table_key": "node:Target", "from_version": 3, "to_version": 2}
                    ]);
                });
            }
            std::fs::remove_dir_all(&audit).unwrap();
            settled(&confirm(root.path()).await, Decision::AlreadyVisible);
            assert_eq!(left(root.path(), &BTreeSet::new()).await, done, "{name}");
        }
    });
}

#[test]
fn a_half_promoted_schema_is_completed() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-schema-staged");
        let file = only_sidecar(root.path());
        let stored = std::fs::read(&file).unwrap();
        let staged = |name: &str| root.path().join(format!("{name}.staging"));
        let kept: Vec<_> = ["_schema.ir.json", "__schema_state.json"]
            .map(|n| {
                (
                    n,
                    std::fs::read(root.path().join(n)).unwrap(),
                    std::fs::read(staged(n)).unwrap(),
                )
            })
            .to_vec();
        confirm(root.path()).await;
        let done = left(root.path(), &BTreeSet::new()).await;
        std::fs::write(&file, &stored).unwrap();
        for (name, live, new) in kept {
            std::fs::write(root.path().join(name), live).unwrap();
            std::fs::write(staged(name), new).unwrap();
        }
        settled(&confirm(root.path()).await, Decision::AlreadyVisible);
        assert_eq!(left(root.path(), &BTreeSet::new()).await, done);
    });
}

#[test]
fn a_disjoint_commit_on_the_branch_forces_the_rollback() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in [
            "sc-load-confirmed",
            "sc-merge-confirmed",
            "sc-schema-staged",
        ] {
            let root = stopped(&archives, name);
            let lineage = Lineage {
                id: "01M8PZZZZZZZZZZZZZZZZZZZZZ".into(),
                actor: Some("eve".into()),
                merged_parent: None,
                created_at: 1,
            };
            publish(&open(root.path()).await, None, None, &[], &lineage)
                .await
                .unwrap();
            settled(&confirm(root.path()).await, Decision::RollBack);
            let catalog = BranchCatalog::read(&open(root.path()).await, None)
                .await
                .unwrap();
            assert!(
                catalog.rows.commit(&lineage.id).is_some(),
                "{name}: the winner survives"
            );
            assert_eq!(kinds(root.path()).await, ["RolledBack"], "{name}");
        }
    });
}

#[test]
fn a_deleted_branch_leaves_one_commit_on_main() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-touch-fork");
        let file = only_sidecar(root.path());
        let stored = std::fs::read(&file).unwrap();
        std::fs::remove_file(root.path().join("__manifest/_refs/branches/touch.json")).unwrap();
        let commits = main_commits(root.path()).await;
        settled(&confirm(root.path()).await, Decision::Orphan);
        assert_eq!(main_commits(root.path()).await, commits + 1);
        let rows = audit::rows(&open(root.path()).await).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].recovery_kind, "OrphanedBranchDiscarded");
        assert_eq!(rows[0].per_table_outcomes_json, "[]");
        assert_eq!(
            rows[0].graph_commit_id,
            minted(&rows[0].operation_id, Purpose::Orphan)
        );
        // The delete was lost: nothing is added.
        std::fs::write(&file, &stored).unwrap();
        settled(&confirm(root.path()).await, Decision::Orphan);
        assert_eq!(main_commits(root.path()).await, commits + 1);
        assert_eq!(kinds(root.path()).await.len(), 1);
    });
}

#[test]
fn an_optimize_with_a_still_table_restores_the_others() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-optimize");
        let file = only_sidecar(root.path());
        unwrite(root.path(), &location(&file, "node:Night"));
        settled(&confirm(root.path()).await, Decision::RollBack);
        let rows = audit::rows(&open(root.path()).await).await.unwrap();
        assert_eq!(rows[0].recovery_kind, "RolledBack");
        assert_eq!(
            rows[0]
                .per_table_outcomes_json
                .matches("\"from_version\":3,\"to_version\":2")
                .count(),
            6
        );
        let after = left(root.path(), &BTreeSet::new()).await;
        assert_eq!(
            (
                after.pins[MAIN]["node:Night"].0,
                after.pins[MAIN]["node:Target"].0
            ),
            (2, 4)
        );
    });
}

#[test]
fn an_optimize_that_others_published_is_recorded_with_one_commit() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = twin(&archives, "sc-optimize");
        let stopped = stopped(&archives, "sc-optimize");
        let file = only_sidecar(stopped.path());
        let text = std::fs::read_to_string(&file).unwrap();
        let place = |p: &Path| p.to_str().unwrap().to_string();
        let text = text.replace(&place(stopped.path()), &place(root.path()));
        let kept = root
            .path()
            .join("__recovery")
            .join(file.file_name().unwrap());
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::write(&kept, text).unwrap();
        std::fs::remove_dir_all(root.path().join(audit::AUDIT_DIR)).unwrap();
        let commits = main_commits(root.path()).await;
        settled(&confirm(root.path()).await, Decision::Stale);
        assert_eq!(main_commits(root.path()).await, commits + 1);
        assert_eq!(kinds(root.path()).await, ["RolledForward"]);
    });
}

#[test]
fn effect_free_sidecars() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (name, keys, decision, audited) in [
            (
                "sc-load-confirmed",
                &["edge:Observed", "node:Target"][..],
                Decision::Discard,
                0,
            ),
            (
                "sc-merge-confirmed",
                &["edge:Observed", "node:Target"],
                Decision::Discard,
                0,
            ),
            ("sc-schema-staged", &["node:Night"], Decision::RollBack, 1),
        ] {
            let root = stopped(&archives, name);
            let file = only_sidecar(root.path());
            edit(&file, disarm);
            for key in keys {
                unwrite(root.path(), &location(&file, key));
            }
            let commits = main_commits(root.path()).await;
            settled(&confirm(root.path()).await, decision);
            assert_eq!(main_commits(root.path()).await, commits + audited, "{name}");
            let rows = audit::rows(&open(root.path()).await).await.unwrap();
            assert_eq!(rows.len(), audited, "{name}");
            assert!(
                rows.iter().all(|r| r.per_table_outcomes_json == "[]"),
                "{name}"
            );
        }
    });
}

#[test]
fn a_historical_mutation_runs_under_strict() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-confirmed");
        let file = only_sidecar(root.path());
        edit(&file, |v| {
            disarm(v);
            v["schema_version"] = 1.into();
            v.as_object_mut().unwrap().remove("protocol_v3");
        });
        settled(&confirm(root.path()).await, Decision::RollForward);
        assert_eq!(kinds(root.path()).await, ["RolledForward"]);

        let root = stopped(&archives, "sc-load-confirmed");
        edit(&only_sidecar(root.path()), |v| {
            v["schema_version"] = 1.into();
            v.as_object_mut().unwrap().remove("protocol_v3");
            for pin in v["tables"].as_array_mut().unwrap() {
                pin.as_object_mut().unwrap().remove("identity");
            }
        });
        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Refused);
        assert!(
            report.sidecars[0].reason.contains("identity"),
            "{report:#?}"
        );
    });
}
