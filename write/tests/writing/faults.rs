//! A load stopped before or after any of its effects, or left without an answer: it is there whole or not at all.

use fixtures::fault_store::{Effect, Fault, FaultStore, On, seen_uri};
use fixtures::template::Template;
use graph::store::{Root, RootOptions};
use graph::view::commit_list;
use verify::{Code, VerifyOptions};
use write::branches::{create, delete};
use write::load::{LoadOptions, Mode};

use crate::support::*;

async fn seen(path: &std::path::Path, faults: &FaultStore) -> Root {
    let options = RootOptions {
        wrapper: Some(faults.wrapper()),
    };
    Root::open(&seen_uri(path), options).await.unwrap()
}

fn text() -> String {
    lives(&[("e9", "b", "x")]) + &people(&["b"]) + &cities(&["y"])
}

async fn before() -> (Graph, Template) {
    let graph = Graph::new().await;
    let first = people(&["a"]) + &cities(&["x"]);
    for n in 0..3 {
        let options = LoadOptions {
            budget: 1_024,
            ..options(Mode::Merge)
        };
        let text = first.clone() + &people(&[&format!("old{n}")]);
        graph.try_load(&text, &options).await.unwrap();
    }
    let template = Template::of(&graph.path()).unwrap();
    (graph, template)
}

#[test]
fn a_load_is_whole_or_absent_wherever_it_stops() {
    on_deep_stack(|| async {
        let (graph, template) = before().await;
        let old = graph.shown().await;
        let commits = commit_list(&graph.root, None).await.unwrap().len();
        for mode in [Mode::Merge, Mode::Overwrite] {
            let text = match mode {
                Mode::Overwrite => text() + &people(&["a"]) + &cities(&["x"]),
                _ => text(),
            };
            let chosen = LoadOptions {
                budget: 1_024,
                ..options(mode)
            };
            let faults = FaultStore::new();
            let whole = tempfile::tempdir().unwrap();
            let path = whole.path().join("g");
            template.lay_out(&path).unwrap();
            let root = seen(&path, &faults).await;
            faults.reset();
            load_into(&root, &text, &chosen).await.unwrap();
            let mutations = faults.counts().mutations();
            let new = export(&open(&path).await, None, &graph::view::At::Head).await;
            assert!(mutations > 10, "{mutations}");
            for at in 1..=mutations {
                for effect in [
                    Effect::Fail,
                    Effect::LoseAnswer,
                    Effect::StopBefore,
                    Effect::StopAfter,
                ] {
                    let folder = tempfile::tempdir().unwrap();
                    let path = folder.path().join("g");
                    template.lay_out(&path).unwrap();
                    let faults = FaultStore::new();
                    let root = seen(&path, &faults).await;
                    faults.reset();
                    faults.arm(Fault {
                        on: On::Mutation(at),
                        effect,
                    });
                    let result = load_into(&root, &text, &chosen).await;
                    let healthy = open(&path).await;
                    let shown = export(&healthy, None, &graph::view::At::Head).await;
                    let case = format!("{mode:?} {effect:?} at {at} of {mutations}: {result:?}");
                    assert!(shown == old || shown == new, "{case}\n{shown}");
                    if result.is_ok() {
                        assert_eq!(shown, new, "{case}");
                    }
                    // What is left does not stand in the way of anything.
                    let again = load_into(
                        &healthy,
                        &text,
                        &LoadOptions {
                            budget: 1_024,
                            ..options(mode)
                        },
                    )
                    .await
                    .unwrap();
                    assert!(again.graph_commit_id.is_some());
                    let shown = export(&healthy, None, &graph::view::At::Head).await;
                    assert_eq!(shown, new, "{case}");
                    let listed = commit_list(&healthy, None).await.unwrap().len();
                    assert!(listed == commits + 1 || listed == commits + 2, "{case}");
                    if at % 5 == 0 {
                        verified(&healthy).await;
                    }
                }
            }
        }
    })
    .unwrap();
}

#[test]
fn a_branch_is_there_or_not_wherever_its_creation_or_deletion_stops() {
    on_deep_stack(|| async {
        let (graph, _) = before().await;
        create(&graph.root, "old", None).await.unwrap();
        graph
            .load_branch("old", Mode::Append, &people(&["z"]))
            .await;
        let head = graph.state(Some("old")).await.head.graph_commit_id;
        let template = Template::of(&graph.path()).unwrap();
        // A fixed length, since a graph with branches holds its own path.
        let length = graph.path().as_os_str().len();
        for what in ["create", "delete"] {
            for effect in [
                Effect::Fail,
                Effect::LoseAnswer,
                Effect::StopBefore,
                Effect::StopAfter,
            ] {
                for at in 1.. {
                    let folder = tempfile::tempdir().unwrap();
                    let path = folder.path().join("g");
                    assert_eq!(path.as_os_str().len(), length);
                    template.lay_out(&path).unwrap();
                    let faults = FaultStore::new();
                    let root = seen(&path, &faults).await;
                    faults.reset();
                    faults.arm(Fault {
                        on: On::Mutation(at),
                        effect,
                    });
                    let failed = match what {
                        "create" => create(&root, "new", None)
                            .await
                            .err()
                            .map(|e| e.to_string()),
                        _ => delete(&root, "old").await.err().map(|e| e.to_string()),
                    };
                    if faults.injected() == 0 {
                        assert!(at > 2, "{what} makes {at} mutations");
                        assert_eq!(failed, None);
                        break;
                    }
                    let case = format!("{what} {effect:?} at {at}: {failed:?}");
                    let healthy = open(&path).await;
                    match what {
                        "create" => {
                            let exists = graph::refs::resolve_branch(&healthy, Some("new"))
                                .await
                                .is_ok();
                            assert!(failed.is_some() || exists, "{case}");
                            if !exists {
                                create(&healthy, "new", None).await.unwrap();
                            }
                            let text = people(&["n"]);
                            let options = LoadOptions {
                                branch: Some("new".into()),
                                ..options(Mode::Append)
                            };
                            load_into(&healthy, &text, &options).await.unwrap();
                        }
                        _ => {
                            let exists = graph::refs::resolve_branch(&healthy, Some("old"))
                                .await
                                .is_ok();
                            assert!(failed.is_some() || !exists, "{case}");
                            // Gone for good after one more call, whatever the first one did.
                            let again = delete(&healthy, "old").await;
                            assert!(again.is_ok() || !exists, "{case}: {again:?}");
                            assert!(
                                graph::refs::resolve_branch(&healthy, Some("old"))
                                    .await
                                    .is_err()
                            );
                            let at = graph::view::At::Commit(head.clone());
                            let found = graph::view::snapshot(&healthy, None, &at).await.unwrap();
                            assert_eq!(found.head.graph_commit_id, head, "{case}");
                        }
                    }
                    // A tree whose ref never came is named, and is the only thing left.
                    let report = verify::verify(&healthy, &VerifyOptions::default())
                        .await
                        .unwrap();
                    for finding in &report.findings {
                        assert_eq!(finding.code, Code::TreeUnclaimed, "{case}: {finding:#?}");
                        assert!(what == "create" && failed.is_some(), "{case}: {finding:#?}");
                    }
                }
            }
        }
    })
    .unwrap();
}
