//! After an upgrade every state the source root held is still served, at its commit and its number.

use std::collections::BTreeMap;
use std::path::Path;

use fixtures::fixture_s::SpecS;
use fixtures::sample::unpack;
use fixtures::tree::{tree_changes, tree_digest};
use serde_json::Value;

use crate::support::roots::{fixture_s, samples, unchanged};
use crate::support::run::{omnigraph, snapshot, upgrade};
use crate::support::serve::serves_everything;
use crate::support::source::Source;

/// Upgrade `root`, and compare what it serves with what it held.
fn upgraded_serves_everything(root: &Path) -> Source {
    let before = tree_digest(root).unwrap();
    let source = Source::read(root);
    assert_eq!(upgrade(root, &[])["outcome"], "completed", "{root:?}");
    let locks: Vec<_> = source
        .refs
        .iter()
        .filter_map(|r| r.native.as_ref())
        .collect();
    for change in tree_changes(&before, &tree_digest(root).unwrap()) {
        let added = change.starts_with("+ __manifest/") || change.starts_with("+ __history/");
        let retired = locks.iter().any(|native| {
            native.starts_with("__schema_apply_lock__")
                && change == format!("- __manifest/_refs/branches/{native}.json")
        });
        // Lance's own note of the latest version.
        let hint = change.ends_with("/_versions/latest_version_hint.json");
        assert!(added || retired || hint, "{root:?}: {change}");
    }
    unchanged(root, || serves_everything(root, &source));
    source
}

fn sample(name: &str) {
    if let Some((folder, _)) = samples() {
        upgraded_serves_everything(unpack(&folder, name).unwrap().path());
    }
}

#[test]
fn of_s8_observa1() {
    sample("s8-observa1");
}

#[test]
fn of_s8_lock_ab1() {
    sample("s8-lock-ab1");
}

#[test]
fn of_s9_evolution() {
    sample("s9-evolution");
}

#[test]
fn of_s9_cleaned() {
    sample("s9-cleaned");
}

#[test]
fn of_s9_foreign() {
    sample("s9-foreign");
}

#[test]
fn of_s13_observa() {
    sample("s13-observa");
}

#[test]
fn of_s13_evolution() {
    sample("s13-evolution");
}

#[test]
fn of_fixture_s_at_8() {
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let source = upgraded_serves_everything(s.root.path());
    assert_eq!(source.commits.len(), 6);
    assert_eq!(source.refs.len(), 6);
}

#[test]
fn of_fixture_s_at_9() {
    let (_dir, s) = fixture_s(SpecS::stamp_9());
    let source = upgraded_serves_everything(s.root.path());
    assert!(source.commits.keys().eq(s.commits.iter()));
}

/// A root that another implementation converted serves what the source of that conversion held.
fn converted_elsewhere(name: &str, converted_from: &str) {
    let Some((folder, expected)) = samples() else {
        return;
    };
    let source = unpack(&folder, converted_from).unwrap();
    let source = Source::read(source.path());
    let commits = source.commits.len();
    assert_eq!(expected[name]["commits"], commits);
    let unpacked = unpack(&folder, name).unwrap();
    let root = unpacked.path();
    unchanged(root, || {
        assert_eq!(upgrade(root, &[])["outcome"], "already_current");
        serves_everything(root, &source);
    });
}

#[test]
fn of_s14_observa() {
    converted_elsewhere("s14-observa", "s8-observa1");
}

#[test]
fn of_s14_evolution() {
    converted_elsewhere("s14-evolution", "s9-evolution");
}

