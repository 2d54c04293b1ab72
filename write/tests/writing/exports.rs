//! Export, and back again.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::Schema;
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::table::open_pin;
use graph::view::At;
use ulid::Ulid;
use write::capture::Capture;
use write::export::export;
use write::load::Mode;
use write::publish::{Changes, ExpectedTable, Lineage, Request, Update, publish};
use write::table::{commit_detached, next_pin, overwrite};

use crate::support::{Graph, cities, on_deep_stack, people};

const EVERY_TYPE: &str = "\
node Thing {
    s: String
    e: enum(a, b)?
    b: Bool?
    i: I32?
    l: I64?
    u: U32?
    v: U64?
    f: F32?
    d: F64?
    day: Date?
    at: DateTime?
    vec: Vector(3)?
    blob: Blob?
    ss: [String]?
    ii: [I64]?
    ff: [F32]?
    dd: [Date]?
    tt: [DateTime]?
    bb: [Bool]?
}
edge Link: Thing -> Thing { w: F64? }
";

const ROWS: &str = r#"{"edge":"Link","id":"l1","from":"b","to":"a","data":{"w":0.1}}
{"type":"Thing","id":"a","data":{"at":"1969-12-31T23:59:59.999","b":true,"bb":[true,null,false],"blob":"base64:AAECAwQ=","d":1e-7,"day":"1970-01-02","dd":["2024-02-29",null],"e":"b","f":0.1,"ff":[1.5,null],"i":-2147483648,"ii":[9007199254740993],"l":9223372036854775807,"s":"line\nbreak \"quoted\" ü 😀","ss":["",null,"x"],"tt":["2000-01-01T00:00:00"],"u":4294967295,"v":18446744073709551615,"vec":[0.1,-2.0,3.0]}}
{"type":"Thing","id":"b","data":{"blob":"base64:","s":"","ss":[]}}
{"type":"Thing","id":"c","data":{"s":"nulls"}}
"#;

#[test]
fn every_type_comes_back_byte_for_byte() {
    on_deep_stack(|| async {
        let schema = EVERY_TYPE;
        let graph = Graph::with(schema).await;
        // Another order, and the rows in two loads.
        let mut lines: Vec<&str> = ROWS.lines().collect();
        lines.reverse();
        graph.load(Mode::Append, &lines[..2].join("\n")).await;
        graph.load(Mode::Merge, &lines[1..].join("\n")).await;
        assert_eq!(graph.shown().await, ROWS);
        let again = Graph::with(schema).await;
        again.load(Mode::Overwrite, ROWS).await;
        assert_eq!(again.shown().await, ROWS);
        // Large blobs lie beside the data file, and survive an upsert of their neighbour.
        let large = "QUJD".repeat(300_000);
        let big = format!(
            "{{\"type\":\"Thing\",\"id\":\"c\",\"data\":{{\"blob\":\"base64:{large}\",\"s\":\"big\"}}}}\n"
        );
        again.load(Mode::Merge, &big).await;
        again
            .load(Mode::Merge, "{\"type\":\"Thing\",\"id\":\"b\",\"data\":{\"s\":\"after\"}}")
            .await;
        let shown = again.shown().await;
        assert!(shown.contains(&large) && shown.contains("after") && shown.contains("AAECAwQ="));
        again.verify().await;
    })
    .unwrap();
}

#[test]
fn an_older_state_is_printed_as_it_was() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let mut shown = vec![graph.shown().await];
        let mut ids = vec![graph.state(None).await.head.graph_commit_id];
        for text in [
            people(&["a"]),
            people(&["b"]) + &cities(&["x"]),
            people(&["a"]),
        ] {
            let loaded = graph.load(Mode::Merge, &text).await;
            ids.push(loaded.graph_commit_id.unwrap());
            shown.push(graph.shown().await);
        }
        for (index, (id, text)) in ids.iter().zip(&shown).enumerate() {
            let number = At::Version(index as u64 + 1);
            assert_eq!(graph.export(None, &number).await, *text);
            assert_eq!(graph.export(None, &At::Commit(id.clone())).await, *text);
        }
    })
    .unwrap();
}

/// Only states from before an upgrade may lack a declared column; anywhere else rows would be printed short.
#[test]
fn a_commit_whose_rows_lack_a_declared_column_is_refused() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        graph.load(Mode::Append, &cities(&["x"])).await;
        let capture = Capture::of(&graph.root, None).await.unwrap();
        let (row, pin) = capture.table("node:City").unwrap();
        let base = open_pin(&graph.root, row, pin).await.unwrap().dataset;
        let ids = Schema::from(base.schema()).project(&[0]).unwrap();
        let batch = RecordBatch::new_empty(Arc::new(ids));
        let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
        let staged = overwrite(base.clone(), Box::new(reader)).await.unwrap();
        let witness = capture.witness().unwrap();
        let staged = commit_detached(&graph.root, base, staged, &witness).await;
        let request = Request {
            changes: Changes {
                updates: vec![Update::Pin {
                    identity: row.identity,
                    table_key: row.table_key.clone(),
                    pin: Box::new(next_pin(&graph.root, pin, &staged.unwrap(), 1)),
                }],
                ..Changes::default()
            },
            expected: vec![ExpectedTable::of(row)],
            lineage: Lineage {
                nonce: Ulid::new(),
                branch: None,
                actor: None,
                created_at: 1_700_000_000_000_000,
                merged: None,
                budget: HISTORY_RELEASE_BYTES,
            },
            precondition: capture.precondition(),
        };
        let published = publish(&graph.root, &request).await.unwrap();
        let head = &published.state.head;
        let refused = export(&graph.root, None, &At::Head, &mut Vec::new(), &|_| {}).await;
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("node:City")
                && text.contains("'name'")
                && text.contains(&head.graph_commit_id),
            "{text}"
        );
    })
    .unwrap();
}

#[test]
fn rows_are_in_the_order_of_their_bytes() {
    on_deep_stack(|| async {
        let graph = Graph::with("node N { }").await;
        let ids: Vec<String> = (0..3_000)
            .map(|n: u32| format!("{}", n.wrapping_mul(2_654_435_761)))
            .chain(["é", "Z", "a", "~"].map(str::to_string))
            .collect();
        let text: String = ids
            .iter()
            .map(|id| format!("{{\"type\":\"N\",\"id\":\"{id}\"}}\n"))
            .collect();
        graph.load(Mode::Append, &text).await;
        let mut sorted = ids.clone();
        sorted.sort();
        let expected: String = sorted
            .iter()
            .map(|id| format!("{{\"type\":\"N\",\"id\":\"{id}\",\"data\":{{}}}}\n"))
            .collect();
        assert!(graph.shown().await == expected);
    })
    .unwrap();
}
