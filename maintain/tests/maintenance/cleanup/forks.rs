//! Trees of tables: forks that releases before stamp 11 made (behaviour 24), and what they borrow.

use graph::view::{At, snapshot};
use lance::Dataset;
use maintain::cleanup::reason::Reason;

use super::support::*;

const PERSON: &str = "node:Person";
const U: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA";

/// A fork without a version: a ref object and one file.
fn fork(graph: &Graph, table: &str, name: &str, parent: Option<&str>, with_ref: bool) {
    graph.write(&format!("{table}/tree/{name}/data/x.lance"), b"0123456789");
    if with_ref {
        let parent = parent.map_or("null".into(), |p| format!("\"{p}\""));
        let uuid = graph::digest::sha256_hex(name.as_bytes())[..32].to_string();
        let json = format!(
            "{{\"parentBranch\":{parent},\"identifier\":{{\"version_mapping\":[[1,\"{uuid}\"]]}},\"parentVersion\":1,\
             \"createAt\":1,\"manifestSize\":1,\"metadata\":{{}}}}"
        );
        let file = name.replace('/', "%2F");
        graph.write(
            &format!("{table}/_refs/branches/{file}.json"),
            json.as_bytes(),
        );
    }
}

#[test]
fn unused_forks_go_and_named_ones_stay() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let table = graph.table(PERSON).await;
        let native = graph.branch("b", None).await;
        let live = native.rsplit_once('.').unwrap().1;
        let named = |owner: &str, n: u32| format!("fork.{owner}.m{n}.{U}{n}");
        let gone = format!("{U}9");
        let forks = [
            (named(live, 1), None, true, Some(Reason::Head)),
            (named(&gone, 2), None, true, None),
            (named("legacy", 3), None, true, Some(Reason::Undecidable)),
            (named(&gone, 4), None, true, Some(Reason::Borrowed)),
            (
                named(live, 5),
                Some(named(&gone, 4)),
                true,
                Some(Reason::Head),
            ),
            ("old/survey".to_string(), None, true, None),
            ("old/leaf/deep".to_string(), None, false, None),
            ("tagged".to_string(), None, true, Some(Reason::Tag)),
            ("main".to_string(), None, false, Some(Reason::Undecidable)),
        ];
        for (name, parent, with_ref, _) in &forks {
            fork(&graph, &table, name, parent.as_deref(), *with_ref);
        }
        graph.tag(&table, "t", Some("tagged"), 1);
        let young = graph.preview(older("52w")).await;
        assert!(young.native_trees.iter().all(|t| !t.removed), "{young:#?}");
        graph.age_all(&table, 400);
        let aged = graph.preview(older("52w")).await;
        let report = graph.clean(keep(1)).await;
        fine(&report);
        for (name, _, with_ref, stays) in &forks {
            for shown in [&aged, &report] {
                let row = shown.native_trees.iter().find(|t| &t.tree == name).unwrap();
                assert_eq!(
                    (row.reason, row.removed),
                    (*stays, stays.is_none()),
                    "{row:?}"
                );
            }
            let file = graph
                .path()
                .join(&table)
                .join("tree")
                .join(name)
                .join("data/x.lance");
            assert_eq!(file.exists(), stays.is_some(), "{name}");
            let object = format!("{table}/_refs/branches/{}.json", name.replace('/', "%2F"));
            let there = graph.path().join(object).exists();
            assert_eq!(there, stays.is_some() && *with_ref, "{name}");
        }
        idle(&graph.clean(keep(1)).await);
        // With an error in any table no tree goes.
        fork(&graph, &table, "another", None, true);
        graph.tag(&table, "lost", None, 77);
        let report = graph.clean(keep(1)).await;
        let row = report
            .native_trees
            .iter()
            .find(|t| t.tree == "another")
            .unwrap();
        assert_eq!((row.reason, row.removed), (Some(Reason::Error), false));
    });
}

#[test]
fn files_that_a_fork_reads_through_a_base_path_stay() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.people(None, &[&format!("p{n}")]).await;
        }
        let table = graph.table(PERSON).await;
        let native = graph.branch("b", None).await;
        let live = native.rsplit_once('.').unwrap().1;
        let root = graph.root().await;
        let shown = snapshot(&root, None, &At::Version(2)).await.unwrap();
        let person = shown.tables.iter().find(|t| t.table_key == PERSON).unwrap();
        let staged = person.state.pin().unwrap().metadata.staged_version.unwrap();
        let path = graph.path().join(&table);
        // The fork starts at a version that keep 1 does not retain.
        let mut main = Dataset::open(path.to_str().unwrap()).await.unwrap();
        let name = format!("fork.{live}.m2.{U}1");
        main.create_branch(&name, (None, Some(staged)), None)
            .await
            .unwrap();
        let read = async || {
            // The clone keeps the number of the version it was cut from.
            let fork = root
                .open_dataset(&table, Some(&name), Some(staged))
                .await
                .unwrap();
            fork.scan().try_into_batch().await.unwrap().num_rows()
        };
        assert_eq!(read().await, 1);
        let report = graph.clean(keep(1)).await;
        fine(&report);
        let row = row(&report, PERSON);
        assert_eq!((row.manifests_removed, row.files_removed), (2, 0));
        assert!(
            row.kept
                .iter()
                .any(|k| k.reason == Reason::Borrowed && k.files > 0),
            "{row:?}"
        );
        assert_eq!(read().await, 1);
        idle(&graph.clean(keep(1)).await);
        // Once its branch is gone the fork goes, and then what it borrowed.
        graph.delete_branch("b").await;
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert!(
            report
                .native_trees
                .iter()
                .any(|t| t.tree == name && t.removed)
        );
        graph.age_all(&table, 8);
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert!(report.totals().1 > 0);
        idle(&graph.clean(keep(1)).await);
    });
}
