//! `omnigraph cleanup`: checks in order, preview, run, exit codes, signals.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fixtures::tree::tree_digest;
use tempfile::TempDir;

use crate::support::roots::{unchanged, unchanged_but_lease};
use crate::support::run::{Run, command, finish, omnigraph};

const SCHEMA: &str = "node Person { name: String @key  age: I32? }\n";

/// A graph with `loads` commits after genesis, made by the binary.
fn graph(loads: usize) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, schema, data) = (
        base.join("graph"),
        base.join("schema.pg"),
        base.join("data"),
    );
    std::fs::write(&schema, SCHEMA).unwrap();
    let text = |p: &Path| p.to_str().unwrap().to_string();
    omnigraph(["init", "--schema", &text(&schema), &text(&root)]).exits(0);
    for n in 0..loads {
        let line = format!("{{\"type\":\"Person\",\"data\":{{\"name\":\"ada\",\"age\":{n}}}}}\n");
        std::fs::write(&data, line).unwrap();
        omnigraph([
            "load",
            "--mode",
            "merge",
            "--data",
            &text(&data),
            &text(&root),
        ])
        .exits(0);
    }
    (dir, root)
}

fn cleanup(root: &Path, extra: &[&str]) -> Run {
    let mut args = vec!["cleanup", root.to_str().unwrap()];
    args.extend(extra);
    omnigraph(&args)
}

#[test]
fn a_policy_is_asked_for_before_anything_is_opened() {
    let missing = Path::new("/nowhere/at/all");
    for (extra, words) in [
        (vec![], vec!["--keep", "--older-than"]),
        (vec!["--confirm"], vec!["--keep", "--older-than"]),
        (vec!["--older-than", "7D"], vec!["'7D'", "7d"]),
        (
            vec!["--keep", "1", "--older-than", "1h30m"],
            vec!["'1h30m'"],
        ),
        (vec!["--older-than", "-1d"], vec!["'-1d'"]),
    ] {
        let line = cleanup(missing, &extra).one_error_line();
        for word in words {
            assert!(line.contains(word), "{line}");
        }
    }
    cleanup(missing, &["--keep", "x"]).exits(2);
    cleanup(missing, &["--keep"]).exits(2);
    cleanup(missing, &["--keep", "1", "--nope"]).exits(2);
    // A preview of what is no graph is an error.
    let run = cleanup(missing, &["--keep", "1"]).exits(1);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("no such folder"), "{run:#?}");
}

#[test]
fn a_remote_graph_needs_consent_before_it_is_opened() {
    let run = omnigraph([
        "cleanup",
        "s3://bucket/graph",
        "--keep",
        "1",
        "--confirm",
        "--json",
    ]);
    let line = run.one_error_line();
    assert!(line.contains("--yes"), "{line}");
}

#[test]
fn preview_then_run() {
    let (_dir, root) = graph(4);
    let shown = unchanged(&root, || cleanup(&root, &["--keep", "1"]).exits(0));
    assert!(
        shown.stdout.contains("would remove 3 versions"),
        "{shown:#?}"
    );
    assert!(shown.stdout.contains("stays: ") && shown.stdout.contains("head 1 versions"));
    assert!(shown.stderr.contains("--confirm") && shown.stderr.contains("keep 1 versions"));
    let last = shown.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("cleanup mode=preview datasets=1 versions=3 "),
        "{last}"
    );
    let preview = unchanged(&root, || {
        cleanup(&root, &["--keep", "1", "--json"]).exits(0)
    })
    .json();
    assert_eq!(preview["mode"], "preview");

    let run = cleanup(&root, &["--keep", "1", "--confirm", "--json"]).exits(0);
    let done = run.json();
    assert_eq!(done["mode"], "confirm");
    assert!(run.stderr.starts_with("omnigraph cleanup → "), "{run:#?}");
    for member in [
        "bytes_removed",
        "manifests_removed",
        "old_versions_removed",
        "files_removed",
    ] {
        assert_eq!(
            done["datasets"][0][member], preview["datasets"][0][member],
            "{member}"
        );
        assert!(done["datasets"][0][member].as_u64() > Some(0), "{member}");
    }
    let again = unchanged_but_lease(&root, || {
        cleanup(&root, &["--keep", "1", "--confirm", "--quiet"]).exits(0)
    });
    let uri = root.to_str().unwrap();
    let first =
        format!("cleanup {uri} (keep 1 versions) — removed 0 versions (0 bytes) across 1 datasets");
    assert_eq!(again.stdout.lines().next(), Some(first.as_str()));
    assert!(!again.stderr.contains('→'));
    let text = cleanup(&root, &["--keep", "2", "--older-than", "7d"]).exits(0);
    assert!(
        text.stderr
            .contains("keep 2 versions, remove anything older than 604800s")
    );
}

