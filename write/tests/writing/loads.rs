//! Append and merge.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graph::model::TableState;
use graph::table::transaction_uuid;
use write::WriteError;
use write::load::{KEYED_ROWS, LoadOptions, Mode};

use crate::support::*;

#[test]
fn append_adds_and_never_replaces() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let loaded = graph
            .load(Mode::Append, &(people(&["a", "b"]) + &cities(&["x"])))
            .await;
        assert_eq!(loaded.manifest_version, 2);
        let counts: Vec<(&str, u64, u64)> = loaded
            .tables
            .iter()
            .map(|t| (t.table_key.as_str(), t.rows_loaded, t.row_count))
            .collect();
        assert_eq!(counts, [("node:City", 1, 1), ("node:Person", 2, 2)]);
        let before = graph.shown().await;
        for text in [
            people(&["c", "b"]),
            people(&["c", "d", "c"]),
            cities(&["y", "x"]),
        ] {
            match graph.refused(Mode::Append, &text).await {
                WriteError::KeyConflict { key, line, .. } => {
                    let last = text.lines().count() as u64;
                    assert!(["b", "c", "x"].contains(&key.as_str()));
                    assert_eq!(line, Some(last));
                }
                other => panic!("{other}"),
            }
        }
        assert_eq!(graph.shown().await, before);
        assert_eq!(graph.state(None).await.version, 2);
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn merge_replaces_whole_rows_by_id() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let rows = r#"{"type":"Person","data":{"code":"a","age":1,"email":"a@x"}}
            {"type":"Person","data":{"code":"b","age":2}}"#;
        graph.load(Mode::Merge, rows).await;
        let loaded = graph
            .load(
                Mode::Merge,
                r#"{"type":"Person","data":{"code":"c","age":3}}
                   {"type":"Person","data":{"code":"a","age":9}}
                   {"type":"Person","data":{"code":"a","age":10}}"#,
            )
            .await;
        let table = &loaded.tables[0];
        assert_eq!(
            (table.rows_loaded, table.rows_replaced, table.row_count),
            (2, 1, 3)
        );
        assert_eq!(
            graph.shown().await,
            "{\"type\":\"Person\",\"id\":\"a\",\"data\":{\"age\":10,\"code\":\"a\"}}\n\
             {\"type\":\"Person\",\"id\":\"b\",\"data\":{\"age\":2,\"code\":\"b\"}}\n\
             {\"type\":\"Person\",\"id\":\"c\",\"data\":{\"age\":3,\"code\":\"c\"}}\n"
        );
        // The email of the replaced row is free again.
        graph
            .load(
                Mode::Merge,
                r#"{"type":"Person","data":{"code":"d","email":"a@x"}}"#,
            )
            .await;
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn a_pin_says_how_it_was_staged() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        graph.load(Mode::Append, &people(&["a"])).await;
        graph.load(Mode::Merge, &people(&["a"])).await;
        let state = graph.state(None).await;
        let table = state
            .tables
            .iter()
            .find(|t| t.table_key == "node:Person")
            .unwrap();
        let TableState::Pinned(pin) = &table.state else {
            panic!("{table:?}")
        };
        assert_eq!(pin.table_version, 3);
        assert_eq!(pin.manifest_version, 3);
        assert_eq!(pin.metadata.last_linear_version, Some(1));
        assert!(pin.metadata.staged_version.unwrap() > 1 << 63);
        let opened = graph::table::open_pin(&graph.root, table, pin)
            .await
            .unwrap();
        assert_eq!(
            transaction_uuid(&opened.dataset),
            pin.metadata.transaction_uuid
        );
        let transaction = opened.dataset.read_transaction().await.unwrap().unwrap();
        let properties = transaction.transaction_properties.unwrap();
        assert_eq!(
            properties["omnigraph.staged_against_branch_incarnation"],
            "{\"version_mapping\":[]}"
        );
        assert_eq!(
            properties["omnigraph.staged_against_graph_head"],
            state.buffer.last().unwrap().graph_commit_id
        );
        // The linear history of the table did not move.
        let linear = graph.root.linear_versions(&table.table_path, None).await;
        assert_eq!(linear.unwrap(), [1]);
    })
    .unwrap();
}

