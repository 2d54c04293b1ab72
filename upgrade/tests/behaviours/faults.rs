//! A storage that fails: every mutation of a whole run, failed and unanswered; a sample of its reads, and
//! of kills that leave it for good.
//!
//! The fixture is built on a plain path; the run sees it through a store that injects one fault. Whatever
//! the run then says, its code is a known one, a rerun on healthy storage completes, and what is left
//! equals an uninterrupted run.

use fixtures::fault_store::{Counts, Effect, Fault, FaultStore, seen_uri};
use graph::store::{Root, RootOptions};
use upgrade::{Outcome, Report, UpgradeOptions, upgrade};

use crate::interrupted::whole;
use crate::support::*;

async fn run_with(case: &Case, fault: Option<Fault>) -> (Report, Counts, u64) {
    let faults = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(faults.wrapper()),
    };
    let root = Root::open(&seen_uri(&case.path()), options).await.unwrap();
    faults.reset();
    if let Some(fault) = fault {
        faults.arm(fault);
    }
    let options = UpgradeOptions {
        attempt: Some(attempt()),
        ..UpgradeOptions::default()
    };
    let report = upgrade(&root, &options).await;
    (report, faults.counts(), faults.injected())
}

/// One fault, one rerun.
async fn survives(kind: Kind, fault: Fault) -> Report {
    let case = kind.copy().await;
    let (report, _, injected) = run_with(&case, Some(fault.clone())).await;
    assert!(injected > 0, "{fault:?} hit nothing");
    let known = [
        "preflight_failed",
        "fence_publication_attempted",
        "upgrade_interrupted",
        "schema_apply_lock_retired",
    ];
    for code in codes(&report) {
        assert!(known.contains(&code), "{fault:?}: {report:#?}");
    }
    let fenced = report.last_durable_completed_boundary.is_some();
    match report.outcome {
        Outcome::Completed => assert_eq!(
            report.last_durable_completed_boundary.as_deref(),
            Some("activated")
        ),
        Outcome::CheckFailed => assert!(!fenced && report.recovery.is_none(), "{report:#?}"),
        Outcome::RecoveryRequired => assert!(report.recovery.is_some(), "{report:#?}"),
        _ => panic!("{fault:?}: {report:#?}"),
    }
    let again = case.execute().await;
    let done = matches!(again.outcome, Outcome::Completed | Outcome::AlreadyCurrent);
    assert!(done, "{fault:?}: {report:#?} then {again:#?}");
    if report.outcome == Outcome::CheckFailed {
        assert_eq!(
            again.observed_format,
            Some(kind.stamp()),
            "{fault:?}: {report:#?}"
        );
    }
    assert_eq!(left(&case).await, whole(kind).await.left, "{fault:?}");
    report
}

async fn healthy(kind: Kind) -> Counts {
    let case = kind.copy().await;
    let (report, counts, _) = run_with(&case, None).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
    assert_eq!(left(&case).await, whole(kind).await.left);
    counts
}

/// Every `step`-th mutation from the first on.
async fn every_mutation(kind: Kind, effect: Effect, step: usize) {
    let mutations = healthy(kind).await.mutations();
    assert!(mutations > 20, "{mutations}");
    for n in (1..=mutations).step_by(step) {
        survives(kind, Fault::mutation(n, effect)).await;
    }
}

#[test]
fn f_every_mutation_fails_once() {
    run(|| every_mutation(Kind::S9Lock, Effect::Fail, 1));
}

#[test]
fn f_every_mutation_loses_its_answer() {
    run(|| every_mutation(Kind::S9Lock, Effect::LoseAnswer, 1));
}

#[test]
fn f_killed_after_a_sample_of_mutations() {
    run(|| every_mutation(Kind::S9, Effect::StopAfter, 4));
}

#[test]
fn f_a_sample_of_reads_fails_once() {
    run(|| async {
        let reads = healthy(Kind::S9).await.reads();
        let step = (reads / 20).max(1) as usize;
        for n in (1..=reads).step_by(step) {
            survives(Kind::S9, Fault::read(n, Effect::Fail)).await;
        }
    });
}
