//! Runs that are killed, and runs that meet.

use std::process::Stdio;
use std::time::Duration;

use fixtures::fixture_s::SpecS;
use serde_json::Value;

use super::{Case, stopped_with_a_name};
use crate::support::proxy::{Answer, Proxy};
use crate::support::run::{codes, upgrade};

const LONG: Duration = Duration::from_secs(60);

/// Start an upgrade and kill it at its `nth` write, before or after the store did it.
fn kill_at(case: &Case, nth: usize, done: bool) {
    let proxy = Proxy::start(case.place.server, move |request| match request.write {
        Some(n) if n == nth && done => Answer::PassThenHold,
        Some(n) if n >= nth => Answer::Swallow,
        _ => Answer::Pass,
    });
    let mut child = case
        .place
        .command(&[], &proxy)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let held = proxy.wait_held(LONG);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(held, "no write {nth}");
}

/// The writes of an undisturbed run.
fn writes(case: &Case) -> usize {
    let watch = case.watch();
    assert_eq!(case.place.upgrade(&[], &watch)["outcome"], "completed");
    watch.writes().len()
}

fn killed_at_its_writes(spec: SpecS, step: usize) {
    let Some(case) = Case::of(spec) else {
        return;
    };
    let writes = writes(&case);
    let mut named = Vec::new();
    for (turn, nth) in (1..=writes).step_by(step).chain([writes]).enumerate() {
        case.place.restore(&case.before);
        kill_at(&case, nth, turn % 2 == 1);
        named.push(case.state());
        case.finishes();
    }
    // Both sides of the fence were hit.
    for state in ["check_passed", "pending_upgrade"] {
        assert!(named.iter().any(|s| s == state), "{named:?}");
    }
}

#[test]
fn killed_at_any_write_it_is_named_and_finished() {
    killed_at_its_writes(SpecS::stamp_9(), 5);
}

#[test]
fn killed_at_any_write_of_stamp_13_it_is_named_and_finished() {
    killed_at_its_writes(SpecS::stamp_13(), 9);
}

/// Two upgrades started at once, each with a proxy of its own.
fn both(case: &Case) -> [Value; 2] {
    std::thread::scope(|scope| {
        let run = || case.place.upgrade(&[], &case.watch());
        let runs = [scope.spawn(run), scope.spawn(run)];
        runs.map(|run| run.join().unwrap())
    })
}

#[test]
fn two_at_once_end_with_names_and_a_rerun_completes() {
    let Some(case) = Case::of(SpecS::stamp_9()) else {
        return;
    };
    for fenced in [false, true] {
        case.place.restore(&case.before);
        if fenced {
            // Both find the intent of a third and finish it side by side.
            let fence = writes_up_to_fence(&case);
            case.place.restore(&case.before);
            kill_at(&case, fence, true);
            assert_eq!(case.state(), "pending_upgrade");
        }
        for report in both(&case) {
            stopped_with_a_name(&report);
        }
        case.state();
        case.finishes();
    }
}

/// The number of the write that is the fence.
fn writes_up_to_fence(case: &Case) -> usize {
    let watch = case.watch();
    assert_eq!(case.place.upgrade(&[], &watch)["outcome"], "completed");
    let writes = watch.writes();
    let is_fence = |path: &str| {
        case.place
            .key(path)
            .is_some_and(|key| key.starts_with("__manifest/_versions/"))
    };
    let fence = writes.iter().find(|w| is_fence(&w.path)).unwrap();
    fence.write.unwrap()
}

#[test]
fn a_fence_that_comes_too_late_changes_nothing() {
    let Some(case) = Case::of(SpecS::stamp_8()) else {
        return;
    };
    let fence = writes_up_to_fence(&case);
    case.place.restore(&case.before);
    let slow = Proxy::start(case.place.server, move |request| match request.write {
        Some(n) if n == fence => Answer::Hold,
        _ => Answer::Pass,
    });
    let late = std::thread::scope(|scope| {
        let late = scope.spawn(|| case.place.upgrade(&[], &slow));
        assert!(slow.wait_held(LONG));
        let other = upgrade(case.place.path(), &[]);
        assert_eq!(other["outcome"], "completed", "{other:#}");
        let done = case.place.objects();
        slow.release();
        let late = late.join().unwrap();
        let now = case.place.objects();
        for (key, bytes) in &done {
            // The late run's own transaction file goes with its commit.
            let own = key.contains("/_transactions/") && !now.contains_key(key);
            assert!(own || now.get(key) == Some(bytes), "{key}");
        }
        assert!(now.keys().all(|key| done.contains_key(key)));
        late
    });
    assert_eq!(codes(&late), ["fence_publication_attempted"], "{late:#}");
    case.finishes();
}
