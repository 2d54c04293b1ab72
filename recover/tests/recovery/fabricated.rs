//! Kinds and effects that no sample holds, written into the sidecar of one that fits.

use std::collections::BTreeSet;
use std::path::Path;

use graph::model::names::MAIN;
use graph::store::Root;
use recover::Report;
use recover::audit;
use recover::plan::Decision;
use recover::report::Outcome;
use serde_json::{Value, json};

use crate::support::edit::*;
use crate::support::*;

fn settled(report: &Report, decision: Decision) {
    assert_eq!(report.outcome, Outcome::Recovered, "{report:#?}");
    assert_eq!(report.sidecars[0].decision, decision, "{report:#?}");
}

async fn recorded(path: &Path) -> Vec<(String, String)> {
    let rows = audit::rows(&open(path).await).await.unwrap();
    let of = |r: audit::AuditRow| (r.recovery_kind, r.per_table_outcomes_json);
    rows.into_iter().map(of).collect()
}

/// Turn the sidecar of a schema apply into one that also adds `node:Tag`, written under `uuid`.
fn add_tag(file: &Path, uuid: &str) -> String {
    let identity = json!({"stable_table_id": 80, "table_incarnation_id": 90});
    let relative = format!("nodes/{:016x}-{:016x}", 80, 90);
    let location = relative.clone();
    edit(file, |v| {
        disarm(v);
        let night = v["tables"][0]["table_path"].as_str().unwrap().to_string();
        let root = night.split("/nodes/").next().unwrap();
        let pin = json!({"identity": identity, "table_key": "node:Tag",
            "table_path": format!("{root}/{relative}"), "expected_version": 0, "post_commit_pin": 1});
        v["tables"].as_array_mut().unwrap().insert(0, pin);
        let p = payload(v);
        let effect = json!({"identity": identity, "table_key": "node:Tag", "kind": {
            "kind": "FirstTouchDataset", "planned_transaction": {"read_version": 0, "uuid": uuid}}});
        p["effects"].as_array_mut().unwrap().insert(0, effect);
        let slot = json!({"identity": identity, "table_key": "node:Tag", "expected_version": 0,
            "table_branch": null});
        let delta = &mut p["intended_delta"];
        delta["table_updates"]
            .as_array_mut()
            .unwrap()
            .insert(0, slot);
        delta["registrations"] =
            json!([{"identity": identity, "table_key": "node:Tag", "table_path": relative}]);
    });
    location
}

#[test]
fn the_dataset_of_an_added_type_goes_only_when_it_is_the_writes_own() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (made, stays) in [(Some("own"), false), (Some("foreign"), true), (None, false)] {
            let root = stopped(&archives, "sc-schema-staged");
            let location = add_tag(&only_sidecar(root.path()), "own");
            match made {
                Some(uuid) => create_as(&open(root.path()).await, &location, uuid).await,
                None => {
                    // Files staged, nothing committed.
                    let data = root.path().join(&location).join("data");
                    std::fs::create_dir_all(&data).unwrap();
                    std::fs::write(data.join("x.lance"), "x").unwrap();
                }
            }
            settled(&confirm(root.path()).await, Decision::RollBack);
            let left = open(root.path())
                .await
                .list_sorted(&location)
                .await
                .unwrap();
            assert_eq!(!left.is_empty(), stays, "{made:?}: {left:?}");
            let outcomes = &recorded(root.path()).await[0].1;
            assert_eq!(
                outcomes.contains("node:Tag"),
                made == Some("own"),
                "{outcomes}"
            );
            assert!(outcomes.contains("node:Night"), "{outcomes}");
        }
    });
}

/// Turn the sidecar of a load on main into an index build of `edge:OnDuty`.
async fn index_build(root: &Root, file: &Path, confirmed: bool) {
    let location = format!("edges/{:016x}-{:016x}", 7, 40);
    let (read_version, uuid) = raw_index(root, &location, None).await;
    let identity = json!({"stable_table_id": 7, "table_incarnation_id": 40});
    let transaction = json!({"read_version": read_version, "uuid": uuid});
    let dataset = newest(root, &location, None).await;
    let pin = recover::observe::pin_of(root, dataset, None).await.unwrap();
    edit(file, |v| {
        let path = v["tables"][0]["table_path"].as_str().unwrap().to_string();
        let base = path.split("/nodes/").next().unwrap();
        let mut table = json!({"identity": identity, "table_key": "edge:OnDuty",
            "table_path": format!("{base}/{location}"), "expected_version": 2, "post_commit_pin": 3});
        let mut effect = json!({"identity": identity, "table_key": "edge:OnDuty",
            "planned_transaction": transaction});
        let mut slot = json!({"identity": identity, "table_key": "edge:OnDuty", "expected_version": 2,
            "table_branch": null});
        let mut p = v.as_object_mut().unwrap().remove("protocol_v3").unwrap();
        if confirmed {
            table["confirmed_version"] = 3.into();
            effect["confirmed_transaction"] = transaction.clone();
            slot["confirmed"] = json!({"table_version": 3, "table_branch": null,
                "row_count": pin.row_count, "version_metadata": pin.metadata});
            p["effect_phase"] = "EffectsConfirmed".into();
        }
        v["tables"] = json!([table]);
        p["effects"] = json!([effect]);
        p["intended_delta"] = json!({"table_updates": [slot]});
        v["writer_kind"] = "EnsureIndices".into();
        v["protocol_v8"] = p;
    });
}

