//! The process is killed at random moments. What it leaves is named by the next check, and the next
//! run finishes it to the result an uninterrupted run has.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fixtures::fixture_s::SpecS;
use fixtures::tree::{copy_tree, restore};

use crate::support::random::Random;
use crate::support::roots::{fixture_s, unchanged};
use crate::support::run::{codes, command, snapshot, upgrade};
use crate::support::serve::served;
use crate::support::source::Source;

/// Kills over all threads.
const KILLS: usize = 50;

/// What kills left: the state the check named, how often.
type Named = BTreeMap<String, usize>;

#[test]
fn killed_at_any_moment_it_is_named_and_finished() {
    let mut named = Named::new();
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| kill_and_finish(SpecS::stamp_8(), 1)),
            scope.spawn(|| kill_and_finish(SpecS::stamp_9(), 2)),
        ];
        for thread in threads {
            for (state, count) in thread.join().unwrap() {
                *named.entry(state).or_default() += count;
            }
        }
    });
    let kills: usize = named.values().sum();
    assert!(kills >= KILLS, "{named:?}");
    // The moments are spread over the whole run: both sides of the fence were hit.
    assert!(named["check_passed"] >= 3, "{named:?}");
    assert!(named["pending_upgrade"] >= 3, "{named:?}");
}

fn kill_and_finish(spec: SpecS, seed: u64) -> Named {
    let (dir, s) = fixture_s(spec);
    let root = s.root.path();
    let backup = dir.path().join("backup");
    copy_tree(root, &backup).unwrap();
    let source = Source::read(root);
    let started = Instant::now();
    let report = upgrade(root, &[]);
    let whole = started.elapsed();
    assert_eq!(report["outcome"], "completed");
    let expected = served(root, &source);

    let mut random = Random::new(seed);
    let (mut named, mut kills) = (Named::new(), 0);
    while kills < KILLS / 2 {
        restore(&backup, root).unwrap();
        // Up to three kills in a row before the run is let through.
        for _ in 0..=random.below(3) {
            if !killed(root, whole.mul_f64(random.part() * 1.1)) {
                break;
            }
            kills += 1;
            *named.entry(state(root)).or_default() += 1;
        }
        let done = upgrade(root, &[]);
        let outcome = done["outcome"].as_str().unwrap();
        assert!(
            ["completed", "already_current"].contains(&outcome),
            "{done:#}"
        );
        assert_eq!(served(root, &source), expected);
        let again = unchanged(root, || upgrade(root, &[]));
        assert_eq!(again["outcome"], "already_current");
    }
    named
}

/// Start an upgrade and kill it `after`; false when it came to its end before.
fn killed(root: &Path, after: Duration) -> bool {
    let mut child = command(["upgrade", root.to_str().unwrap(), "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    let ended = child.try_wait().unwrap().is_some();
    if !ended {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    if let Some(code) = status.code() {
        assert_eq!(code, 0, "a run that was not killed completes");
    }
    status.code().is_none()
}

/// The state a check names after a kill; any but these three is a bug.
fn state(root: &Path) -> String {
    let report = unchanged(root, || upgrade(root, &["--check"]));
    let outcome = report["outcome"].as_str().unwrap();
    let codes = codes(&report);
    match (outcome, codes.as_slice()) {
        ("check_passed" | "already_current", []) => outcome.to_string(),
        ("recovery_required", [code]) if code == "pending_upgrade" => {
            let recovery = &report["recovery"];
            assert_eq!(
                recovery["executable_compatibility"],
                "this omnigraph executable"
            );
            snapshot(root, "main", None).one_error_line();
            code.clone()
        }
        _ => panic!("a kill left an unnamed state: {report:#}"),
    }
}
