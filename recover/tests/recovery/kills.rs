//! A run that stops before and after every effect, and the run that finishes it.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::fault_store::{Effect, Fault, FaultStore};
use fixtures::sample::UnpackedRoot;
use recover::recover;
use recover::report::Outcome;

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

async fn matrix(archives: &Path, name: &str) {
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
    ($($test:ident = $name:literal),*) => {$(
        #[test]
        fn $test() {
            let Some(archives) = archives() else { return };
            run(|| async move { matrix(&archives, $name).await });
        }
    )*};
}

killed!(
    a_partial_load = "sc-load-armed-partial",
    a_confirmed_load = "sc-load-confirmed",
    a_merge = "sc-merge-confirmed",
    an_optimize = "sc-optimize",
    a_schema_apply = "sc-schema-staged",
    an_untouched_fork = "sc-touch-fork"
);