#[test]
fn index_builds() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (confirmed, decision, version) in [
            (true, Decision::RollForward, 3),
            (false, Decision::RollBack, 4),
        ] {
            let root = stopped(&archives, "sc-load-armed-partial");
            index_build(
                &open(root.path()).await,
                &only_sidecar(root.path()),
                confirmed,
            )
            .await;
            settled(&confirm(root.path()).await, decision);
            let after = left(root.path(), &BTreeSet::new()).await;
            assert_eq!(after.pins[MAIN]["edge:OnDuty"].0, version);
            let to = if confirmed { 3 } else { 2 };
            let outcome = json!([{"table_key": "edge:OnDuty",
                "from_version": if confirmed { 2 } else { 3 }, "to_version": to}]);
            let row: Value = serde_json::from_str(&recorded(root.path()).await[0].1).unwrap();
            assert_eq!(row, outcome);
        }
        // Without an effect it still leaves one rollback.
        let root = stopped(&archives, "sc-load-armed-partial");
        let file = only_sidecar(root.path());
        index_build(&open(root.path()).await, &file, false).await;
        edit(&file, |v| {
            payload(v)["effects"][0]["planned_transaction"]["uuid"] = "other".into()
        });
        // Somebody else's index on the same table is drift that is not the write's.
        assert_eq!(confirm(root.path()).await.outcome, Outcome::Refused);
        unwrite(root.path(), &location(&file, "edge:OnDuty"));
        settled(&confirm(root.path()).await, Decision::RollBack);
        assert_eq!(
            recorded(root.path()).await,
            [("RolledBack".to_string(), "[]".to_string())]
        );
    });
}

/// Turn the sidecar of the load that forked two tables into an index build of `edge:Observed` on its ref.
pub async fn forked_index_build(path: &Path) {
    let file = only_sidecar(path);
    let observed = location(&file, "edge:Observed");
    let root = open(path).await;
    let (read_version, uuid) = raw_index(&root, &observed, Some("touch")).await;
    edit(&file, |v| {
        v["writer_kind"] = "EnsureIndices".into();
        let mut p = v.as_object_mut().unwrap().remove("protocol_v3").unwrap();
        v["tables"].as_array_mut().unwrap().remove(0);
        p["effects"].as_array_mut().unwrap().remove(0);
        p["intended_delta"]["table_updates"]
            .as_array_mut()
            .unwrap()
            .remove(0);
        p["effects"][0]["source_fork_version"] = 2.into();
        p["effects"][0]["planned_transaction"] =
            json!({"read_version": read_version, "uuid": uuid});
        v["protocol_v8"] = p;
    });
}

#[test]
fn an_index_build_on_a_ref_of_its_own_making() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-touch-fork");
        let observed = location(&only_sidecar(root.path()), "edge:Observed");
        forked_index_build(root.path()).await;
        settled(&confirm(root.path()).await, Decision::RollBack);
        let rows = recorded(root.path()).await;
        let outcome = r#"[{"table_key":"edge:Observed","from_version":3,"to_version":2}]"#;
        assert_eq!(rows, [("RolledBack".to_string(), outcome.to_string())]);
        let after = left(root.path(), &BTreeSet::new()).await;
        assert_eq!(
            after.pins["touch"]["edge:Observed"].1, None,
            "the branch still inherits the table"
        );
        let tree = format!("{observed}/tree/touch");
        assert_eq!(
            open(root.path()).await.list_sorted(&tree).await.unwrap(),
            []
        );
    });
}

/// Turn the sidecar of the load that forked two tables into a merge that only forks the first.
fn fork_only(root: &Path, confirmed: bool) {
    let file = only_sidecar(root);
    let target = location(&file, "node:Target");
    let fork: Value = serde_json::from_slice(
        &std::fs::read(root.join(&target).join("_refs/branches/touch.json")).unwrap(),
    )
    .unwrap();
    edit(&file, |v| {
        v["writer_kind"] = "BranchMerge".into();
        let mut p = v.as_object_mut().unwrap().remove("protocol_v3").unwrap();
        v["tables"].as_array_mut().unwrap().truncate(1);
        v["tables"][0]["post_commit_pin"] = 2.into();
        let identity = v["tables"][0]["identity"].clone();
        let mut kind = json!({"kind": "RefOnlyFork", "source_version": 2});
        let mut slot = p["intended_delta"]["table_updates"][0].clone();
        // A pointer of another table rides along.
        let mut pointer = p["intended_delta"]["table_updates"][1].clone();
        pointer["table_branch"] = "survey".into();
        p["lineage"]["merged_parent_commit_id"] = "01M8PHX5KXMQ5SGW68PDWE9QGR".into();
        if confirmed {
            v["tables"][0]["confirmed_version"] = 2.into();
            kind["confirmed_branch_identifier"] = fork["identifier"].clone();
            let metadata = json!({"manifest_path": "/x", "manifest_size": 1, "e_tag": null,
                "naming_scheme": "V2"});
            slot["confirmed"] = json!({"table_version": 2, "table_branch": "touch", "row_count": 40,
                "version_metadata": metadata});
            pointer["confirmed"] = json!({"table_version": 3, "table_branch": "survey",
                "row_count": 41, "version_metadata": metadata});
            p["effect_phase"] = "EffectsConfirmed".into();
        }
        p["effects"] = json!([{"identity": identity, "table_key": "node:Target", "kind": kind}]);
        p["intended_delta"]["table_updates"] = json!([slot, pointer]);
        v["protocol_v4"] = p;
    });
}

