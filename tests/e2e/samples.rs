//! Every sample root that this toolkit converts, serves or refuses, against `expected.json`.

use std::path::Path;

use fixtures::sample::unpack;
use serde_json::{Map, Value, json};

use crate::support::roots::{samples, unchanged};
use crate::support::run::{codes, snapshot, upgrade};

/// The samples of `expected` that belong here.
fn names(expected: &Map<String, Value>) -> Vec<&String> {
    expected
        .iter()
        .filter(|(_, e)| e["issue"] == "1 of 5" || e["source_format"] == 13)
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn outcomes_findings_counts_and_heads() {
    let Some((folder, expected)) = samples() else {
        return;
    };
    let names = names(&expected);
    assert!(!names.is_empty());
    let half = names.len().div_ceil(2);
    std::thread::scope(|scope| {
        for part in names.chunks(half) {
            let (folder, expected) = (&folder, &expected);
            scope.spawn(move || {
                for name in part {
                    one(folder, name, &expected[name.as_str()]);
                }
            });
        }
    });
}

fn one(folder: &Path, name: &str, expected: &Value) {
    let unpacked = unpack(folder, name).unwrap();
    let root = unpacked.path();
    let source = &expected["source_format"];

    let check = unchanged(root, || upgrade(root, &["--check"]));
    assert_eq!(check["outcome"], expected["check"], "{name}: {check:#}");
    assert_eq!(&check["observed_format"], source, "{name}");
    assert_eq!(
        json!(codes(&check)),
        expected["findings"],
        "{name}: {check:#}"
    );
    assert_work(name, &check, expected);
    assert_eq!(
        check["last_durable_completed_boundary"],
        Value::Null,
        "{name}"
    );

    let execute = || upgrade(root, &[]);
    let converts = expected["execute"] == "completed";
    let run = if converts {
        execute()
    } else {
        unchanged(root, execute)
    };
    assert_eq!(run["outcome"], expected["execute"], "{name}: {run:#}");
    assert_eq!(&run["observed_format"], source, "{name}");
    assert_eq!(json!(codes(&run)), expected["findings"], "{name}: {run:#}");
    assert_eq!(
        run["work"], check["work"],
        "{name}: a run does the work of its check"
    );
    assert_eq!(run["graph_identity"], check["graph_identity"], "{name}");
    assert_eq!(run["route"], check["route"], "{name}");
    if converts {
        assert_eq!(
            run["last_durable_completed_boundary"], "activated",
            "{name}"
        );
        assert_eq!(run["completed_handlers"], run["route"], "{name}");
        let route = format!("history-lance-files-v{source}-to-v14");
        assert_eq!(run["route"], json!([route]), "{name}");
    }

    if let Some(rerun) = expected.get("rerun") {
        for extra in [&[][..], &["--check"]] {
            let again = unchanged(root, || upgrade(root, extra));
            assert_eq!(&again["outcome"], rerun, "{name}: {again:#}");
            assert_eq!(again["observed_format"], 14, "{name}");
        }
    }
    for (native, head) in expected["heads"].as_object().unwrap_or(&Map::new()) {
        let branch = logical(native);
        let shown = snapshot(root, branch, None).exits(0).json();
        let version = head.get("converted_version").unwrap_or(&head["version"]);
        assert_eq!(&shown["manifest_version"], version, "{name} {native}");
        assert_eq!(shown["head_commit"], head["head_commit"], "{name} {native}");
        assert_eq!(shown["branch"], branch, "{name} {native}");
        assert_eq!(shown["internal_schema_version"], 14, "{name} {native}");
        if let Some(before) = head.get("source_version") {
            let before = before.to_string();
            let shown = snapshot(root, branch, Some(&before)).exits(0).json();
            assert_eq!(shown["head_commit"], head["head_commit"], "{name} {native}");
            assert_eq!(
                shown["manifest_version"].to_string(),
                before,
                "{name} {native}"
            );
        }
    }
}

fn assert_work(name: &str, report: &Value, expected: &Value) {
    match expected.get("work") {
        Some(work) => {
            for (count, want) in work.as_object().unwrap() {
                assert_eq!(&report["work"][count], want, "{name}: work.{count}");
            }
        }
        None => {
            for (count, found) in report["work"].as_object().unwrap() {
                assert_eq!(
                    found, 0,
                    "{name}: work.{count} of a root that is not planned"
                );
            }
        }
    }
}

/// The name a user gives: without the 26 characters a native name may end in.
fn logical(native: &str) -> &str {
    match native.rsplit_once('.') {
        Some((name, suffix)) if suffix.len() == 26 => name,
        _ => native,
    }
}
