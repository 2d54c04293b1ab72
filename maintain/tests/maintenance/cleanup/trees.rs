//! Native trees (behaviours 24 and 25).

use graph::refs::{RetireStep, archive_key, read_ref, ref_key, retire};
use graph::view::At;
use maintain::Stop;
use maintain::cleanup::execute;
use maintain::cleanup::reason::Reason;
use maintain::cleanup::report::{Report, TreeRow};

use super::support::*;

fn tree<'a>(report: &'a Report, name: &str) -> &'a TreeRow {
    report
        .native_trees
        .iter()
        .find(|t| t.tree == name)
        .unwrap_or_else(|| panic!("no tree {name}: {:#?}", report.native_trees))
}

#[test]
fn a_retired_branch_goes_when_nothing_depends_on_it() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let parent = graph.branch("p", None).await;
        graph.person(Some("p"), "pia", 1).await;
        let child = graph.branch("c", Some("p")).await;
        graph.person(Some("c"), "cia", 1).await;
        let lone = graph.branch("l", None).await;
        let commit = graph.person(Some("l"), "lia", 1).await;
        graph.delete_branch("p").await;
        graph.delete_branch("l").await;
        let rows = graph.rows(Some("c"), &At::Head).await.unwrap();

        let young = graph.preview(older("1h")).await;
        assert_eq!(tree(&young, &lone).reason, Some(Reason::Age));
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert!(tree(&report, &lone).removed);
        assert!(!tree(&report, &parent).removed && !tree(&report, &child).removed);
        assert!(graph.keys(&format!("__manifest/tree/{lone}")).is_empty());
        assert!(!graph.keys(&format!("__manifest/tree/{parent}")).is_empty());
        assert_eq!(graph.rows(Some("c"), &At::Head).await.unwrap(), rows);
        // Its commits are still there.
        let root = graph.root().await;
        graph::view::snapshot(&root, None, &At::Commit(commit))
            .await
            .unwrap();
        idle(&graph.clean(keep(1)).await);
        graph.delete_branch("c").await;
        let report = graph.clean(keep(1)).await;
        assert!(tree(&report, &child).removed && tree(&report, &parent).removed);
        assert!(graph.keys("__manifest/tree").is_empty());
        idle(&graph.clean(keep(1)).await);
    });
}

#[test]
fn an_interrupted_retirement_is_finished() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let root = graph.root().await;
        let mut natives = Vec::new();
        let branches = [graph.branch("a", None).await, graph.branch("b", None).await];
        for (native, stop) in branches
            .into_iter()
            .zip([RetireStep::Archive, RetireStep::Remove])
        {
            let identifier = read_ref(&root, &native).await.unwrap().unwrap().identifier;
            let stopped = retire(&root, &native, &identifier, |step| async move {
                match step == stop {
                    true => Err(graph::Error::refused("stopped")),
                    false => Ok(()),
                }
            })
            .await;
            assert!(stopped.is_err());
            natives.push(native);
        }
        // A tag keeps one of them as it is.
        graph.tag("__manifest", "t", Some(&natives[1]), 2);
        let before = graph.digest();
        let preview = graph.preview(older("1h")).await;
        assert_eq!(graph.digest(), before);
        assert_eq!(preview.retirements, natives[..1]);
        let report = graph.clean(older("1h")).await;
        fine(&report);
        assert_eq!(report.retirements, natives[..1]);
        let has = |key: String| graph.path().join(key).exists();
        assert!(!has(ref_key(&natives[0])) && has(archive_key(&natives[0])));
        assert!(has(ref_key(&natives[1])));
        assert_eq!(tree(&report, &natives[0]).reason, Some(Reason::Age));
        assert_eq!(tree(&report, &natives[1]).reason, Some(Reason::Tag));
        assert!(
            report.notes.iter().any(|n| n.contains("'t'")),
            "{:?}",
            report.notes
        );
        std::fs::remove_file(graph.path().join("__manifest/_refs/tags/t.json")).unwrap();
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert_eq!(report.retirements, natives[1..]);
        assert!(graph.keys("__manifest/tree").is_empty());
        assert!(graph.keys("__manifest/_refs/branches").is_empty());
        idle(&graph.clean(keep(1)).await);
    });
}

