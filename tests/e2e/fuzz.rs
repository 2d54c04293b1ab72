//! Single random bytes changed anywhere in a root: the check passes or refuses, in good order.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fixtures::fixture_s::SpecS;
use fixtures::tree::{tree_digest, walk};

use crate::support::random::Random;
use crate::support::refusal::verdict;
use crate::support::roots::{assert_same, fixture_s, unchanged};
use crate::support::run::omnigraph;

const FLIPS: usize = 200;

#[test]
fn a_changed_byte_never_panics_hangs_or_writes() {
    let mut seen: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| flips(SpecS::stamp_8(), 11)),
            scope.spawn(|| flips(SpecS::stamp_9(), 12)),
        ];
        for thread in threads {
            for (class, verdict) in thread.join().unwrap() {
                *seen.entry(class).or_default().entry(verdict).or_default() += 1;
            }
        }
    });
    eprintln!("verdicts by class of file: {seen:#?}");
    let passed = |v: &BTreeMap<String, usize>| v.get("check_passed ").copied().unwrap_or(0);
    let passes: usize = seen.values().map(passed).sum();
    assert!(
        passes < FLIPS,
        "no flip was noticed: is anything read at all?"
    );
    // What decides is read whole.
    for class in ["_schema.ir.json", "retirement archives"] {
        if let Some(verdicts) = seen.get(class) {
            assert!(
                verdicts.keys().any(|v| !v.starts_with("check_passed")),
                "{class}: {verdicts:?}"
            );
        }
    }
}

fn flips(spec: SpecS, seed: u64) -> Vec<(String, String)> {
    let (_dir, s) = fixture_s(spec);
    let root = s.root.path();
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    walk(root, "", &mut |key, path| {
        files.push((key.to_string(), path.to_path_buf()));
        Ok(())
    })
    .unwrap();
    let before = tree_digest(root).unwrap();
    let mut random = Random::new(seed);
    let mut out = Vec::new();
    while out.len() < FLIPS / 2 {
        let (key, path) = &files[random.below(files.len())];
        let bytes = std::fs::read(path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let at = random.below(bytes.len());
        let mut changed = bytes.clone();
        changed[at] ^= 1 + u8::try_from(random.below(255)).unwrap();
        std::fs::write(path, &changed).unwrap();
        let said = unchanged(root, || {
            verdict(omnigraph([
                "upgrade",
                root.to_str().unwrap(),
                "--check",
                "--json",
                "--quiet",
            ]))
        });
        std::fs::write(path, &bytes).unwrap();
        if said.starts_with("check_passed") {
            eprintln!(
                "passes: byte {at} of {} of {key}: {} -> {}",
                bytes.len(),
                bytes[at],
                changed[at]
            );
        }
        out.push((class(key), said));
    }
    assert_same(root, &before);
    out
}

/// What is served from `__history` is bound by digests: damaged, it is refused or still the truth.
#[test]
fn a_changed_byte_of_the_history_is_never_believed() {
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let root = s.root.path();
    let at = root.to_str().unwrap();
    omnigraph(["upgrade", at, "--quiet"]).exits(0);
    let questions: [&[&str]; 3] = [
        &["snapshot", at, "--json", "--at", s.commit(3)],
        &["snapshot", at, "--json", "--branch", "feature", "--at", "3"],
        &["commit", "list", at, "--json", "--branch", "child"],
    ];
    let truth = questions.map(|args| omnigraph(args).exits(0).stdout);
    let mut files: Vec<PathBuf> = Vec::new();
    walk(&root.join("__history"), "", &mut |_, path| {
        files.push(path.to_path_buf());
        Ok(())
    })
    .unwrap();
    let mut random = Random::new(13);
    let mut refused = 0;
    for round in 0..120 {
        let path = &files[round % files.len()];
        let bytes = std::fs::read(path).unwrap();
        let mut changed = bytes.clone();
        if round % 4 == 0 {
            changed.truncate(random.below(bytes.len()));
        } else {
            changed[random.below(bytes.len())] ^= 1 + u8::try_from(random.below(255)).unwrap();
        }
        std::fs::write(path, &changed).unwrap();
        for (args, truth) in questions.iter().zip(&truth) {
            let run = omnigraph(*args);
            if run.code == Some(0) {
                assert_eq!(&run.stdout, truth, "{args:?} after damage of {path:?}");
            } else {
                refused += 1;
                run.one_error_line();
            }
        }
        std::fs::write(path, &bytes).unwrap();
    }
    assert!(refused > 60, "only {refused} damages were noticed");
}

/// What kind of file a key names.
fn class(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').collect();
    let dataset = match parts[0] {
        "__manifest" if parts[1] == "tree" => "branches of __manifest",
        "__manifest" => "__manifest",
        "nodes" | "edges" => "tables",
        root_object => return root_object.to_string(),
    };
    let name = parts[parts.len() - 1];
    let kind = if name == "_omnigraph_retired_branch.json" {
        return "retirement archives".into();
    } else if name == "latest_version_hint.json" {
        "version hint"
    } else {
        parts[parts.len() - 2]
    };
    format!("{dataset}: {kind}")
}
