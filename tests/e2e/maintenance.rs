//! `optimize`, `build-indexes`, `rebuild-full-text-indexes` and `repair` as an operator runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::roots::unchanged;
use crate::support::run::{command, finish, omnigraph};

/// A graph of `types` node types with two fragments each.
fn graph(types: usize) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("graph");
    std::fs::create_dir(&root).unwrap();
    let (schema, data) = (folder.path().join("s.pg"), folder.path().join("d.jsonl"));
    let source: String = (0..types)
        .map(|t| format!("node T{t} {{ name: String @index  n: I64 @index }}\n"))
        .collect();
    std::fs::write(&schema, source).unwrap();
    omnigraph(["init", text(&root), "--schema", text(&schema)]).exits(0);
    for load in 0..2 {
        let rows: String = (0..types)
            .map(|t| {
                format!("{{\"type\":\"T{t}\",\"data\":{{\"name\":\"of {load}\",\"n\":{t}}}}}\n")
            })
            .collect();
        std::fs::write(&data, rows).unwrap();
        omnigraph([
            "load",
            text(&root),
            "--data",
            text(&data),
            "--mode",
            "append",
        ])
        .exits(0);
    }
    (folder, root)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn head(root: &Path) -> Value {
    let commits = omnigraph(["commit", "list", text(root), "--json"])
        .exits(0)
        .json();
    commits["commits"][0].clone()
}

#[test]
fn optimize_checks_runs_and_runs_again() {
    let (_folder, root) = graph(2);
    let export = omnigraph(["export", text(&root)]).exits(0).stdout;
    let checked = unchanged(&root, || {
        omnigraph(["optimize", text(&root), "--check", "--json"]).exits(0)
    });
    let plan = checked.json();
    assert_eq!(plan["datasets"].as_array().unwrap().len(), 2);
    assert!(
        checked
            .stderr
            .contains("2 of 2 tables need work, nothing was changed"),
        "{checked:?}"
    );
    let before = head(&root);
    let run = omnigraph(["optimize", text(&root), "--json"]).exits(0);
    let report = run.json();
    assert_eq!(report["uri"], text(&root));
    assert_eq!(report["datasets"][2]["type_key"], "__manifest");
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(
        lines[0],
        format!("omnigraph optimize → {} (direct, local)", text(&root))
    );
    let after = head(&root);
    let id = after["graph_commit_id"].as_str().unwrap();
    assert_ne!(before, after);
    assert!(
        lines[1].starts_with(&format!(
            "optimize: commit {id}, 2 tables changed, fragments 4 → 2, 0 indexes pending, "
        )),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 2);
    let again = omnigraph(["optimize", text(&root)]).exits(0);
    assert!(
        again.stdout.contains("no-op") && !again.stdout.contains('✓'),
        "{again:?}"
    );
    assert_eq!(head(&root), after);
    assert_eq!(omnigraph(["export", text(&root)]).exits(0).stdout, export);
    omnigraph(["verify", text(&root), "--deep"]).exits(0);
    let quiet = omnigraph(["optimize", text(&root), "--quiet"]).exits(0);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn index_commands_name_what_they_built() {
    let (_folder, root) = graph(1);
    let planned = unchanged(&root, || {
        omnigraph(["build-indexes", text(&root), "--check", "--json"])
            .exits(0)
            .json()
    });
    let built = omnigraph(["build-indexes", text(&root), "--json", "--as", "ann"])
        .exits(0)
        .json();
    assert_eq!(built["built_indexes"], planned["missing_indexes"]);
    assert_eq!(built["built_indexes"].as_array().unwrap().len(), 3);
    assert_eq!(head(&root)["actor_id"], "ann");
    let rebuilt = omnigraph(["rebuild-full-text-indexes", text(&root), "--json"])
        .exits(0)
        .json();
    assert_eq!(rebuilt["rebuilt_indexes"][0]["property"], "name");
    let human = omnigraph(["rebuild-full-text-indexes", text(&root), "--check"]).exits(0);
    assert!(
        human.stdout.contains("full-text index on 'name'"),
        "{human:?}"
    );
    omnigraph(["build-indexes", text(&root), "--branch", "none"]).exits(1);
}

#[test]
fn b5_repair_takes_neither_confirm_nor_force() {
    let (_folder, root) = graph(1);
    for flag in ["--confirm", "--force", "--as=ann"] {
        let run = unchanged(&root, || omnigraph(["repair", text(&root), flag]).exits(2));
        assert_eq!(run.stdout, "");
    }
    omnigraph(["optimize", text(&root), "--as", "ann"]).exits(2);
    let report = unchanged(&root, || {
        omnigraph(["repair", text(&root), "--json"]).exits(0).json()
    });
    assert_eq!(report["datasets"][0]["classification"], "no_drift");
    assert_eq!(report["graph_manifest_version"], Value::Null);
}

#[test]
fn a_held_lease_refuses_and_names_the_holder() {
    let (_folder, root) = graph(1);
    let now = chrono::Utc::now();
    let holder = serde_json::json!({
        "verb": "cleanup", "host": "elsewhere", "pid": 41, "run": "x", "started_at": now, "renewed_at": now,
    });
    std::fs::create_dir(root.join("__maintenance_lease")).unwrap();
    let key = root.join("__maintenance_lease/00000000000000000004.json");
    std::fs::write(key, holder.to_string()).unwrap();
    for verb in ["optimize", "build-indexes", "rebuild-full-text-indexes"] {
        let error = unchanged(&root, || {
            omnigraph([verb, text(&root), "--quiet"]).one_error_line()
        });
        assert!(
            error.contains("cleanup (process 41 on host elsewhere, started "),
            "{error}"
        );
    }
    // Neither reading needs the lease.
    omnigraph(["optimize", text(&root), "--check"]).exits(0);
    omnigraph(["repair", text(&root)]).exits(0);
}

#[test]
fn a_folder_that_is_no_graph_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let error = omnigraph(["optimize", text(folder.path()), "--quiet"]).one_error_line();
    assert!(error.contains("__manifest"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn sigterm_stops_between_effects_and_the_next_run_finishes() {
    let (_folder, root) = graph(12);
    let before = head(&root);
    let mut run = command(["optimize", text(&root), "--quiet"]);
    run.env("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "1");
    let child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let staged = || {
        let tables = std::fs::read_dir(root.join("nodes")).unwrap();
        tables
            .flat_map(|t| std::fs::read_dir(t.unwrap().path().join("_indices")))
            .count()
    };
    let started = Instant::now();
    while staged() < 2 {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty());
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.starts_with("error: stopped: SIGTERM was received; "),
        "{error}"
    );
    assert!(
        error.contains(" of 12 tables with work were staged and none is published"),
        "{error}"
    );
    assert_eq!(head(&root), before);
    // The lease was let go: no wait.
    let next = finish(command(["optimize", text(&root), "--json"]))
        .exits(0)
        .json();
    assert!(
        next["datasets"].as_array().unwrap()[..12]
            .iter()
            .all(|d| d["committed"] == true)
    );
}