#[test]
fn leftovers_of_a_creation_go_after_seven_days() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let native = graph.branch("b", None).await;
        let published = graph.branch("lost", None).await;
        graph.person(Some("lost"), "bob", 1).await;
        for name in [&native, &published] {
            std::fs::remove_file(graph.path().join(ref_key(name))).unwrap();
        }
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert_eq!(tree(&report, &native).reason, Some(Reason::Recent));
        assert_eq!(tree(&report, &published).reason, Some(Reason::Undecidable));
        graph.age_all("__manifest/tree", 8);
        let report = graph.clean(keep(1)).await;
        assert!(tree(&report, &native).removed);
        assert!(!tree(&report, &published).removed);
        assert!(graph.keys(&format!("__manifest/tree/{native}")).is_empty());
        assert!(
            !graph
                .keys(&format!("__manifest/tree/{published}"))
                .is_empty()
        );
        idle(&graph.clean(keep(1)).await);
    });
}

#[test]
fn a_retired_tree_whose_commits_nothing_archives_stays() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let native = graph.branch("b", None).await;
        graph.person(Some("b"), "bob", 1).await;
        let history = graph.keys("__history");
        graph.delete_branch("b").await;
        for key in graph.keys("__history") {
            if !history.contains(&key) && !key.contains("schemas") {
                std::fs::remove_file(graph.path().join(key)).unwrap();
            }
        }
        let report = graph.clean(keep(1)).await;
        fine(&report);
        let kept = tree(&report, &native);
        assert_eq!(kept.reason, Some(Reason::Undecidable));
        assert!(
            kept.why.as_deref().unwrap().contains("nothing else holds"),
            "{kept:?}"
        );
    });
}

#[test]
fn what_belongs_to_no_tree_keeps_all_of_them() {
    run(|| async {
        let graph = Graph::new().await;
        graph.branch("b", None).await;
        graph.delete_branch("b").await;
        graph.write("__manifest/tree/stray.txt", b"x");
        let report = graph.clean(keep(1)).await;
        idle(&report);
        assert_eq!(report.undecidable_trees.len(), 1);
    });
}

#[test]
fn a_tree_that_a_merge_base_comes_from_stays() {
    run(|| async {
        for archived in [true, false] {
            let graph = Graph::new().await;
            graph.person(None, "ada", 1).await;
            graph.branch("b", None).await;
            let native = graph.branch("x", None).await;
            let base = graph.person(Some("x"), "xen", 1).await;
            let history = graph.keys("__history");
            for into in [None, Some("b")] {
                graph.merge("x", into).await;
                graph.person(into, "eve", 1).await;
            }
            let rows = graph.rows(Some("x"), &At::Head).await.unwrap();
            graph.delete_branch("x").await;
            if !archived {
                // As a deletion that archives nothing leaves it: only the tree holds its commits.
                for key in graph.keys("__history") {
                    if !history.contains(&key) && !key.contains("schemas") {
                        std::fs::remove_file(graph.path().join(key)).unwrap();
                    }
                }
            }
            let report = graph.clean(keep(1)).await;
            fine(&report);
            assert_eq!(tree(&report, &native).reason, Some(Reason::MergeBase));
            let kept = &row(&report, "node:Person").kept;
            assert!(
                kept.iter().any(|k| k.reason == Reason::MergeBase),
                "{kept:?}"
            );
            if archived {
                let found = graph.rows(None, &At::Commit(base)).await;
                assert_eq!(found.as_ref(), Ok(&rows));
            }
            idle(&graph.clean(keep(1)).await);
        }
    });
}

#[test]
fn a_tree_that_changed_since_the_plan_stays() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let native = graph.branch("b", None).await;
        graph.delete_branch("b").await;
        let root = graph.root().await;
        let place = format!("__manifest/tree/{native}");
        for change in ["object", "tag"] {
            let planned = graph.plan(keep(1)).await.unwrap();
            assert!(planned.trees.iter().any(|t| t.stay.is_none()));
            match change {
                "object" => graph.write(&format!("{place}/data/new.lance"), b"x"),
                _ => graph.tag("__manifest", "t", Some(&native), 2),
            }
            let before = graph.digest();
            let ended = execute(&root, &planned, 4, &Stop::default()).await;
            let text = match ended {
                Ok(done) => done.trees[&place].clone().unwrap_err(),
                Err(e) => e.to_string(),
            };
            assert!(text.contains("run the command again"), "{change}: {text}");
            assert_eq!(graph.digest(), before, "{change}");
        }
    });
}
