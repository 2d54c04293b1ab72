//! Behaviour 38: a stop at every crossing of a run, then what the root says and that a rerun finishes.

use graph::manifest::scan::open_branch;
use tokio::sync::OnceCell;
use upgrade::{Crossing, Outcome, Report, UpgradeOptions, Work};

use crate::support::*;

/// An uninterrupted run: its report, what it left and what it crossed.
#[derive(Debug)]
pub struct Whole {
    pub report: Report,
    pub left: Left,
    pub crossings: Vec<Crossing>,
}

/// The uninterrupted run of a source, taken once.
pub async fn whole(kind: Kind) -> &'static Whole {
    static WHOLE: [OnceCell<Whole>; 6] = [const { OnceCell::const_new() }; 6];
    WHOLE[kind as usize]
        .get_or_init(|| async move {
            let case = kind.copy().await;
            let watch = Stopper::never();
            let options = UpgradeOptions {
                observer: watch.clone(),
                ..UpgradeOptions::default()
            };
            let report = case.run(options).await;
            assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
            Whole {
                report,
                left: left(&case).await,
                crossings: watch.seen(),
            }
        })
        .await
}

/// Another attempt than every fixed one: a resumed run must not use it.
pub fn other_attempt() -> Option<ulid::Ulid> {
    Some(ulid::Ulid::from_string("01M9ZZZZZZZZZZZZZZZZZZZZZZ").unwrap())
}

fn is_directory(key: &str) -> bool {
    key.ends_with("directory.oglx")
}

/// The boundary a run has reached when it stands at crossing `n`, by the protocol's own list.
fn boundary(crossings: &[Crossing]) -> Option<String> {
    let mut at = None;
    for crossing in crossings {
        match crossing {
            Crossing::AfterFence => at = Some("source_fenced".to_string()),
            Crossing::LegacyValidated => at = Some("legacy_written".to_string()),
            Crossing::Converted { name } => at = Some(format!("converted:{name}")),
            Crossing::AfterActivation => at = Some("activated".to_string()),
            _ => {}
        }
    }
    at
}

async fn stop_and_finish(kind: Kind, n: usize, whole: &Whole) {
    let reached = &whole.crossings[..=n];
    let at = &whole.crossings[n];
    let case = kind.copy().await;
    let stop = Stopper::nth(n);
    let stopped = case
        .run(UpgradeOptions {
            observer: stop.clone(),
            ..UpgradeOptions::default()
        })
        .await;
    assert_eq!(stop.seen(), reached);
    let fenced = boundary(reached);
    assert_eq!(stopped.last_durable_completed_boundary, fenced, "{at:?}");
    let lock: Vec<&str> = (kind == Kind::S9Lock)
        .then_some("schema_apply_lock_retired")
        .into_iter()
        .collect();
    says(&stopped.findings.last().unwrap().message, &[STOP]);
    let check = case.check().await;

    let Some(_) = &fenced else {
        assert_eq!(stopped.outcome, Outcome::CheckFailed, "{at:?}");
        assert_eq!(codes(&stopped), [&lock[..], &["preflight_failed"]].concat());
        assert_eq!(stopped.recovery, None);
        assert_eq!(
            (check.outcome, check.work),
            (Outcome::CheckPassed, whole.report.work)
        );
        let done = case.execute().await;
        let aside = Report {
            location: done.location.clone(),
            ..whole.report.clone()
        };
        assert_eq!(done, aside, "{at:?}");
        assert_eq!(left(&case).await, whole.left, "{at:?}");
        return;
    };
    assert_eq!(stopped.outcome, Outcome::RecoveryRequired, "{at:?}");
    assert_eq!(
        codes(&stopped),
        [&lock[..], &["upgrade_interrupted"]].concat()
    );
    let recovery = stopped.recovery.clone().unwrap();
    assert_eq!(recovery.failed_handler, route(kind.stamp()));
    assert_eq!(
        recovery.executable_compatibility,
        "this omnigraph executable"
    );
    says(&recovery.action, &["omnigraph upgrade", "--to-format 14"]);
    assert_eq!(stopped.work, whole.report.work);

    let root = case.root().await;
    if *at == Crossing::AfterActivation {
        assert_eq!(check.outcome, Outcome::AlreadyCurrent);
        assert!(open_branch(&root, None).await.is_ok());
        assert_eq!(case.execute().await.outcome, Outcome::AlreadyCurrent);
        assert_eq!(left(&case).await, whole.left);
        return;
    }
    assert_eq!(codes(&check), ["pending_upgrade"], "{at:?}");
    let refusal = open_branch(&root, None).await.unwrap_err().to_string();
    says(&refusal, &[&attempt().to_string()]);
    let done = case
        .run(UpgradeOptions {
            attempt: other_attempt(),
            ..UpgradeOptions::default()
        })
        .await;
    assert_eq!(done.outcome, Outcome::Completed, "{at:?}: {done:#?}");
    assert_eq!(codes(&done), lock, "{at:?}");
    assert_eq!((done.observed_format, &done.recovery), (Some(14), &None));
    assert_eq!(done.completed_handlers, [route(kind.stamp())]);
    let directory = reached
        .iter()
        .any(|c| matches!(c, Crossing::AfterObject { key } if is_directory(key)));
    let expected = if directory {
        Work {
            live_refs: 4,
            legacy_commits: 6,
            data_files: 3,
            id_shards: 1,
            writer_shards: 1,
            ..Work::default()
        }
    } else {
        // A census ran, over heads that were compared with the root objects before the fence.
        Work {
            table_opens: 0,
            ..whole.report.work
        }
    };
    assert_eq!(done.work, expected, "{at:?}");
    assert_eq!(left(&case).await, whole.left, "{at:?}");
}