#[test]
fn a_fork_without_a_commit() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-touch-fork");
        fork_only(root.path(), true);
        settled(&confirm(root.path()).await, Decision::RollForward);
        let after = left(root.path(), &BTreeSet::new()).await;
        let pins = &after.pins["touch"];
        assert_eq!(
            (pins["node:Target"].0, pins["node:Target"].1.as_deref()),
            (2, Some("touch"))
        );
        assert_eq!(
            (pins["edge:Observed"].0, pins["edge:Observed"].1.as_deref()),
            (3, Some("survey")),
            "pointers are published too"
        );
        let rows = recorded(root.path()).await;
        assert_eq!(rows[0].0, "RolledForward");

        let root = stopped(&archives, "sc-touch-fork");
        let file = only_sidecar(root.path());
        let target = location(&file, "node:Target");
        fork_only(root.path(), false);
        settled(&confirm(root.path()).await, Decision::Discard);
        assert_eq!(recorded(root.path()).await, []);
        assert!(
            !root
                .path()
                .join(&target)
                .join("_refs/branches/touch.json")
                .exists()
        );

        // Confirmed, but the ref is another incarnation.
        let root = stopped(&archives, "sc-touch-fork");
        fork_only(root.path(), true);
        edit(&only_sidecar(root.path()), |v| {
            payload(v)["effects"][0]["kind"]["confirmed_branch_identifier"] =
                json!({"version_mapping": [[2, "0".repeat(32)]]});
        });
        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Refused);
        assert!(
            report.sidecars[0].reason.contains("incarnation"),
            "{report:#?}"
        );
    });
}

#[test]
fn a_first_touch_that_was_written() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        // One table of the branch got its commit, the other's ref was never made.
        let root = stopped(&archives, "sc-touch-fork");
        let file = only_sidecar(root.path());
        let opened = open(root.path()).await;
        let observed = location(&file, "edge:Observed");
        let target = location(&file, "node:Target");
        raw_append(&opened, &observed, Some("touch")).await;
        let dataset = newest(&opened, &observed, Some("touch")).await;
        let uuid = dataset.read_transaction().await.unwrap().unwrap().uuid;
        edit(&file, |v| {
            payload(v)["effects"][1]["planned_transaction"]["uuid"] = uuid.into()
        });
        std::fs::remove_file(root.path().join(&target).join("_refs/branches/touch.json")).unwrap();
        settled(&confirm(root.path()).await, Decision::RollBack);
        let after = left(root.path(), &BTreeSet::new()).await;
        let pin = &after.pins["touch"]["edge:Observed"];
        // It stays on its new ref, at the restored version.
        assert_eq!((pin.0, pin.1.as_deref(), pin.2), (4, Some("touch"), 36));
        let rows = |branch: &str| after.rows[&format!("{branch} edge:Observed")].clone();
        assert_eq!(rows("touch"), rows(MAIN));
        let tree = opened
            .list_sorted(&format!("{target}/tree/touch"))
            .await
            .unwrap();
        assert_eq!(tree, [], "the tree of the ref that was never made is gone");
    });
}

#[test]
fn two_sidecars_oldest_first() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-touch-fork");
        let file = only_sidecar(root.path());
        let target = location(&file, "node:Target");
        let later = file.with_file_name("01ZZZZZZZZZZZZZZZZZZZZZZZZ.json");
        std::fs::copy(&file, &later).unwrap();
        edit(&later, |v| {
            v["operation_id"] = "01ZZZZZZZZZZZZZZZZZZZZZZZZ".into()
        });
        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Recovered, "{report:#?}");
        // The first leaves the refs that the second claims; the second cleans up.
        let removes = |n: usize| {
            let actions = &report.sidecars[n].actions;
            actions
                .iter()
                .filter(|a| a.contains("delete the ref"))
                .count()
        };
        assert_eq!((removes(0), removes(1)), (0, 2));
        assert!(
            !root
                .path()
                .join(&target)
                .join("_refs/branches/touch.json")
                .exists()
        );
    });
}
