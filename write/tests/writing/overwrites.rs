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

#[test]
fn append_and_merge_copy_blobs_from_outside_within_a_bound() {
    on_deep_stack(|| async {
        let graph = Graph::with("node Pic { data: Blob? }").await;
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("hi there");
        std::fs::write(&file, "hi").unwrap();
        let wide = outside.path().join("wide");
        std::fs::write(&wide, vec![7; 12 << 20]).unwrap();
        let uri = |path: &std::path::Path| format!("file://{}", path.display()).replace(' ', "%20");
        let pic = |id: &str, data: &str| {
            format!("{{\"type\":\"Pic\",\"id\":\"{id}\",\"data\":{{\"data\":\"{data}\"}}}}\n")
        };
        let with = |mode| LoadOptions {
            external_blobs: true,
            ..options(mode)
        };
        let text = pic("a", &uri(&file)) + &pic("b", &uri(&file)) + &pic("c", "base64:aGk=");
        graph.try_load(&text, &with(Mode::Append)).await.unwrap();
        let copied = pic("a", "base64:aGk=") + &pic("b", "base64:aGk=") + &pic("c", "base64:aGk=");
        assert_eq!(graph.shown().await, copied);
        std::fs::write(&file, "ho").unwrap();
        let text = pic("b", &uri(&file));
        graph.try_load(&text, &with(Mode::Merge)).await.unwrap();
        std::fs::remove_file(&file).unwrap();
        let copied = pic("a", "base64:aGk=") + &pic("b", "base64:aG8=") + &pic("c", "base64:aGk=");
        assert_eq!(graph.shown().await, copied);
        graph.verify().await;
        let before = fixtures::tree::tree_digest(graph.path()).unwrap();
        let three = pic("d", &uri(&wide)) + &pic("e", &uri(&wide)) + &pic("f", &uri(&wide));
        for (text, told) in [
            (three, "37748736"),
            (
                pic("d", "base64:aGk=") + &pic("e", &uri(&file)),
                "line 2: node:Pic.data names",
            ),
            (pic("d", "some/path"), "which is no URI"),
            (pic("d", "ftp://host/x"), "line 1: node:Pic.data names"),
            (pic("d", "file:///dev/zero"), "no regular file"),
        ] {
            let refused = graph
                .try_load(&text, &with(Mode::Append))
                .await
                .unwrap_err()
                .to_string();
            assert!(refused.contains(told), "{refused}\nexpected: {told}");
            let after = fixtures::tree::tree_digest(graph.path()).unwrap();
            assert_eq!(after, before, "{told}");
        }
    })
    .unwrap();
}
