//! A run that stops before and after every effect, and the run that finishes it.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::fault_store::{Effect, Fault, FaultStore};
use fixtures::sample::UnpackedRoot;
use recover::recover;
use recover::report::Outcome;

use crate::support::edit::*;
use crate::support::*;

/// One run with a fault, one without; what is left equals `whole`.
async fn survives(root: &UnpackedRoot, fault: Fault, whole: &Left) {
    let faults = FaultStore::new();
    let seen = open_seen(root.path(), &faults).await;
    faults.reset();
    faults.arm(fault.clone());
    let first = recover(&seen, &options(true)).await;
    assert_eq!(faults.injected(), 1, "{fault:?} hit nothing: {first:#?}");
    let check = check(root.path()).await;
    assert_ne!(check.outcome, Outcome::Refused, "{fault:?}: {check:#?}");
    let again = confirm(root.path()).await;
    let done = matches!(again.outcome, Outcome::Recovered | Outcome::Clean);
    assert!(done, "{fault:?}: {first:#?} then {again:#?}");
    assert_eq!(
        &left(root.path(), &BTreeSet::new()).await,
        whole,
        "{fault:?}"
    );
}

/// What is done to a stopped root before the run.
type Prepare = fn(&Path);

async fn matrix(archives: &Path, name: &str, prepare: Prepare) {
    let stopped = |archives: &Path, name: &str| {
        let root = stopped(archives, name);
        prepare(root.path());
        root
    };
    let root = stopped(archives, name);
    let faults = FaultStore::new();
    let seen = open_seen(root.path(), &faults).await;
    faults.reset();
    let report = recover(&seen, &options(true)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Recovered, "{name}: {report:#?}");
    let count = faults.counts().mutations();
    assert!(count >= 3, "{name}: {count}");
    let whole = left(root.path(), &BTreeSet::new()).await;
    for n in 1..=count {
        for effect in [Effect::StopBefore, Effect::StopAfter, Effect::LoseAnswer] {
            let root = stopped(archives, name);
            survives(&root, Fault::mutation(n, effect), &whole).await;
        }
    }
}

macro_rules! killed {
    ($($test:ident = $name:literal $prepare:expr),*) => {$(
        #[test]
        fn $test() {
            let Some(archives) = archives() else { return };
            run(|| async move { matrix(&archives, $name, $prepare).await });
        }
    )*};
}

fn armed(root: &Path) {
    edit(&only_sidecar(root), disarm);
}

fn orphaned(root: &Path) {
    std::fs::remove_file(root.join("__manifest/_refs/branches/touch.json")).unwrap();
}

/// An optimize that left one table alone.
fn with_a_still_table(root: &Path) {
    let file = only_sidecar(root);
    unwrite(root, &location(&file, "node:Night"));
}

killed!(
    a_partial_load = "sc-load-armed-partial" |_| {},
    a_confirmed_load = "sc-load-confirmed" |_| {},
    a_merge = "sc-merge-confirmed" |_| {},
    a_merge_taken_back = "sc-merge-confirmed" armed,
    an_optimize = "sc-optimize" |_| {},
    an_optimize_taken_back = "sc-optimize" with_a_still_table,
    a_schema_apply = "sc-schema-staged" |_| {},
    a_schema_apply_taken_back = "sc-schema-staged" armed,
    an_untouched_fork = "sc-touch-fork" |_| {},
    a_deleted_branch = "sc-touch-fork" orphaned
);
