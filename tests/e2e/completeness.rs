//! After an upgrade every state the source root held is still served, at its commit and its number.

use std::path::Path;

use fixtures::fixture_s::SpecS;
use fixtures::sample::unpack;
use fixtures::tree::{tree_changes, tree_digest};

use crate::support::roots::{fixture_s, samples, unchanged};
use crate::support::run::upgrade;
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
        // Lance's own note of the latest version, never trusted.
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
