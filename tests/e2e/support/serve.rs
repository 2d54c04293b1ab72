//! Whether a converted root serves everything its source held.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::run::{commit_list, snapshot};
use super::source::{Commit, Ref, Source};

/// Versions the conversion adds: fence, conversion and activation on main, one on any other ref.
fn added(r: &Ref) -> u64 {
    if r.native.is_none() { 3 } else { 1 }
}

/// Assert that the stamp-14 root `root` serves all of `source`: every commit by id, every lineage,
/// every retained version by number, and nothing more.
pub fn serves_everything(root: &Path, source: &Source) {
    assert!(!source.commits.is_empty());
    for commit in source.commits.values() {
        let shown = snapshot(root, "main", Some(&commit.id)).exits(0).json();
        assert_eq!(
            shown,
            document(&commit.branch, commit.version, commit),
            "{root:?}"
        );
    }
    for r in source.live() {
        lineage(root, source, r);
        versions(root, source, r);
        // Any branch answers for any commit.
        let far = source.commits.values().next_back().unwrap();
        let shown = snapshot(root, &r.logical, Some(&far.id)).exits(0).json();
        assert_eq!(
            shown,
            document(&far.branch, far.version, far),
            "{root:?} {r:?}"
        );
    }
    for id in &source.absent {
        let line = snapshot(root, "main", Some(id)).one_error_line();
        assert!(line.contains(id.as_str()), "{line}");
    }
    for r in source.refs.iter().filter(|r| !r.live) {
        if source.live().all(|live| live.logical != r.logical) {
            snapshot(root, &r.logical, None).one_error_line();
            commit_list(root, &r.logical).one_error_line();
        }
    }
}

fn document(branch: &str, version: u64, commit: &Commit) -> Value {
    json!({
        "branch": branch,
        "manifest_version": version,
        "internal_schema_version": 14,
        "head_commit": commit.id,
        "tables": commit.tables,
    })
}

fn lineage(root: &Path, source: &Source, r: &Ref) {
    let listed = commit_list(root, &r.logical).exits(0).json();
    assert_eq!(listed["branch"], r.logical.as_str());
    let listed: Vec<Value> = listed["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            json!([
                c["graph_commit_id"],
                c["graph_branch"].as_str().unwrap_or("main"),
                c["graph_manifest_version"],
                c["parent_commit_id"],
                c["merged_parent_commit_id"],
                c["actor_id"],
                c["created_at"],
            ])
        })
        .collect();
    let expected: Vec<Value> = source
        .lineage(r)
        .iter()
        .map(|c| {
            json!([
                c.id,
                c.branch,
                c.version,
                c.parent,
                c.merged,
                c.actor,
                c.created_at
            ])
        })
        .collect();
    assert_eq!(listed, expected, "{root:?} {}", r.logical);
}

fn versions(root: &Path, source: &Source, r: &Ref) {
    let latest = r.head + added(r);
    let converted = (r.head + 1)..=latest;
    for version in r.retained.iter().copied().chain(converted) {
        let run = snapshot(root, &r.logical, Some(&version.to_string()));
        match source.at(r, version) {
            Some(commit) => {
                let shown = run.exits(0).json();
                assert_eq!(shown, document(&r.logical, version, commit), "{root:?}");
            }
            None => {
                let line = run.one_error_line();
                assert!(
                    line.contains("genesis"),
                    "{} at {version}: {line}",
                    r.logical
                );
            }
        }
    }
    let head = snapshot(root, &r.logical, None).exits(0).json();
    assert_eq!(
        head,
        document(&r.logical, latest, source.head(r)),
        "{root:?}"
    );
    let lowest = r.retained.first().unwrap();
    let (below, above) = (lowest - 1, latest + 1);
    for gone in [below, above] {
        let line = snapshot(root, &r.logical, Some(&gone.to_string())).one_error_line();
        assert!(line.contains(&format!("no version {gone}")), "{line}");
    }
}

/// Everything the root serves, by question.
pub fn served(root: &Path, source: &Source) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    for r in source.live() {
        let name = &r.logical;
        let head = snapshot(root, name, None).exits(0).json();
        out.insert(name.clone(), head);
        let listed = commit_list(root, name).exits(0).json();
        out.insert(format!("commits of {name}"), listed);
    }
    for id in source.commits.keys() {
        let shown = snapshot(root, "main", Some(id)).exits(0).json();
        out.insert(id.clone(), shown);
    }
    out
}
