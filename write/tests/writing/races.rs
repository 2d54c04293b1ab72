//! Writers at once: no lost update, no torn state, typed conflicts only.

use graph::view::{At, commit_list};
use write::branches::create;
use write::load::{LoadOptions, Mode};

use crate::support::*;

/// Each writer has a root of its own; the gates tell roots apart by URI, so a `file://` spelling is another one.
async fn writer(
    path: std::path::PathBuf,
    name: String,
    branch: Option<String>,
    loads: usize,
) -> Vec<String> {
    let root = open(&path).await;
    let mut ids = Vec::new();
    for n in 0..loads {
        let options = LoadOptions {
            branch: branch.clone(),
            budget: 2_048,
            ..options(if n % 2 == 0 {
                Mode::Append
            } else {
                Mode::Merge
            })
        };
        let text = people(&[&format!("{name}{n}")]) + &cities(&[&format!("{name}{n}")]);
        let loaded = load_into(&root, &text, &options).await.unwrap();
        ids.push(loaded.graph_commit_id.unwrap());
    }
    ids
}

#[test]
fn loads_into_one_branch_all_land() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let (loads, writers) = (6, ["a", "b", "c"]);
        let tasks: Vec<_> = writers
            .into_iter()
            .map(|name| tokio::spawn(writer(graph.path(), name.into(), None, loads)))
            .collect();
        let mut ids = Vec::new();
        for task in tasks {
            ids.extend(task.await.unwrap());
        }
        let listed: Vec<String> = commit_list(&graph.root, None)
            .await
            .unwrap()
            .into_iter()
            .map(|c| c.graph_commit_id)
            .collect();
        assert_eq!(listed.len(), 1 + loads * writers.len());
        assert!(ids.iter().all(|id| listed.contains(id)));
        let shown = graph.export(None, &At::Head).await;
        assert_eq!(shown.lines().count(), 2 * loads * writers.len());
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn loads_into_two_branches_do_not_meet() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        create(&graph.root, "dev", None).await.unwrap();
        let a = tokio::spawn(writer(graph.path(), "a".into(), None, 6));
        let b = tokio::spawn(writer(graph.path(), "b".into(), Some("dev".into()), 6));
        a.await.unwrap();
        b.await.unwrap();
        for branch in [None, Some("dev")] {
            let shown = graph.export(branch, &At::Head).await;
            let own = if branch.is_some() { "\"b" } else { "\"a" };
            assert_eq!(shown.lines().filter(|l| l.contains(own)).count(), 12);
            assert_eq!(shown.lines().count(), 12, "{shown}");
        }
        graph.verify().await;
    })
    .unwrap();
}
