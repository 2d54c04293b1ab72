//! Branches: created, listed, deleted, and what stays of them.

use graph::refs::{self, RETIRED_KEY};
use graph::store::RootOptions;
use graph::view::{At, commit_list, snapshot};
use write::branches::{create, delete, finish_retirements, list};
use write::load::{LoadOptions, Mode};

use crate::support::*;

#[test]
fn a_branch_starts_as_its_source_and_goes_its_own_way() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        graph.load(Mode::Append, &people(&["a"])).await;
        let created = create(&graph.root, "dev", None).await.unwrap();
        assert_eq!((created.version, created.parent.as_deref()), (2, None));
        let fork = graph.state(Some("dev")).await;
        assert_eq!(fork.head.graph_commit_id, created.head);
        assert_eq!(fork.exact_head(), None);
        graph
            .load_branch("dev", Mode::Append, &people(&["b"]))
            .await;
        graph.load(Mode::Append, &people(&["c"])).await;
        let deep = create(&graph.root, "deep", Some("dev")).await.unwrap();
        assert_eq!(deep.parent.as_deref(), Some(created.native.as_str()));
        graph
            .load_branch("deep", Mode::Merge, &people(&["d"]))
            .await;
        let has = |text: &str, code: &str| text.contains(&format!("\"id\":\"{code}\""));
        for (branch, expected) in [(None, "ac"), (Some("dev"), "ab"), (Some("deep"), "abd")] {
            let shown = graph.export(branch, &At::Head).await;
            let found: String = ["a", "b", "c", "d"]
                .into_iter()
                .filter(|code| has(&shown, code))
                .collect();
            assert_eq!(found, expected, "{branch:?}");
        }
        let names: Vec<(String, bool)> = list(&graph.root)
            .await
            .unwrap()
            .into_iter()
            .map(|b| (b.branch, b.published))
            .collect();
        assert_eq!(
            names,
            [("main", true), ("deep", true), ("dev", true)].map(|(n, p)| (n.to_string(), p))
        );
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn names_that_overlap_are_refused() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        create(&graph.root, "team/a", None).await.unwrap();
        for (name, told) in [
            ("team/a", "exists already"),
            ("team", "path prefix"),
            ("team/a/b", "path prefix"),
            ("main", "reserved"),
            ("a b", "not allowed"),
            ("x.01ARZ3NDEKTSV4RRFFQ69G5FAV", "ULID"),
        ] {
            let text = create(&graph.root, name, None)
                .await
                .unwrap_err()
                .to_string();
            assert!(text.contains(told), "{name}: {text}");
        }
        let text = create(&graph.root, "b", Some("gone"))
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains("no branch 'gone'"), "{text}");
        create(&graph.root, "team/b", None).await.unwrap();
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn what_a_deleted_branch_held_stays_readable_and_its_name_is_free() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        graph.load(Mode::Append, &people(&["a"])).await;
        let first = create(&graph.root, "dev", None).await.unwrap();
        let mut ids = Vec::new();
        for code in ["b", "c", "d"] {
            let loaded = graph
                .load_branch("dev", Mode::Append, &people(&[code]))
                .await;
            ids.push(loaded.graph_commit_id.unwrap());
        }
        let shown = graph.export(Some("dev"), &At::Head).await;
        let deleted = delete(&graph.root, "dev").await.unwrap();
        assert_eq!(deleted.native, first.native);
        assert_eq!(deleted.head.as_ref(), ids.last());
        assert_eq!(list(&graph.root).await.unwrap().len(), 1);
        let again = delete(&graph.root, "dev").await.unwrap_err();
        assert!(again.to_string().contains("no branch 'dev'"), "{again}");
        let second = create(&graph.root, "dev", None).await.unwrap();
        assert_ne!(second.native, first.native);
        graph
            .load_branch("dev", Mode::Append, &people(&["z"]))
            .await;
        for id in &ids {
            let at = At::Commit(id.clone());
            let found = snapshot(&graph.root, None, &at).await.unwrap();
            assert_eq!(found.head.graph_commit_id, *id);
        }
        let last = At::Commit(ids.last().unwrap().clone());
        assert_eq!(graph.export(None, &last).await, shown);
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn main_and_tagged_branches_stay() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        assert!(delete(&graph.root, "main").await.is_err());
        let dev = create(&graph.root, "dev", None).await.unwrap();
        let tag = graph.path().join("__manifest/_refs/tags/v1.json");
        std::fs::create_dir_all(tag.parent().unwrap()).unwrap();
        let json = format!(
            "{{\"branch\":\"{}\",\"version\":1,\"manifestSize\":1}}",
            dev.native
        );
        std::fs::write(&tag, json).unwrap();
        let text = delete(&graph.root, "dev").await.unwrap_err().to_string();
        assert!(text.contains("v1"), "{text}");
        assert!(graph.state(Some("dev")).await.version == 1);
        std::fs::remove_file(tag).unwrap();
        delete(&graph.root, "dev").await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_deletion_that_stopped_after_its_mark_is_finished() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let dev = create(&graph.root, "dev", None).await.unwrap();
        graph
            .load_branch("dev", Mode::Append, &people(&["a"]))
            .await;
        let key = graph.path().join(refs::ref_key(&dev.native));
        let mut contents = refs::read_ref(&graph.root, &dev.native)
            .await
            .unwrap()
            .unwrap();
        let identifier = serde_json::to_string(&contents.identifier).unwrap();
        contents.metadata.insert(
            RETIRED_KEY.into(),
            format!(
                "{{\"version\":1,\"native_branch\":\"{}\",\"identifier\":{identifier}}}",
                dev.native
            ),
        );
        std::fs::write(&key, serde_json::to_vec_pretty(&contents).unwrap()).unwrap();
        assert_eq!(list(&graph.root).await.unwrap().len(), 1);
        let finished = delete(&graph.root, "dev").await.unwrap();
        assert_eq!((finished.native, finished.head), (dev.native.clone(), None));
        assert!(!key.exists());
        assert!(graph.path().join(refs::archive_key(&dev.native)).exists());
        assert!(finish_retirements(&graph.root).await.unwrap().is_empty());
    })
    .unwrap();
}

