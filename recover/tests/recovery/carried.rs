//! The stopped samples carried to stamps 8 and 9 by the released routes: recovered there, upgraded, verified.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::contract::Vintage;
use fixtures::fixture_s::contract_s;
use fixtures::legacy_writer::{LegacyRoot, Route};
use legacy::publish::{BranchCatalog, live_branches};
use recover::report::Outcome;
use upgrade::UpgradeOptions;
use verify::VerifyOptions;

use crate::support::*;

/// Carry a stamp-6 root to `stamp`, sidecar and all.
pub async fn carry(path: &Path, stamp: u32) {
    let branches = live_branches(&open(path).await).await.unwrap();
    let natives: Vec<&str> = branches.iter().map(String::as_str).collect();
    let (contract, _) = contract_s(Vintage::Bare).unwrap();
    let mut root = LegacyRoot::open(path, contract, 7, &natives).await.unwrap();
    root.run_route(Route::TO_7, &natives).await.unwrap();
    root.run_route(Route::TO_8, &natives).await.unwrap();
    if stamp == 9 {
        for native in natives.into_iter().map(Some).chain([None]) {
            root.stamp_in_place(native, 9).await.unwrap();
        }
    }
}

async fn upgraded_and_verified(path: &Path, what: &str) {
    let root = open(path).await;
    let report = upgrade::upgrade(&root, &UpgradeOptions::default()).await;
    assert_eq!(
        report.outcome,
        upgrade::Outcome::Completed,
        "{what}: {report:#?}"
    );
    let options = VerifyOptions {
        deep: true,
        ..VerifyOptions::default()
    };
    let verified = verify::verify(&open(path).await, &options).await.unwrap();
    assert_eq!(
        verified.outcome,
        verify::Outcome::Ok,
        "{what}: {verified:#?}"
    );
}

async fn carried(stamp: u32) {
    let Some(archives) = archives() else { return };
    for name in STOPPED {
        let what = format!("{name} at {stamp}");
        let root = stopped(&archives, name);
        carry(root.path(), stamp).await;
        let before = upgrade::upgrade(&open(root.path()).await, &UpgradeOptions::default()).await;
        assert_eq!(before.outcome, upgrade::Outcome::RecoveryRequired, "{what}");
        let action = &before.recovery.as_ref().unwrap().action;
        assert!(action.contains("omnigraph recover"), "{action}");

        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Recovered, "{what}: {report:#?}");
        let mine = left(root.path(), &BTreeSet::new()).await;
        let twin = twin(&archives, name);
        let theirs = left(twin.path(), &BTreeSet::new()).await;
        // The conversions of the routes made versions of their own; tables, rows and records are the same.
        assert_eq!(mine.pins, theirs.pins, "{what}");
        assert_eq!(mine.rows, theirs.rows, "{what}");
        assert_eq!(mine.schema, theirs.schema, "{what}");
        assert_eq!(mine.sidecars, [""; 0], "{what}");
        assert_eq!(mine.audit.len(), theirs.audit.len(), "{what}");
        let main = BranchCatalog::read(&open(root.path()).await, None)
            .await
            .unwrap();
        assert_eq!(main.stamp.get(), stamp);
        // Releases of these stamps leave untouched refs for their cleanup.
        let keeps = name == "sc-touch-fork";
        let touched = mine.refs.values().flatten().any(|r| r == "touch.json");
        assert_eq!(touched, keeps, "{what}");
        upgraded_and_verified(root.path(), &what).await;
    }
}

#[test]
fn at_stamp_8() {
    run(|| carried(8));
}

#[test]
fn at_stamp_9() {
    run(|| carried(9));
}