#[test]
fn edges_need_their_nodes() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let both = lives(&[("e", "a", "x")]) + &people(&["a", "c"]) + &cities(&["x"]);
        graph.load(Mode::Append, &both).await;
        graph.load(Mode::Append, &lives(&[("f", "c", "x")])).await;
        let text = graph
            .refused(Mode::Append, &lives(&[("g", "c", "y"), ("h", "b", "x")]))
            .await
            .to_string();
        assert!(
            text.contains("line 1: edge:Lives names node:City \"y\" as \"to\""),
            "{text}"
        );
        assert!(
            text.contains("line 2: edge:Lives names node:Person \"b\" as \"from\""),
            "{text}"
        );
        // A city is no person.
        let knows = r#"{"edge":"knows","from":"a","to":"x"}"#;
        let text = graph.refused(Mode::Append, knows).await.to_string();
        assert!(text.contains("node:Person \"x\""), "{text}");
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn cardinality_counts_what_stays_and_what_comes() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let nodes = people(&["a", "b"]) + &cities(&["x"]);
        graph
            .load(
                Mode::Append,
                &(nodes + &lives(&[("1", "a", "x"), ("2", "a", "x")])),
            )
            .await;
        let third = lives(&[("3", "a", "x")]);
        let text = graph.refused(Mode::Append, &third).await.to_string();
        assert!(
            text.contains("@card(0..2)") && text.contains("\"a\" would have 3"),
            "{text}"
        );
        // Moving one away makes room.
        graph
            .load(Mode::Merge, &(lives(&[("2", "b", "x")]) + &third))
            .await;
        let text = graph
            .refused(Mode::Merge, &lives(&[("2", "a", "x")]))
            .await
            .to_string();
        assert!(text.contains("would have 3"), "{text}");
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn unique_texts_are_compared_with_stored_ones() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let person = |code: &str, email: &str| {
            format!("{{\"type\":\"Person\",\"data\":{{\"code\":\"{code}\",\"email\":{email}}}}}\n")
        };
        graph
            .load(Mode::Append, &(person("a", "\"m\"") + &person("b", "null")))
            .await;
        graph.load(Mode::Append, &person("c", "null")).await;
        for text in [
            person("d", "\"n\"") + &person("e", "\"m\""),
            person("d", "\"n\"") + &person("e", "\"n\""),
            person("b", "\"m\"") + &person("f", "null"),
        ] {
            for mode in [Mode::Append, Mode::Merge] {
                let refused = graph.refused(mode, &text).await;
                let told = refused.to_string();
                let conflict = matches!(refused, WriteError::KeyConflict { .. });
                assert!(conflict || told.contains("unique"), "{mode:?}: {told}");
            }
        }
        // Its own row does not stand in the way.
        graph.load(Mode::Merge, &person("a", "\"m\"")).await;
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn limits_are_told_before_any_effect() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let many: String = (0..KEYED_ROWS)
            .map(|n| format!("{{\"type\":\"City\",\"data\":{{\"name\":\"{n}\"}}}}\n"))
            .collect();
        let one = "{\"type\":\"City\",\"data\":{\"name\":\"more\"}}\n";
        let files = || fixtures::tree::tree_digest(graph.path()).unwrap();
        let before = files();
        for mode in [Mode::Append, Mode::Merge] {
            match graph.refused(mode, &(many.clone() + one)).await {
                WriteError::ResourceLimitExceeded { limit, actual, .. } => {
                    assert_eq!((limit, actual), (KEYED_ROWS, KEYED_ROWS + 1));
                }
                other => panic!("{other}"),
            }
        }
        let wide = format!(
            "{{\"type\":\"City\",\"data\":{{\"name\":\"{}\"}}}}\n",
            "w".repeat(20 << 20)
        );
        let text = graph
            .refused(Mode::Append, &(wide.clone() + &wide))
            .await
            .to_string();
        assert!(text.contains("33554432"), "{text}");
        assert_eq!(files(), before);
        assert_eq!(
            graph.load(Mode::Append, &many).await.tables[0].row_count,
            KEYED_ROWS
        );
        // Overwrite has no such bound.
        let loaded = graph.load(Mode::Overwrite, &(many + one)).await;
        assert_eq!(loaded.tables[0].row_count, KEYED_ROWS + 1);
    })
    .unwrap();
}

#[test]
fn an_empty_input_writes_nothing() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        for mode in [Mode::Append, Mode::Merge, Mode::Overwrite] {
            let loaded = graph.load(mode, " \n").await;
            assert_eq!((loaded.graph_commit_id, loaded.manifest_version), (None, 1));
        }
    })
    .unwrap();
}