#[test]
fn a_preview_works_on_a_root_that_may_only_be_read() {
    let (_dir, root) = graph(2);
    let set = |mode: u32, folders: &[PathBuf]| {
        for folder in folders {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let mut folders = vec![root.clone()];
    for key in tree_digest(&root).unwrap().keys() {
        let mut at = root.join(key);
        while at.pop() && at.starts_with(&root) {
            folders.push(at.clone());
        }
    }
    set(0o555, &folders);
    let run = unchanged(&root, || cleanup(&root, &["--keep", "1", "--json"]));
    set(0o755, &folders);
    assert_eq!(run.exits(0).json()["datasets"][0]["manifests_removed"], 1);
}

#[test]
fn row_errors_exit_0_and_with_strict_1() {
    let (_dir, root) = graph(3);
    let key = tree_digest(&root)
        .unwrap()
        .into_keys()
        .find(|k| k.starts_with("nodes/") && k.contains("/_versions/d"))
        .unwrap();
    std::fs::remove_file(root.join(key)).unwrap();
    for extra in [vec![], vec!["--confirm"]] {
        let args = [&["--keep", "9"], extra.as_slice()].concat();
        let run = unchanged_but_lease(&root, || cleanup(&root, &args).exits(0));
        assert!(
            run.stderr.contains("is absent from the listing"),
            "{run:#?}"
        );
        let strict = [args.as_slice(), &["--strict", "--json"]].concat();
        let run = unchanged_but_lease(&root, || cleanup(&root, &strict).exits(1));
        let row = &run.json()["datasets"][0];
        assert!(row["error"].as_str().unwrap().contains("--keep 1"), "{row}");
        assert_eq!(row["manifests_removed"], 0);
    }
    let run = cleanup(&root, &["--keep", "9", "--confirm"]);
    assert!(run.stdout.contains("across 0 datasets"), "{run:#?}");
    assert!(
        run.stdout.contains("  1 failed: node type 'Person'"),
        "{run:#?}"
    );
}

#[test]
fn a_sidecar_refuses_a_run_and_not_a_preview() {
    let (_dir, root) = graph(2);
    std::fs::create_dir(root.join("__recovery")).unwrap();
    std::fs::write(root.join("__recovery/x.json"), "{}").unwrap();
    let preview = unchanged(&root, || cleanup(&root, &["--keep", "1"]).exits(0));
    assert!(
        preview.stdout.contains("--confirm will be refused"),
        "{preview:#?}"
    );
    let line = unchanged(&root, || {
        cleanup(&root, &["--keep", "1", "--confirm", "--quiet"]).one_error_line()
    });
    assert!(line.contains("__recovery/x.json"), "{line}");
}

#[test]
fn a_signal_stops_it_and_a_rerun_ends_the_same() {
    let (_dir, root) = graph(6);
    let mut reached = Vec::new();
    for wait in [0_u64, 5, 20, 60, 120, 250] {
        let mut child = command([
            "cleanup",
            root.to_str().unwrap(),
            "--keep",
            "1",
            "--confirm",
            "--json",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let kill = std::process::Command::new("kill")
            .arg(child.id().to_string())
            .status();
        assert!(kill.unwrap().success());
        let status = child.wait().unwrap();
        reached.push(status.code());
        // A run that was stopped says so with 1; a signal before it listened ends it as the system does.
        assert!(matches!(status.code(), None | Some(0 | 1)), "{status}");
        let export = finish(command(["export", root.to_str().unwrap()])).exits(0);
        assert_eq!(export.stdout.lines().count(), 1, "{export:#?}");
    }
    let run = cleanup(&root, &["--keep", "1", "--confirm", "--json"]).exits(0);
    assert_eq!(run.json()["stopped"], false);
    let idle = cleanup(&root, &["--keep", "1", "--json"]).exits(0).json();
    assert_eq!(idle["datasets"][0]["manifests_removed"], 0, "{reached:?}");
    assert_eq!(idle["datasets"][0]["files_removed"], 0, "{reached:?}");
}