/// States from before a property was declared hold rows without it, and the schema they are printed by is that of the
/// upgrade. A type that was dropped before it is not in that schema.
#[test]
fn older_states_of_s9_evolution_are_exported() {
    let Some((folder, _)) = samples() else {
        return;
    };
    let unpacked = unpack(&folder, "s9-evolution").unwrap();
    let root = unpacked.path();
    let source = Source::read(root);
    assert_eq!(upgrade(root, &[])["outcome"], "completed");
    let (mut without, mut dropped) = (0, 0);
    for commit in source.commits.values() {
        let location = root.to_str().unwrap();
        let run = omnigraph(["export", location, "--at", &commit.id]);
        let tables = commit.tables.as_array().unwrap();
        if run.code != Some(0) {
            assert!(run.stderr.contains("does not declare it"), "{}", run.stderr);
            dropped += 1;
            continue;
        }
        let mut printed: BTreeMap<String, u64> = BTreeMap::new();
        for line in run.stdout.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let key = match line["type"].as_str() {
                Some(node) => format!("node:{node}"),
                None => format!("edge:{}", line["edge"].as_str().unwrap()),
            };
            // No row of the root has a value there, in older images there is not even a column.
            if key == "edge:UsedOn" {
                assert!(line["data"].get("slot").is_none(), "{line}");
                without += 1;
            }
            *printed.entry(key).or_default() += 1;
        }
        for table in tables {
            let key = table["table_key"].as_str().unwrap();
            let rows = table["row_count"].as_u64().unwrap();
            assert_eq!(
                printed.remove(key).unwrap_or(0),
                rows,
                "{key} at {}",
                commit.id
            );
        }
        assert!(printed.is_empty(), "{printed:?}");
    }
    assert!(without > 0 && dropped > 0, "{without} {dropped}");
}

/// Tables of a `commit show` document by alias: version and rows.
fn tables(document: &Value) -> BTreeMap<String, [Value; 2]> {
    let tables = document["tables"].as_array().unwrap();
    let of = |t: &Value| [t["table_version"].clone(), t["row_count"].clone()];
    let name = |t: &Value| t["table_key"].as_str().unwrap().to_string();
    tables.iter().map(|t| (name(t), of(t))).collect()
}

#[test]
fn b32_what_each_commit_changed_leads_across_the_upgrade_to_genesis() {
    for spec in [SpecS::stamp_8(), SpecS::stamp_9(), SpecS::stamp_13()] {
        let (dir, s) = fixture_s(spec);
        let root = s.root.path();
        assert_eq!(upgrade(root, &[])["outcome"], "completed");
        let rows = dir.path().join("rows.jsonl");
        let row = r#"{"type":"Person","data":{"name":"new","age":7}}"#;
        std::fs::write(&rows, row).unwrap();
        let (root, data) = (root.to_str().unwrap(), rows.to_str().unwrap());
        omnigraph(["load", root, "--data", data, "--mode", "append"]).exits(0);
        let head = snapshot(Path::new(root), "main", None).exits(0).json();
        let mut at = head["head_commit"].as_str().unwrap().to_string();
        let mut shown = Vec::new();
        loop {
            let document = omnigraph(["commit", "show", &at, root, "--json"]);
            let document = document.exits(0).json();
            let parent = document["commit"]["parent_commit_id"].clone();
            assert_eq!(document["changes"].is_null(), parent.is_null(), "{at}");
            shown.push(document);
            match parent.as_str() {
                Some(parent) => at = parent.to_string(),
                None => break,
            }
        }
        assert_eq!(shown.len(), 4);
        assert_eq!(at, s.commit(1));
        // The tables of genesis and the changes since then make the tables of the head.
        let mut now = tables(shown.last().unwrap());
        let mut kinds = Vec::new();
        for document in shown.iter().rev().skip(1) {
            for change in document["changes"].as_array().unwrap() {
                let text = |member: &str| change[member].as_str().map(str::to_string);
                let key = text("table_key").unwrap();
                kinds.push(text("change").unwrap());
                let before = text("previous_key").unwrap_or_else(|| key.clone());
                let was = now.remove(&before).unwrap_or_default();
                assert_eq!(
                    was,
                    [
                        change["version_before"].clone(),
                        change["rows_before"].clone()
                    ]
                );
                if !change["version"].is_null() {
                    now.insert(key, [change["version"].clone(), change["rows"].clone()]);
                }
            }
            assert_eq!(now, tables(document));
        }
        for kind in ["changed", "renamed", "removed"] {
            assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
        }
        let first = omnigraph(["commit", "show", &at, root]).exits(0);
        assert!(
            first.stdout.ends_with("changes: it has no parent\n"),
            "{}",
            first.stdout
        );
    }
}