#[test]
fn the_actor_and_the_branch_stand_in_the_commit() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        write::branches::create(&graph.root, "dev/a", None)
            .await
            .unwrap();
        let options = LoadOptions {
            branch: Some("dev/a".into()),
            actor: Some("ada".into()),
            ..options(Mode::Append)
        };
        let loaded = graph.try_load(&people(&["a"]), &options).await.unwrap();
        let state = graph.state(Some("dev/a")).await;
        assert_eq!(state.head.actor_id.as_deref(), Some("ada"));
        assert_eq!(state.head.graph_branch.as_deref(), Some("dev/a"));
        assert_eq!(state.head.native_branch, state.native);
        assert_eq!(loaded.graph_commit_id, Some(state.head.graph_commit_id));
        assert_eq!(graph.state(None).await.version, 1);
    })
    .unwrap();
}

/// Another writer publishes while this load is prepared.
#[test]
fn an_insert_is_prepared_again_and_an_overwrite_is_not() {
    on_deep_stack(|| async {
        let graph = Arc::new(Graph::new().await);
        for (mode, stale) in [
            (Mode::Append, false),
            (Mode::Merge, false),
            (Mode::Overwrite, true),
        ] {
            let done = Arc::new(AtomicBool::new(false));
            let (other, once) = (graph.clone(), done.clone());
            let handle = tokio::runtime::Handle::current();
            let name = format!("{mode:?}");
            let code = name.clone();
            let options = LoadOptions {
                // Called from the thread that reads the input, after the branch was captured.
                on_rows: Arc::new(move |_| {
                    if !once.swap(true, Ordering::SeqCst) {
                        let (other, code) = (other.clone(), code.clone());
                        handle.block_on(async move {
                            let text = people(&[&format!("other{code}")]);
                            other.load(Mode::Append, &text).await;
                        });
                    }
                }),
                ..options(mode)
            };
            let loaded = graph.try_load(&cities(&[&name]), &options).await;
            assert!(done.load(Ordering::SeqCst));
            match loaded {
                Ok(_) => assert!(!stale, "{mode:?}"),
                Err(WriteError::ReadSetChanged { member, .. }) => {
                    assert!(stale, "{mode:?}");
                    assert_eq!(member, "graph_head:main");
                }
                Err(other) => panic!("{other}"),
            }
        }
        graph.verify().await;
    })
    .unwrap();
}

/// Hundreds of loads of one row leave a table of few fragments, whose rows are the same ones.
#[test]
fn small_loads_are_folded_and_rows_keep_their_ids() {
    on_deep_stack(|| async {
        let graph = Graph::with("node N { name: String @key }\nnode Free { }").await;
        let rows = async |key: &'static str| {
            let state = graph.state(None).await;
            let table = state.tables.iter().find(|t| t.table_key == key).unwrap();
            let pin = table.state.pin().unwrap();
            let opened = graph::table::open_pin(&graph.root, table, pin)
                .await
                .unwrap();
            let dataset = opened.dataset;
            let fragments = dataset.manifest().fragments.len();
            let mut scan = dataset.scan();
            scan.project(&[
                "__id",
                "_row_created_at_version",
                "_row_last_updated_at_version",
            ])
            .unwrap();
            scan.with_row_id();
            let batch = scan.try_into_batch().await.unwrap();
            let lines: Vec<String> = (0..batch.num_rows())
                .map(|n| {
                    batch
                        .columns()
                        .iter()
                        .map(|c| format!("{:?}", c.slice(n, 1)))
                        .collect()
                })
                .collect();
            (fragments, lines, pin.table_version)
        };
        let mut before: Vec<String> = Vec::new();
        let mut folds = 0;
        let mut fragments = 0;
        for n in 0..150 {
            let text = format!("{{\"type\":\"N\",\"data\":{{\"name\":\"n{n}\"}}}}");
            graph.load(Mode::Append, &text).await;
            let (now, lines, version) = rows("node:N").await;
            assert_eq!(version, n + 2);
            assert_eq!(lines[..before.len()], before[..], "load {n}");
            assert_eq!(lines.len() as u64, n + 1);
            folds += u64::from(now <= fragments);
            fragments = now;
            assert!(now <= 22, "{now} fragments after load {n}");
            before = lines;
        }
        assert!(folds >= 18, "{folds} folds");
        graph.verify().await;
        let conflict = graph
            .refused(Mode::Append, "{\"type\":\"N\",\"data\":{\"name\":\"n7\"}}")
            .await;
        assert!(matches!(conflict, WriteError::KeyConflict { .. }));
    })
    .unwrap();
}
