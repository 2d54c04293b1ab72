//! A run that is killed, or whose storage fails, at every single effect (behaviour 22).

use std::collections::BTreeMap;

use fixtures::fault_store::{Effect, Fault, FaultStore, Kind, seen_uri};
use graph::digest::sha256_hex;
use graph::refs::{RetireStep, read_ref, retire};
use graph::store::{Root, RootOptions};
use graph::view::At;
use maintain::Stop;
use maintain::cleanup::listing::manifest_name;
use maintain::cleanup::{execute, plan};
use write::load::Mode;

use super::support::*;

/// Set to walk every effect of every matrix instead of a part of it.
const EVERY_FAULT: &str = "OMNIGRAPH_EVERY_FAULT";
const PERSON: &str = "node:Person";

struct Case {
    graph: Graph,
    /// Every state that stays, with its rows.
    retained: Vec<(Option<&'static str>, At, String)>,
    old: Vec<String>,
}

impl Case {
    async fn new() -> Self {
        let graph = Graph::new().await;
        let root = graph.root().await;
        for n in 0..3 {
            graph.people(None, &["ada", &format!("p{n}")]).await;
            let line = format!(r#"{{"type":"City","data":{{"name":"c{n}"}}}}"#);
            graph.load(None, Mode::Overwrite, &line).await;
        }
        graph.tag("__manifest", "release", None, 4);
        let base = graph.person(None, "eve", 1).await;
        graph.branch("x", None).await;
        graph.person(Some("x"), "xen", 1).await;
        graph.branch("y", Some("x")).await;
        graph.branch("marked", None).await;
        for n in 0..3 {
            graph.person(Some("y"), "yan", n).await;
            graph.person(None, "ada", n).await;
        }
        graph.delete_branch("x").await;
        // Interrupted deletion of a branch that holds staged versions of its own.
        let native = read_live(&root, "marked").await;
        let identifier = read_ref(&root, &native).await.unwrap().unwrap().identifier;
        let stopped = retire(&root, &native, &identifier, |step| async move {
            match step {
                RetireStep::Archive => Err(graph::Error::refused("stopped")),
                _ => Ok(()),
            }
        })
        .await;
        assert!(stopped.is_err());
        let gone = sha256_hex(b"gone");
        let tag = format!("__omnigraph_merge_input_v1_{gone}_n_01ARZ3NDEKTSV4RRFFQ69G5FAV");
        graph.tag("__manifest", &tag, None, 2);
        let table = graph.table(PERSON).await;
        let old: Vec<String> = ["data/old.lance", "data/old/1000.blob", "_indices/u/a"]
            .iter()
            .map(|k| format!("{table}/{k}"))
            .collect();
        for key in &old {
            graph.write(key, b"0123456789");
        }
        let mut retained = Vec::new();
        for (branch, at) in [
            (None, At::Head),
            (Some("y"), At::Head),
            (None, At::Version(4)),
            (None, At::Commit(base)),
        ] {
            let rows = graph.rows(branch, &at).await.unwrap();
            retained.push((branch, at, rows));
        }
        Self {
            graph,
            retained,
            old,
        }
    }

    /// A copy as old as the first.
    fn copy(&self) -> Graph {
        let graph = self.graph.copy();
        for key in &self.old {
            graph.age(key, 30);
        }
        graph
    }

    async fn reads(&self, graph: &Graph, when: &str) {
        for (branch, at, rows) in &self.retained {
            let found = graph.rows(*branch, at).await;
            assert_eq!(found.as_ref(), Ok(rows), "{when}: {branch:?} {at:?}");
        }
    }
}

async fn read_live(root: &Root, name: &str) -> String {
    let found = graph::refs::resolve_branch(root, Some(name)).await.unwrap();
    found.unwrap().native
}

/// Names and sizes: contents of copies differ in the paths they hold.
fn shape(graph: &Graph) -> BTreeMap<String, u64> {
    graph
        .digest()
        .into_iter()
        .map(|(k, (size, _))| (k, size))
        .collect()
}

/// One run with a fault; how many effects arrived.
async fn run_with(graph: &Graph, fault: Option<Fault>) -> u64 {
    let faults = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(faults.wrapper()),
    };
    let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
    let planned = plan(&root, keep(1), 2, &Stop::default()).await.unwrap();
    faults.reset();
    if let Some(fault) = fault {
        faults.arm(fault);
    }
    // Whatever it says: what counts is what is left.
    let _ = execute(&root, &planned, 2, &Stop::default()).await;
    faults.counts().mutations()
}

async fn matrix(effect: Effect, step: usize) {
    let case = Case::new().await;
    let whole = case.copy();
    let count = run_with(&whole, None).await;
    assert!(count > 25, "{count}");
    idle(&whole.clean(keep(1)).await);
    case.reads(&whole, "uninterrupted").await;
    let end = shape(&whole);
    let all = std::env::var_os(EVERY_FAULT).is_some();
    for n in (1..=count).step_by(if all { 1 } else { step }) {
        let graph = case.copy();
        let when = format!("{effect:?} at {n} of {count}");
        run_with(&graph, Some(Fault::mutation(n, effect))).await;
        case.reads(&graph, &when).await;
        fine(&graph.clean(keep(1)).await);
        case.reads(&graph, &when).await;
        assert_eq!(shape(&graph), end, "{when}");
        idle(&graph.clean(keep(1)).await);
    }
}

#[test]
fn killed_before_every_effect() {
    run(|| matrix(Effect::StopBefore, 1));
}

#[test]
fn killed_after_effects() {
    run(|| matrix(Effect::StopAfter, 5));
}

#[test]
fn effects_that_fail_or_are_not_answered() {
    run(|| async {
        matrix(Effect::Fail, 5).await;
        matrix(Effect::LoseAnswer, 7).await;
    });
}

#[test]
fn files_go_before_manifests_and_links_before_tips() {
    run(|| async {
        let graph = Graph::new().await;
        // Folding the tail of a table chains a second link behind a load.
        for n in 0..20 {
            graph.person(None, &format!("p{n}"), n).await;
        }
        let faults = FaultStore::new();
        let options = RootOptions {
            wrapper: Some(faults.wrapper()),
        };
        let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
        let planned = plan(&root, keep(1), 2, &Stop::default()).await.unwrap();
        faults.reset();
        execute(&root, &planned, 2, &Stop::default()).await.unwrap();
        let deleted: Vec<String> = faults
            .requests()
            .into_iter()
            .filter(|r| r.kind == Kind::Delete)
            .map(|r| r.path)
            .collect();
        let at = |end: &str| {
            let found = deleted.iter().position(|path| path.ends_with(end));
            found.unwrap_or_else(|| panic!("{end} was not deleted"))
        };
        let mut longest = 0;
        for traced in planned.tables.iter().flat_map(|t| &t.locations) {
            let manifest = |version: &u64| at(&format!("_versions/{}", manifest_name(*version)));
            let chains = &traced.plan.chains;
            let first = chains.iter().flatten().map(manifest).min();
            for file in &traced.plan.sweep {
                assert!(Some(at(&file.object.path)) < first, "{deleted:#?}");
            }
            for chain in chains {
                longest = longest.max(chain.len());
                assert!(
                    chain.iter().map(manifest).is_sorted(),
                    "{chain:?}: {deleted:#?}"
                );
            }
        }
        assert!(longest > 1);
    });
}
