//! A graph that a cluster manages is refused under every spelling of its path, before anything of it is
//! read.

use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::fixture_s::SpecS;
use fixtures::tree::copy_tree;

use crate::support::roots::{fixture_s, unchanged};
use crate::support::run::{Run, command, finish, omnigraph};

/// A folder with a cluster of one graph, `graphs/knowledge.omni`.
struct Cluster {
    dir: tempfile::TempDir,
    folder: PathBuf,
    graph: PathBuf,
}

impl Cluster {
    fn new(state: Option<&str>) -> Self {
        let (_dir, s) = fixture_s(SpecS::stamp_8());
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let graph = folder.join("fleet/graphs/knowledge.omni");
        copy_tree(s.root.path(), &graph).unwrap();
        if let Some(state) = state {
            let place = folder.join("fleet/__cluster");
            std::fs::create_dir(&place).unwrap();
            std::fs::write(place.join("state.json"), state).unwrap();
        }
        std::os::unix::fs::symlink(&graph, folder.join("alias")).unwrap();
        Self { dir, folder, graph }
    }
}

fn run_in(folder: &Path, args: &[&str]) -> Run {
    let mut run: Command = command(args);
    run.current_dir(folder);
    finish(run)
}

#[test]
fn refused_under_every_alias_in_both_modes() {
    let cluster = Cluster::new(Some("{}"));
    let graph = cluster.graph.to_str().unwrap();
    let folder = cluster.folder.to_str().unwrap();
    let aliases = [
        (graph.to_string(), "/"),
        (format!("{graph}/"), "/"),
        (format!("{graph}/."), "/"),
        (format!("{graph}//"), "/"),
        (format!("{graph}/../knowledge.omni"), "/"),
        (format!("file://{graph}"), "/"),
        (format!("file://{graph}/"), "/"),
        (format!("file://{folder}/alias"), "/"),
        (format!("{folder}/alias"), "/"),
        ("alias".into(), folder),
        ("alias/".into(), folder),
        ("./alias".into(), folder),
        ("fleet/graphs/knowledge.omni".into(), folder),
        ("./fleet/graphs/knowledge.omni".into(), folder),
        ("./fleet/graphs/knowledge.omni/.".into(), folder),
        (".".into(), graph),
        ("./".into(), graph),
        ("../knowledge.omni".into(), graph),
    ];
    unchanged(cluster.dir.path(), || {
        for (alias, at) in &aliases {
            for mode in [&["--check"][..], &[], &["--json"], &["--check", "--json"]] {
                let mut args = vec!["upgrade", alias];
                args.extend(mode);
                let line = run_in(Path::new(at), &args).one_error_line();
                assert!(line.contains("inside cluster"), "{args:?}: {line}");
                assert!(line.contains("'knowledge'"), "{args:?}: {line}");
                assert!(
                    line.contains(&format!("'{folder}/fleet'")),
                    "{args:?}: {line}"
                );
            }
            let line = run_in(Path::new(at), &["upgrade", "--store", alias]).one_error_line();
            assert!(line.contains("inside cluster"), "{alias}: {line}");
        }
    });
}

#[test]
fn refused_before_anything_of_the_graph_is_read() {
    let cluster = Cluster::new(Some("not even json"));
    std::fs::remove_dir_all(cluster.graph.join("__manifest")).unwrap();
    let line = omnigraph(["upgrade", cluster.graph.to_str().unwrap()]).one_error_line();
    assert!(line.contains("inside cluster"), "{line}");
}

#[test]
fn the_same_shape_without_cluster_state_is_a_graph_like_any() {
    let cluster = Cluster::new(None);
    let run = omnigraph([
        "upgrade",
        cluster.graph.to_str().unwrap(),
        "--to-format",
        "13",
        "--json",
    ]);
    assert_eq!(
        run.exits(1).json()["findings"][0]["code"],
        "unsupported_target"
    );
}

#[test]
fn a_probe_that_fails_is_an_error_not_a_yes_or_no() {
    let cluster = Cluster::new(None);
    std::fs::write(cluster.folder.join("fleet/__cluster"), "a file").unwrap();
    for mode in ["--check", "--quiet"] {
        let line = omnigraph(["upgrade", cluster.graph.to_str().unwrap(), mode]).one_error_line();
        assert!(line.contains("cannot tell whether"), "{line}");
    }
}
