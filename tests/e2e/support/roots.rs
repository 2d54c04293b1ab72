//! Roots to run on: packed samples and fixture S.

use std::path::{Path, PathBuf};

use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::sample::{SAMPLES_ENV, expected, samples_folder};
use fixtures::tree::{TreeDigest, tree_changes, tree_digest};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// The folder of the sample roots and its `expected.json`; `None`, after one line on stderr, where
/// there are none.
pub fn samples() -> Option<(PathBuf, Map<String, Value>)> {
    let Some(folder) = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR"))) else {
        eprintln!("skipped: no sample roots (set {SAMPLES_ENV} to their folder)");
        return None;
    };
    let Value::Object(expected) = expected(&folder).unwrap() else {
        panic!("expected.json of {} is no object", folder.display());
    };
    Some((folder, expected))
}

/// Run async `work` to its end.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    // Lance's futures are deep: the caller's stack may be too small for them in a debug build.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(16 << 20)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// Fixture S in a folder of its own, removed with the first of the pair.
pub fn fixture_s(spec: SpecS) -> (TempDir, FixtureS) {
    let dir = tempfile::tempdir().unwrap();
    // A canonical path: branches hold absolute ones.
    let path = dir.path().canonicalize().unwrap().join("graph");
    let made = block_on(FixtureS::create(&path, spec)).unwrap();
    (dir, made)
}

/// Run `work` and assert that it changed not one byte below `root`.
pub fn unchanged<T>(root: &Path, work: impl FnOnce() -> T) -> T {
    let before = tree_digest(root).unwrap();
    let out = work();
    assert_same(root, &before);
    out
}

/// Assert that the files below `root` are those of `before`.
pub fn assert_same(root: &Path, before: &TreeDigest) {
    let changes = tree_changes(before, &tree_digest(root).unwrap());
    assert_eq!(changes, Vec::<String>::new(), "{}", root.display());
}

/// [`unchanged`], the objects of the maintenance lease aside.
pub fn unchanged_but_lease<T>(root: &Path, work: impl FnOnce() -> T) -> T {
    let before = without_lease(root);
    let out = work();
    let changes = tree_changes(&before, &without_lease(root));
    assert_eq!(changes, Vec::<String>::new(), "{}", root.display());
    out
}

fn without_lease(root: &Path) -> TreeDigest {
    let mut digest = tree_digest(root).unwrap();
    digest.retain(|key, _| !key.starts_with("__maintenance_lease/"));
    digest
}