fn count(crossings: &[Crossing], pick: impl Fn(&Crossing) -> bool) -> usize {
    crossings.iter().filter(|c| pick(c)).count()
}

/// Every crossing of a source whose number is `part` modulo `parts`.
async fn every_crossing(kind: Kind, part: usize, parts: usize) {
    let whole = whole(kind).await;
    let c = &whole.crossings;
    assert_eq!(count(c, |c| *c == Crossing::AfterFence), 1);
    let object = |c: &Crossing| matches!(c, Crossing::AfterObject { key } if !is_directory(key));
    assert_eq!(count(c, object), 5);
    assert_eq!(count(c, |c| *c == Crossing::LegacyValidated), 1);
    assert_eq!(count(c, |c| matches!(c, Crossing::Staged { .. })), 4);
    assert_eq!(count(c, |c| matches!(c, Crossing::Converted { .. })), 4);
    assert_eq!(count(c, |c| *c == Crossing::BeforeActivation), 1);
    assert_eq!(count(c, |c| *c == Crossing::AfterActivation), 1);
    let locks = if kind == Kind::S9Lock { 3 } else { 0 };
    assert_eq!(
        count(c, |c| matches!(c, Crossing::BeforeLock { .. })),
        locks
    );
    for n in (part..c.len()).step_by(parts) {
        stop_and_finish(kind, n, whole).await;
    }
}

#[test]
fn b38_crossings_then_rerun_stamp_8() {
    run(|| every_crossing(Kind::S8, 0, 1));
}

#[test]
fn b38_crossings_then_rerun_stamp_9_even() {
    run(|| every_crossing(Kind::S9, 0, 2));
}

#[test]
fn b38_crossings_then_rerun_stamp_9_odd() {
    run(|| every_crossing(Kind::S9, 1, 2));
}

#[test]
fn b38_crossings_then_rerun_stamp_13() {
    run(|| every_crossing(Kind::S13, 0, 1));
}

#[test]
fn b38_crossings_then_rerun_with_a_lock_even() {
    run(|| every_crossing(Kind::S9Lock, 0, 2));
}

#[test]
fn b38_crossings_then_rerun_with_a_lock_odd() {
    run(|| every_crossing(Kind::S9Lock, 1, 2));
}

#[test]
fn b38_stopped_at_every_crossing_in_turn_on_one_root() {
    run(|| async {
        // Each run gets one durable effect further than the one before it.
        let kind = Kind::S9Lock;
        let whole = whole(kind).await;
        let case = kind.copy().await;
        for target in &whole.crossings {
            let wanted = target.clone();
            let stop = Stopper::when(move |c| *c == wanted);
            let report = case
                .run(UpgradeOptions {
                    observer: stop.clone(),
                    ..UpgradeOptions::default()
                })
                .await;
            assert!(!report.outcome.is_success(), "{target:?}: {report:#?}");
            assert_eq!(stop.seen().last(), Some(target), "{report:#?}");
        }
        assert_eq!(case.execute().await.outcome, Outcome::AlreadyCurrent);
        assert_eq!(left(&case).await, whole.left);
    });
}
