//! The contract of the command line: arguments, exit codes, streams, and the exact texts (kept as
//! snapshots with the root's path replaced).

use std::path::{Path, PathBuf};
use std::process::Stdio;

use fixtures::damage::{objects, readable_intent, rows};
use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::tree::tree_digest;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::roots::{assert_same, block_on, fixture_s, unchanged};
use crate::support::run::{Run, codes, command, finish, omnigraph, upgrade};

/// Fixture S, upgraded.
fn current() -> (TempDir, PathBuf) {
    let (dir, s) = fixture_s(SpecS::stamp_9());
    assert_eq!(upgrade(s.root.path(), &[])["outcome"], "completed");
    (dir, s.root.path().to_path_buf())
}

fn text(root: &Path) -> &str {
    root.to_str().unwrap()
}

/// Both renderings of a run, with the path replaced.
fn both(root: &Path, args: &[&str], code: i32) -> String {
    let human = omnigraph(args.iter().copied().chain(["--quiet"])).exits(code);
    let json = omnigraph(args.iter().copied().chain(["--json", "--quiet"])).exits(code);
    json.json();
    assert_eq!((human.stderr, json.stderr), (String::new(), String::new()));
    redact(root, &format!("{}\n{}", human.stdout, json.stdout))
}

/// Replace the path, and the byte count that grows with it.
fn redact(root: &Path, said: &str) -> String {
    let mut lines = Vec::new();
    for line in said.lines() {
        let line = line.replace(text(root), "[root]");
        lines.push(match line.rsplit_once(", ") {
            Some((rest, bytes)) if bytes.ends_with(" bytes") => format!("{rest}, [n] bytes"),
            _ if line.contains("\"legacy_bytes\"") => "    \"legacy_bytes\": [n],".to_string(),
            _ => line,
        });
    }
    lines.join("\n")
}

