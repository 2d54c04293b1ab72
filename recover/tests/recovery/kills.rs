//! A run that stops before and after every effect, and the run that finishes it.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::fault_store::{Effect, Fault, FaultStore};
use fixtures::sample::UnpackedRoot;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use recover::recover;
use recover::report::Outcome;

use crate::fabricated::forked_index_build;
use crate::staged::stage_alone;
use crate::support::edit::*;
use crate::support::*;

/// Set to walk every fault of every matrix.
const EVERY_FAULT: &str = "OMNIGRAPH_EVERY_FAULT";

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
type Prepare = for<'a> fn(&'a Path) -> BoxFuture<'a, ()>;

async fn prepared(archives: &Path, name: &str, prepare: Prepare) -> UnpackedRoot {
    let root = stopped(archives, name);
    prepare(root.path()).await;
    root
}

async fn matrix(archives: &Path, name: &str, prepare: Prepare) {
    let root = prepared(archives, name, prepare).await;
    let faults = FaultStore::new();
    let seen = open_seen(root.path(), &faults).await;
    faults.reset();
    let report = recover(&seen, &options(true)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Recovered, "{name}: {report:#?}");
    let count = faults.counts().mutations();
    assert!(count >= 3, "{name}: {count}");
    let whole = left(root.path(), &BTreeSet::new()).await;
    // Stopped before an effect is stopped after the one before it: the other faults walk a part, all of it on request.
    let every = std::env::var_os(EVERY_FAULT).is_some();
    for n in 1..=count {
        for (effect, part) in [
            (Effect::StopBefore, true),
            (Effect::StopAfter, n % 3 == 0 || n == count),
            (Effect::LoseAnswer, n % 4 == 0),
        ] {
            if part || every {
                let root = prepared(archives, name, prepare).await;
                survives(&root, Fault::mutation(n, effect), &whole).await;
            }
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

fn as_it_is(_: &Path) -> BoxFuture<'_, ()> {
    async {}.boxed()
}

fn armed(root: &Path) -> BoxFuture<'_, ()> {
    edit(&only_sidecar(root), disarm);
    async {}.boxed()
}

fn orphaned(root: &Path) -> BoxFuture<'_, ()> {
    std::fs::remove_file(root.join("__manifest/_refs/branches/touch.json")).unwrap();
    async {}.boxed()
}

/// An index build on a ref of its own making, armed.
fn indexed_fork(root: &Path) -> BoxFuture<'_, ()> {
    forked_index_build(root).boxed()
}

/// A staged schema whose sidecar is gone, and whose types the catalog does not show.
fn staged_alone(root: &Path) -> BoxFuture<'_, ()> {
    stage_alone(root);
    async {}.boxed()
}

/// An optimize that left one table alone.
fn with_a_still_table(root: &Path) -> BoxFuture<'_, ()> {
    let file = only_sidecar(root);
    unwrite(root, &location(&file, "node:Night"));
    async {}.boxed()
}

killed!(
    a_partial_load = "sc-load-armed-partial" as_it_is,
    a_confirmed_load = "sc-load-confirmed" as_it_is,
    a_merge = "sc-merge-confirmed" as_it_is,
    a_merge_taken_back = "sc-merge-confirmed" armed,
    an_optimize = "sc-optimize" as_it_is,
    an_optimize_taken_back = "sc-optimize" with_a_still_table,
    a_schema_apply = "sc-schema-staged" as_it_is,
    a_schema_apply_taken_back = "sc-schema-staged" armed,
    an_untouched_fork = "sc-touch-fork" as_it_is,
    a_deleted_branch = "sc-touch-fork" orphaned,
    an_index_build_on_a_fork = "sc-touch-fork" indexed_fork,
    a_staged_schema_alone = "sc-schema-staged" staged_alone
);