#[test]
fn two_creators_of_one_name_leave_at_most_one_branch() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        for round in 0..5 {
            let name = format!("b{round}");
            let path = graph.path().display().to_string();
            let make = || async {
                // A root of its own has gates of its own only by URI, so these two meet at the gate; the race
                // between processes is tested on the binary.
                let root = graph::store::Root::open(&path, RootOptions::default())
                    .await
                    .unwrap();
                create(&root, &name, None).await
            };
            let (a, b) = tokio::join!(make(), make());
            assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1, "{a:?} {b:?}");
            assert!(graph.state(Some(&name)).await.version == 1);
        }
    })
    .unwrap();
}

#[test]
fn lineages_of_branches_join_at_the_fork() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let small = |branch: Option<&str>| LoadOptions {
            branch: branch.map(str::to_string),
            budget: 1_024,
            ..options(Mode::Append)
        };
        for n in 0..4 {
            let text = people(&[&format!("m{n}")]);
            graph.try_load(&text, &small(None)).await.unwrap();
        }
        create(&graph.root, "dev", None).await.unwrap();
        for n in 0..6 {
            for branch in [None, Some("dev")] {
                let text = people(&[&format!("{}{n}", branch.unwrap_or("x"))]);
                graph.try_load(&text, &small(branch)).await.unwrap();
            }
        }
        let ids = |commits: Vec<graph::model::Commit>| -> Vec<String> {
            commits.into_iter().map(|c| c.graph_commit_id).collect()
        };
        let main = ids(commit_list(&graph.root, None).await.unwrap());
        let dev = ids(commit_list(&graph.root, Some("dev")).await.unwrap());
        assert_eq!((main.len(), dev.len()), (11, 11));
        assert_eq!(main[6..], dev[6..]);
        assert!(main[..6].iter().all(|id| !dev.contains(id)));
        graph.verify().await;
    })
    .unwrap();
}
