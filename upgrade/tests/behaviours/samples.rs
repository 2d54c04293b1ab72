//! Behaviours 53 and 54 as far as the sample roots go: roots of stamps 8, 9 and 13 carried there from data that a
//! release wrote. Skipped when no samples are at hand.

use std::path::Path;

use fixtures::sample::{expected, samples_folder, unpack};
use fixtures::tree::{tree_changes, tree_digest};
use graph::store::{Root, RootOptions};
use serde_json::{Value, json};
use upgrade::{Outcome, UpgradeOptions, upgrade};

use crate::support::*;

async fn converts(name: &'static str) {
    let Some(samples) = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR"))) else {
        return;
    };
    let expected = &expected(&samples).unwrap()[name];
    let unpacked = unpack(&samples, name).unwrap();
    let uri = unpacked.path().to_str().unwrap();
    let root = Root::open(uri, RootOptions::default()).await.unwrap();
    let before = tree_digest(unpacked.path()).unwrap();
    let check = upgrade(
        &root,
        &UpgradeOptions {
            check: true,
            ..UpgradeOptions::default()
        },
    )
    .await;
    assert_eq!(
        tree_changes(&before, &tree_digest(unpacked.path()).unwrap()),
        [""; 0]
    );
    assert_eq!(
        json!(check.outcome.as_str()),
        expected["check"],
        "{check:#?}"
    );
    assert_eq!(json!(codes(&check)), expected["findings"]);
    let done = upgrade(&root, &UpgradeOptions::default()).await;
    assert_eq!(
        json!(done.outcome.as_str()),
        expected["execute"],
        "{done:#?}"
    );
    assert_eq!((&done.work, &done.findings), (&check.work, &check.findings));
    let work = serde_json::to_value(done.work).unwrap();
    for (field, value) in expected["work"].as_object().unwrap() {
        assert_eq!(&work[field], value, "{field}");
    }
    for (name, head) in expected["heads"].as_object().unwrap() {
        let native = (name != "main").then_some(name.as_str());
        let opened = root.open_manifest(native, None).await.unwrap();
        assert_eq!(json!(opened.version), head["converted_version"], "{name}");
        let mode = graph::manifest::scan::ReadMode::State;
        let state = graph::manifest::scan::read_state(&opened, mode)
            .await
            .unwrap();
        assert_eq!(
            Value::from(state.head.graph_commit_id),
            head["head_commit"],
            "{name}"
        );
    }
    let after = tree_digest(unpacked.path()).unwrap();
    let lost: Vec<String> = tree_changes(&before, &after)
        .into_iter()
        .filter(|c| !c.starts_with('+') && !c.ends_with("latest_version_hint.json"))
        .filter(|c| !c.contains("__schema_apply_lock__"))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    let again = upgrade(&root, &UpgradeOptions::default()).await;
    assert_eq!(again.outcome, Outcome::AlreadyCurrent);
    assert_eq!(after, tree_digest(unpacked.path()).unwrap());
}

#[test]
fn b53_observatory_at_stamp_8() {
    run(|| converts("s8-observa1"));
}

#[test]
fn b53_observatory_with_a_live_lock() {
    run(|| converts("s8-lock-ab1"));
}

#[test]
fn b53_evolution_at_stamp_9() {
    run(|| converts("s9-evolution"));
}

#[test]
fn b54_after_the_releases_own_cleanup() {
    run(|| converts("s9-cleaned"));
}

#[test]
fn b54_with_foreign_table_versions() {
    run(|| converts("s9-foreign"));
}

#[test]
fn b53_observatory_at_stamp_13() {
    run(|| converts("s13-observa"));
}

#[test]
fn b53_evolution_at_stamp_13() {
    run(|| converts("s13-evolution"));
}