#[test]
fn version_is_two_lines() {
    let run = omnigraph(["version"]).exits(0);
    let expected = format!(
        "omnigraph {}\ninternal-schema 14\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!((run.stdout, run.stderr), (expected, String::new()));
}

#[test]
fn check_then_run_then_rerun_to_the_letter() {
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let root = s.root.path();
    insta::assert_snapshot!("check", both(root, &["upgrade", text(root), "--check"], 0));
    let run = omnigraph(["upgrade", text(root)]).exits(0);
    insta::assert_snapshot!("completed", redact(root, &run.stdout));
    assert_eq!(
        run.stderr,
        format!("omnigraph upgrade → {} (direct, local)\n", text(root))
    );
    insta::assert_snapshot!("already_current", both(root, &["upgrade", text(root)], 0));
    insta::assert_snapshot!(
        "already_current_check",
        both(
            root,
            &["upgrade", text(root), "--check", "--to-format", "14"],
            0
        )
    );
    insta::assert_snapshot!("snapshot", both(root, &["snapshot", text(root)], 0));
    let feature = ["snapshot", text(root), "--branch", "feature", "--at", "4"];
    insta::assert_snapshot!("snapshot_at_version", both(root, &feature, 0));
    let commit = ["snapshot", text(root), "--at", s.commit(3)];
    insta::assert_snapshot!("snapshot_at_commit", both(root, &commit, 0));
    insta::assert_snapshot!(
        "commit_list",
        both(root, &["commit", "list", text(root)], 0)
    );
    let child = ["commit", "list", text(root), "--branch", "child"];
    insta::assert_snapshot!("commit_list_child", both(root, &child, 0));
}

#[test]
fn the_json_of_a_completed_run() {
    let (_dir, s) = fixture_s(SpecS::stamp_9());
    let root = s.root.path();
    let run = omnigraph(["upgrade", text(root), "--json"]).exits(0);
    assert_eq!(
        run.stderr,
        format!("omnigraph upgrade → {} (direct, local)\n", text(root))
    );
    insta::assert_snapshot!("completed_json", redact(root, &run.stdout));
}

#[test]
fn refusals_to_the_letter() {
    let (_dir, mut s) = fixture_s(SpecS::stamp_9());
    let root = s.root.path().to_path_buf();
    let target = ["upgrade", text(&root), "--to-format", "13"];
    insta::assert_snapshot!("unsupported_target", both(&root, &target, 1));
    let sidecar = "01M8PHSD5GZGCJZFSTH3Z0R1J6";
    let (contract, _) = fixtures::fixture_s::contract_s(SpecS::stamp_9().vintage).unwrap();
    objects::sidecar(&root, &contract, s.commit(4), sidecar).unwrap();
    insta::assert_snapshot!(
        "sidecar",
        both(&root, &["upgrade", text(&root), "--check"], 1)
    );
    objects::remove(&root, &format!("__recovery/{sidecar}.json")).unwrap();
    pending(&mut s);
    insta::assert_snapshot!(
        "pending_check",
        both(&root, &["upgrade", text(&root), "--check"], 1)
    );
    for args in [
        &["snapshot", text(&root)][..],
        &["commit", "list", text(&root)],
    ] {
        let line = omnigraph(args).one_error_line();
        insta::allow_duplicates! {
            insta::assert_snapshot!("pending_open", redact(&root, &line));
        }
    }
}

fn pending(s: &mut FixtureS) {
    let (feature, fresh, child) = (s.feature.clone(), s.fresh.clone(), s.child.clone());
    let live = [feature.as_str(), fresh.as_str(), child.as_str()];
    let value = readable_intent(&s.root, "01K6X9V0000000000000000000", &live).unwrap();
    block_on(rows::pending(&mut s.root, &value)).unwrap();
}

#[test]
fn other_targets_are_refused_on_old_and_current_roots() {
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let (_other, current) = current();
    for root in [s.root.path(), &current] {
        for target in [
            "0",
            "7",
            "8",
            "9",
            "10",
            "11",
            "12",
            "13",
            "15",
            "4294967295",
        ] {
            for extra in [&[][..], &["--check"]] {
                let args: Vec<_> = extra
                    .iter()
                    .copied()
                    .chain(["--to-format", target])
                    .collect();
                let report = unchanged(root, || upgrade(root, &args));
                assert_eq!(report["outcome"], "check_failed", "{report:#}");
                assert_eq!(codes(&report), ["unsupported_target"], "{report:#}");
                assert_eq!(report["target_format"].to_string(), target);
                assert_eq!(report["target_defaulted"], false);
                assert_eq!(report["recovery"], Value::Null);
                let message = report["findings"][0]["message"].as_str().unwrap();
                for named in ["8", "9", "13", "14"] {
                    assert!(message.contains(named), "{message}");
                }
            }
        }
    }
    let report = unchanged(&current, || upgrade(&current, &["--to-format", "14"]));
    assert_eq!(report["outcome"], "already_current");
    assert_eq!(report["target_defaulted"], false);
    assert_eq!(upgrade(&current, &[])["target_defaulted"], true);
}

#[test]
fn misuse_is_exit_2_and_touches_nothing() {
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let root = text(s.root.path());
    let lines: &[&[&str]] = &[
        &[],
        &["update", root],
        &["upgrade"],
        &["upgrade", root, root],
        &["upgrade", root, "--store", root],
        &["upgrade", root, "--to-format"],
        &["upgrade", root, "--to-format", "x"],
        &["upgrade", root, "--to-format", ""],
        &["upgrade", root, "--to-format", "-1"],
        &["upgrade", root, "--to-format", "1.5"],
        &["upgrade", root, "--to-format", "4294967296"],
        &["upgrade", root, "--server", "http://localhost"],
        &["upgrade", root, "--cluster", "c"],
        &["upgrade", root, "--graph", "g"],
        &["upgrade", root, "--force"],
        &["snapshot"],
        &["snapshot", root, "--branch"],
        &["commit"],
        &["commit", "list"],
        &["version", "extra"],
    ];
    unchanged(s.root.path(), || {
        for args in lines {
            let run = omnigraph(*args).exits(2);
            assert_eq!(run.stdout, "", "{args:?}");
            assert!(!run.stderr.is_empty(), "{args:?}");
        }
    });
    assert!(!omnigraph(["--help"]).exits(0).stdout.is_empty());
    assert!(!omnigraph(["upgrade", "--help"]).exits(0).stdout.is_empty());
}

#[test]
fn the_echo_is_for_runs_that_write_and_are_not_quiet() {
    let (_dir, root) = current();
    let at = text(&root);
    let echo = format!("omnigraph upgrade → {at} (direct, local)\n");
    for (args, expected) in [
        (&["upgrade", at][..], echo.as_str()),
        (&["upgrade", "--store", at], &echo),
        (&["upgrade", at, "--json"], &echo),
        (&["upgrade", &format!("file://{at}/")], &echo),
        (&["upgrade", &format!("{at}/../graph/.")], &echo),
        (&["upgrade", at, "--quiet"], ""),
        (&["--quiet", "upgrade", at, "--json"], ""),
        (&["upgrade", at, "--check"], ""),
        (&["upgrade", at, "--check", "--json"], ""),
    ] {
        let run = omnigraph(args).exits(0);
        assert_eq!(run.stderr, expected, "{args:?}");
        if args.contains(&"--json") {
            assert_eq!(run.json()["location"], at, "{args:?}");
        }
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (_dir, root) = current();
    let at = text(&root);
    for args in [
        &["upgrade", at, "--check"][..],
        &["upgrade", at, "--json", "--quiet"],
        &["snapshot", at],
        &["commit", "list", at, "--json"],
        &["version"],
        &["--help"],
    ] {
        for (out, err) in [(true, false), (false, true), (true, true)] {
            let mut child = command(args);
            child.stdout(if out { closed() } else { Stdio::null() });
            child.stderr(if err { closed() } else { Stdio::piped() });
            let done = child.output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(
                (done.status.code(), said.as_ref()),
                (Some(0), ""),
                "{args:?}"
            );
        }
    }
}

/// The writing end of a pipe nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_run_completes_without_any_reader() {
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let mut run = command(["upgrade", text(s.root.path())]);
    let status = run.stdout(closed()).stderr(closed()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(upgrade(s.root.path(), &[])["outcome"], "already_current");
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let (_dir, root) = current();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return };
    let mut run = command(["snapshot", text(&root), "--json"]);
    run.stdout(full).stderr(Stdio::piped());
    let done = run.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: ") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let (_dir, root) = current();
    let at = text(&root);
    let before = tree_digest(&root).unwrap();
    for (args, fragment) in [
        (&["snapshot", at, "--branch", "nope"][..], "nope"),
        (&["snapshot", at, "--branch", ""], ""),
        (&["snapshot", at, "--branch", "../.."], ""),
        (&["snapshot", at, "--branch", "a\nb"], ""),
        (&["snapshot", at, "--at", "0"], "0"),
        (&["snapshot", at, "--at", "8"], "no version 8"),
        (
            &["snapshot", at, "--at", "18446744073709551615"],
            "18446744073709551615",
        ),
        (
            &["snapshot", at, "--at", "18446744073709551616"],
            "18446744073709551616",
        ),
        (
            &["snapshot", at, "--at", "9223372036854775808"],
            "9223372036854775808",
        ),
        (&["snapshot", at, "--at", "head"], "head"),
        (&["snapshot", at, "--at", ""], "commit id"),
        (
            &["snapshot", at, "--at", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ),
        (
            &["snapshot", at, "--branch", "feature", "--at", "1"],
            "no version 1",
        ),
        (&["commit", "list", at, "--branch", "gone"], "gone"),
        (&["snapshot", at, "--branch", "idle"], "idle"),
    ] {
        let run: Run = finish(command(args));
        let line = run.one_error_line();
        assert!(line.contains(fragment), "{args:?}: {line}");
    }
    assert_same(&root, &before);
}
