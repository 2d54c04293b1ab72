//! A storage that fails: every mutation of a whole run failed, unanswered, or the last one for good, and
//! every read failed, at every source. A part of each walk runs by default, all of it on request.
//!
//! The fixture is built on a plain path; the run sees it through a store that injects one fault. Whatever
//! the run then says, its code is a known one, a rerun on healthy storage completes, and what is left
//! equals an uninterrupted run.

use fixtures::fault_store::{Counts, Effect, Fault, FaultStore, On, seen_uri};
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
    if injected == 0 {
        // Concurrent reads of one small object are one request or two: the last numbers may not come.
        assert!(matches!(fault.on, On::Read(_)), "{fault:?} hit nothing");
        assert_eq!(report.outcome, Outcome::Completed, "{fault:?}: {report:#?}");
        return report;
    }
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
    check_names_it(&case, &report, &fault).await;
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

/// What `--check` says on healthy storage of what a run with a fault left.
async fn check_names_it(case: &Case, report: &Report, fault: &Fault) {
    let before = case.digest();
    let check = case.check().await;
    assert_eq!(
        fixtures::tree::tree_changes(&before, &case.digest()),
        [""; 0]
    );
    match (report.outcome, check.outcome) {
        (Outcome::Completed, Outcome::AlreadyCurrent) => {}
        (Outcome::CheckFailed, Outcome::CheckPassed) => {}
        // The last effect may have landed without an answer.
        (Outcome::RecoveryRequired, Outcome::AlreadyCurrent | Outcome::CheckPassed) => {}
        (Outcome::RecoveryRequired, Outcome::RecoveryRequired) => {
            assert_eq!(codes(&check), ["pending_upgrade"], "{fault:?}: {check:#?}");
        }
        _ => panic!("{fault:?}: {report:#?} then {check:#?}"),
    }
}

async fn healthy(kind: Kind) -> Counts {
    let case = kind.copy().await;
    let (report, counts, _) = run_with(&case, None).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
    assert_eq!(left(&case).await, whole(kind).await.left);
    counts
}

/// Every `step`-th of `count`, each one when the environment asks for all.
fn numbers(count: u64, step: u64) -> impl Iterator<Item = u64> {
    let all = std::env::var_os(EVERY_FAULT).is_some();
    (1..=count).step_by(if all { 1 } else { step as usize })
}

/// Set to walk every request of every matrix instead of a part of it (some 20 minutes).
const EVERY_FAULT: &str = "OMNIGRAPH_EVERY_FAULT";

/// Every `step`-th mutation from the first on.
async fn mutations(kind: Kind, effect: Effect, step: u64) {
    let count = healthy(kind).await.mutations();
    assert!(count > 20, "{count}");
    for n in numbers(count, step) {
        survives(kind, Fault::mutation(n, effect)).await;
    }
}

/// Every read, or some 20 of them.
async fn reads(kind: Kind, effect: Effect) {
    let count = healthy(kind).await.reads();
    assert!(count > 100, "{count}");
    for n in numbers(count, (count / 20).max(1)) {
        survives(kind, Fault::read(n, effect)).await;
    }
}

#[test]
fn f_mutations_fail_once_at_stamp_8() {
    run(|| mutations(Kind::S8, Effect::Fail, 3));
}

#[test]
fn f_mutations_fail_once_at_stamp_9() {
    run(|| mutations(Kind::S9Lock, Effect::Fail, 1));
}

#[test]
fn f_mutations_fail_once_at_stamp_13() {
    run(|| mutations(Kind::S13, Effect::Fail, 3));
}

#[test]
fn f_mutations_lose_their_answer_at_stamp_8() {
    run(|| mutations(Kind::S8, Effect::LoseAnswer, 3));
}

#[test]
fn f_mutations_lose_their_answer_at_stamp_9() {
    run(|| mutations(Kind::S9Lock, Effect::LoseAnswer, 1));
}

#[test]
fn f_mutations_lose_their_answer_at_stamp_13() {
    run(|| mutations(Kind::S13, Effect::LoseAnswer, 3));
}

#[test]
fn f_killed_before_mutations_at_stamp_8() {
    run(|| mutations(Kind::S8, Effect::StopBefore, 6));
}

#[test]
fn f_killed_before_mutations_at_stamp_13() {
    run(|| mutations(Kind::S13, Effect::StopBefore, 6));
}

#[test]
fn f_killed_around_mutations_at_stamp_9() {
    run(|| async {
        mutations(Kind::S9Lock, Effect::StopBefore, 6).await;
        mutations(Kind::S9Lock, Effect::StopAfter, 4).await;
    });
}

#[test]
fn f_killed_after_mutations_at_stamps_8_and_13() {
    run(|| async {
        mutations(Kind::S8, Effect::StopAfter, 9).await;
        mutations(Kind::S13, Effect::StopAfter, 9).await;
    });
}

#[test]
fn f_reads_fail_once_at_stamp_8() {
    run(|| reads(Kind::S8, Effect::Fail));
}

#[test]
fn f_reads_fail_once_at_stamp_9() {
    run(|| reads(Kind::S9Lock, Effect::Fail));
}

#[test]
fn f_reads_fail_once_at_stamp_13() {
    run(|| reads(Kind::S13, Effect::Fail));
}
