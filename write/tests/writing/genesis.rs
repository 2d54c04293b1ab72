//! A graph is born once, in an empty root.

use graph::history::schema_archive::read_commit_contract;
use graph::model::TableState;
use graph::store::RootOptions;
use graph::ulids::is_canonical;

use crate::support::*;

#[test]
fn the_first_version_is_what_the_format_says() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let state = graph.state(None).await;
        assert_eq!((state.version, state.head.generation), (1, 0));
        assert!(is_canonical(&state.head.graph_commit_id));
        assert_eq!(state.head.parent_commit_id, None);
        assert!(state.buffer.is_empty() && state.replaced.is_empty());
        for table in &state.tables {
            let TableState::Pinned(pin) = &table.state else {
                panic!("{table:?}")
            };
            assert_eq!(
                (pin.table_version, pin.row_count, pin.manifest_version),
                (1, 0, 1)
            );
            assert_eq!(pin.metadata.last_linear_version, Some(1));
            assert_eq!(pin.metadata.staged_version, None);
            let path = format!("{}/{}/", graph.path().display(), table.table_path);
            assert!(pin.metadata.manifest_path.starts_with(&path), "{pin:?}");
            let size = std::fs::metadata(&pin.metadata.manifest_path)
                .unwrap()
                .len();
            assert_eq!(pin.metadata.manifest_size, Some(size));
        }
        let contract = read_commit_contract(&graph.root, &state.head)
            .await
            .unwrap();
        assert_eq!(contract.unwrap().source, SCHEMA);
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn a_root_that_holds_anything_of_a_graph_is_refused() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let again = write::genesis::init(&graph.root, SCHEMA, true).await;
        let text = again.unwrap_err().to_string();
        assert!(text.contains("already holds a graph"), "{text}");

        let folder = tempfile::tempdir().unwrap();
        let root = open(folder.path()).await;
        std::fs::write(folder.path().join("_schema.pg"), "").unwrap();
        let text = write::genesis::init(&root, SCHEMA, false)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("_schema.pg") && text.contains("--force"),
            "{text}"
        );
        for data in [
            "nodes/x/data/1.lance",
            "__history/blocks/x",
            "edges/y",
            "__manifest/data/.tmpx",
        ] {
            let path = folder.path().join(data);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "x").unwrap();
            let text = write::genesis::init(&root, SCHEMA, true)
                .await
                .unwrap_err()
                .to_string();
            assert!(
                text.contains(data) && text.contains("interrupted"),
                "{text}"
            );
            std::fs::remove_file(&path).unwrap();
        }
        // Empty folders and leftovers hold no data.
        write::genesis::init(&root, SCHEMA, true).await.unwrap();
        verified(&root).await;
    })
    .unwrap();
}

#[test]
fn a_bad_schema_writes_nothing() {
    on_deep_stack(|| async {
        let folder = tempfile::tempdir().unwrap();
        let root = open(folder.path()).await;
        for schema in [
            "node {",
            "edge E: A -> B",
            "node A { _x: String }",
            "node A { a: I32 @unique\n @unique(b) }",
        ] {
            let refused = write::genesis::init(&root, schema, false).await;
            assert!(refused.is_err(), "{schema}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        // Nothing declared is a graph too.
        write::genesis::init(&root, "", false).await.unwrap();
        verified(&root).await;
    })
    .unwrap();
}

#[test]
fn two_inits_of_one_root_make_one_graph() {
    on_deep_stack(|| async {
        for _ in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().display().to_string();
            let init = || async {
                let root = graph::store::Root::open(&path, RootOptions::default())
                    .await
                    .unwrap();
                write::genesis::init(&root, SCHEMA, false).await
            };
            let (a, b) = tokio::join!(init(), init());
            assert!(
                u8::from(a.is_ok()) + u8::from(b.is_ok()) <= 1,
                "{a:?} {b:?}"
            );
            if let Ok(born) = a.or(b) {
                let root = open(folder.path()).await;
                let (_, state) = graph::manifest::scan::read_branch(
                    &root,
                    None,
                    graph::manifest::scan::ReadMode::State,
                )
                .await
                .unwrap();
                assert_eq!(state.head, born.state.head);
                verified(&root).await;
            }
        }
    })
    .unwrap();
}
