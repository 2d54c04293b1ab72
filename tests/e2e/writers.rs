//! Several processes write at once, and some are killed: an acknowledged load is there, another one is there whole or not
//! at all, and conflicts are typed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::random::Random;
use crate::support::run::{command, omnigraph};

const SCHEMA: &str = "node N { name: String @key }\nedge E: N -> N\n";
/// Rows of one load: they come together or not at all.
const TOGETHER: usize = 3;
const KILLS: usize = 50;

fn graph(folder: &Path) -> String {
    let schema = folder.join("s.pg");
    std::fs::write(&schema, SCHEMA).unwrap();
    let root = folder.join("g").display().to_string();
    omnigraph(["init", "--schema", schema.to_str().unwrap(), &root]).exits(0);
    root
}

/// Start a load of [`TOGETHER`] nodes and an edge, named after `name`.
fn start(folder: &Path, root: &str, branch: &str, name: &str) -> Child {
    let mut text: String = (0..TOGETHER)
        .map(|n| format!("{{\"type\":\"N\",\"data\":{{\"name\":\"{name}-{n}\"}}}}\n"))
        .collect();
    text.push_str(&format!(
        "{{\"edge\":\"E\",\"id\":\"{name}\",\"from\":\"{name}-0\",\"to\":\"{name}-1\"}}\n"
    ));
    let data = folder.join(format!("{name}.jsonl"));
    std::fs::write(&data, text).unwrap();
    let data = data.to_str().unwrap();
    command([
        "load", "--data", data, "--mode", "append", "--branch", branch, "--quiet", root,
    ])
    .env("OMNIGRAPH_HISTORY_RELEASE_BYTES", "4096")
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap()
}

/// The names of the loads that a branch shows; each must be there whole.
fn shown(root: &str, branch: &str) -> BTreeSet<String> {
    let exported = omnigraph(["export", "--branch", branch, root])
        .exits(0)
        .stdout;
    let mut names: Vec<String> = Vec::new();
    for line in exported.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = record["id"].as_str().unwrap();
        names.push(match record.get("edge") {
            Some(_) => id.to_string(),
            None => id.rsplit_once('-').unwrap().0.to_string(),
        });
    }
    let whole: BTreeSet<String> = names.iter().cloned().collect();
    for name in &whole {
        let rows = names.iter().filter(|n| *n == name).count();
        assert_eq!(rows, TOGETHER + 1, "{name} is torn");
    }
    whole
}

fn acknowledged(child: Child) -> bool {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    if !output.status.success() && output.status.code().is_some() {
        // The one way to lose without being killed.
        assert!(
            said.contains("changed while the write was prepared"),
            "{said}"
        );
    }
    output.status.success()
}

#[test]
fn two_processes_lose_no_load() {
    let folder = tempfile::tempdir().unwrap();
    let root = graph(folder.path());
    omnigraph(["branch", "create", "dev", &root]).exits(0);
    let mut expected = [BTreeSet::new(), BTreeSet::new()];
    for round in 0..6 {
        // Two into one branch, and one into another.
        let names = [
            format!("a{round}"),
            format!("b{round}"),
            format!("c{round}"),
        ];
        let branches = ["main", "main", "dev"];
        let children: Vec<Child> = names
            .iter()
            .zip(branches)
            .map(|(name, branch)| start(folder.path(), &root, branch, name))
            .collect();
        for ((child, name), branch) in children.into_iter().zip(names).zip(branches) {
            if acknowledged(child) {
                expected[usize::from(branch == "dev")].insert(name);
            }
        }
    }
    assert_eq!(shown(&root, "main"), expected[0]);
    assert_eq!(shown(&root, "dev"), expected[1]);
    assert_eq!(expected[1].len(), 6);
    assert!(expected[0].len() >= 10, "{expected:?}");
    omnigraph(["verify", "--deep", &root]).exits(0);
}

#[test]
fn killed_writers_leave_whole_loads_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let root = graph(folder.path());
    let mut random = Random::new(7);
    let (mut kills, mut kept, mut maybe) = (0, BTreeSet::new(), BTreeSet::new());
    let mut round = 0;
    while kills < KILLS {
        round += 1;
        let names = [format!("k{round}"), format!("s{round}")];
        let mut victim = start(folder.path(), &root, "main", &names[0]);
        let survivor = (round % 5 == 0).then(|| start(folder.path(), &root, "main", &names[1]));
        std::thread::sleep(Duration::from_millis(100).mul_f64(random.part() * 1.6));
        let ended = victim.try_wait().unwrap().is_some();
        if !ended {
            victim.kill().unwrap();
        }
        let [victim_name, survivor_name] = names;
        if acknowledged(victim) {
            kept.insert(victim_name);
        } else {
            kills += usize::from(!ended);
            maybe.insert(victim_name);
        }
        if survivor.is_some_and(acknowledged) {
            kept.insert(survivor_name);
        }
    }
    let found = shown(&root, "main");
    let lost: Vec<&String> = kept.difference(&found).collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    let known: BTreeSet<String> = kept.union(&maybe).cloned().collect();
    assert!(found.is_subset(&known));
    omnigraph(["verify", "--deep", &root]).exits(0);
}

#[test]
fn two_processes_make_one_branch_of_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = graph(folder.path());
    for round in 0..5 {
        let name = format!("b{round}");
        let make = || {
            command(["branch", "create", &name, &root])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let children = [make(), make()];
        let made = children
            .into_iter()
            .filter_map(|c| c.wait_with_output().unwrap().status.success().then_some(()))
            .count();
        // Both may see each other and step back; a second try then succeeds.
        assert!(made <= 1, "{made} processes made branch {name}");
        if made == 0 {
            omnigraph(["branch", "create", &name, &root]).exits(0);
        }
        omnigraph(["snapshot", &root, "--branch", &name]).exits(0);
    }
    omnigraph(["branch", "list", &root]).exits(0);
}
