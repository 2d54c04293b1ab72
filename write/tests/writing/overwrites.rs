//! Overwrite: a type of the input gets exactly the rows of the input.

use write::load::{LoadOptions, Mode};

use crate::support::*;

#[test]
fn only_the_types_of_the_input_are_replaced() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let first = lives(&[("e", "a", "x")]) + &people(&["a", "b"]) + &cities(&["x", "y"]);
        graph.load(Mode::Overwrite, &first).await;
        let loaded = graph
            .load(Mode::Overwrite, &(people(&["c"]) + &people(&["a"])))
            .await;
        assert_eq!(loaded.tables.len(), 1);
        assert_eq!(
            (loaded.tables[0].rows_replaced, loaded.tables[0].row_count),
            (2, 2)
        );
        let expected = lives(&[("e", "a", "x")])
            .replace("\"to\":\"x\"}", "\"to\":\"x\",\"data\":{}}")
            + "{\"type\":\"City\",\"id\":\"x\",\"data\":{\"name\":\"x\"}}\n\
               {\"type\":\"City\",\"id\":\"y\",\"data\":{\"name\":\"y\"}}\n\
               {\"type\":\"Person\",\"id\":\"a\",\"data\":{\"code\":\"a\"}}\n\
               {\"type\":\"Person\",\"id\":\"c\",\"data\":{\"code\":\"c\"}}\n";
        assert_eq!(graph.shown().await, expected);
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn what_breaks_a_rule_leaves_nothing_behind() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let nodes = people(&["a", "b"]) + &cities(&["x", "y"]);
        graph
            .load(Mode::Overwrite, &(lives(&[("e", "a", "x")]) + &nodes))
            .await;
        let before = fixtures::tree::tree_digest(graph.path()).unwrap();
        let person = |code: &str, rest: &str| {
            format!("{{\"type\":\"Person\",\"data\":{{\"code\":\"{code}\"{rest}}}}}\n")
        };
        for (text, told) in [
            (
                people(&["a", "b", "a"]),
                "line 3: node:Person has the id \"a\" a second time; it stands on line 1",
            ),
            (
                cities(&["y"]),
                "edge:Lives is not in the input and keeps an edge to node:City \"x\"",
            ),
            (
                lives(&[("e", "a", "z")]),
                "line 1: edge:Lives names node:City \"z\" as \"to\"",
            ),
            // The node is stored, but the input replaces its type without it.
            (
                lives(&[("e", "b", "y")]) + &cities(&["x"]),
                "node:City \"y\"",
            ),
            (
                lives(&[("1", "a", "x"), ("2", "a", "y"), ("3", "a", "x")]),
                "\"a\" would have 3",
            ),
            (
                person("a", ",\"email\":\"m\"") + &person("b", ",\"email\":\"m\""),
                "line 2: node:Person must be unique in (email), and line 1 has",
            ),
            (person("a", ",\"age\":200"), "line 1: node:Person.age"),
            (people(&["a"]) + "{\"type\":\"Person\"", "line 2"),
            (people(&["a"]) + "{\"type\":\"Town\",\"data\":{}}", "Town"),
        ] {
            let refused = graph.refused(Mode::Overwrite, &text).await.to_string();
            assert!(refused.contains(told), "{refused}\nexpected: {told}");
            let after = fixtures::tree::tree_digest(graph.path()).unwrap();
            assert_eq!(after, before, "{told}");
        }
    })
    .unwrap();
}

#[test]
fn a_large_input_streams_through_many_batches() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let rows = 20_000;
        let text: String = (0..rows)
            .map(|n| {
                // Edges first, as an export has them.
                format!(
                    "{{\"edge\":\"Knows\",\"from\":\"p{n}\",\"to\":\"p{}\"}}\n",
                    rows - 1 - n
                )
            })
            .chain((0..rows).map(|n| {
                format!(
                    "{{\"type\":\"Person\",\"data\":{{\"code\":\"p{n}\",\"email\":\"e{n}\"}}}}\n"
                )
            }))
            .collect();
        let loaded = graph.load(Mode::Overwrite, &text).await;
        assert!(
            loaded.tables.iter().all(|t| t.row_count == rows),
            "{loaded:?}"
        );
        graph.verify().await;
        let shown = graph.shown().await;
        let again = Graph::new().await;
        again.load(Mode::Overwrite, &shown).await;
        assert!(again.shown().await == shown);
    })
    .unwrap();
}

#[test]
fn blobs_outside_of_the_graph_need_leave() {
    on_deep_stack(|| async {
        let graph = Graph::with("node Pic { data: Blob? }").await;
        let text = "{\"type\":\"Pic\",\"id\":\"a\",\"data\":{\"data\":\"file:///tmp/no-such-blob\"}}\n\
                    {\"type\":\"Pic\",\"id\":\"b\",\"data\":{\"data\":\"base64:aGk=\"}}\n";
        for mode in [Mode::Overwrite, Mode::Append, Mode::Merge] {
            let told = graph.refused(mode, text).await.to_string();
            assert!(told.contains("line 1") && told.contains("--external-blobs"), "{told}");
        }
        let options = LoadOptions {
            external_blobs: true,
            ..options(Mode::Overwrite)
        };
        graph.try_load(text, &options).await.unwrap();
        // Named without being opened.
        assert_eq!(graph.shown().await, text);
    })
    .unwrap();
}
