use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Date64Type, Float32Type};
use arrow_array::{Array, RecordBatch};
use graph::schema::Vintage;

use super::*;

const SOURCE: &str = "node N {
    b: Blob? d: Date t: DateTime? l: [String]? v: Vector(2)? s: String
} edge E: N -> N";

fn record(values: Vec<Value>) -> Record {
    Record {
        line: 7,
        table: 1,
        id: "i".into(),
        supplied: true,
        alias: None,
        endpoints: None,
        values,
    }
}

/// `b`, `d`, `l`, `s`, `t`, `v`
fn full(blob: Value) -> Record {
    record(vec![
        blob,
        Value::Date(-3),
        Value::List(vec![Value::Text("x".into()), Value::Null]),
        Value::Text("s".into()),
        Value::DateTime(5),
        Value::Vector(vec![1.0, 2.0]),
    ])
}

fn empty() -> Record {
    record(vec![
        Value::Null,
        Value::Date(0),
        Value::Null,
        Value::Text(String::new()),
        Value::Null,
        Value::Null,
    ])
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a dyn Array {
    batch.column_by_name(name).unwrap().as_ref()
}

#[test]
fn columns_hold_what_was_pushed() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.node("N").unwrap()];
    let rows = vec![
        full(Value::Blob(Blob::Bytes(vec![1, 2]))),
        empty(),
        full(Value::Blob(Blob::External("s3://b".into()))),
    ];
    let batch = batch(table, rows);
    assert_eq!(batch.schema(), table.schema);
    let blobs = column(&batch, "b").as_struct();
    assert_eq!(
        (0..3).map(|i| blobs.is_null(i)).collect::<Vec<_>>(),
        [false, true, false]
    );
    let data: Vec<_> = blobs
        .column_by_name("data")
        .unwrap()
        .as_binary::<i64>()
        .iter()
        .collect();
    assert_eq!(data, [Some(&[1, 2][..]), None, None]);
    let uris: Vec<_> = blobs
        .column_by_name("uri")
        .unwrap()
        .as_string::<i32>()
        .iter()
        .collect();
    assert_eq!(uris, [None, None, Some("s3://b")]);
    let days: Vec<_> = column(&batch, "d")
        .as_primitive::<Date32Type>()
        .iter()
        .collect();
    assert_eq!(days, [Some(-3), Some(0), Some(-3)]);
    let times: Vec<_> = column(&batch, "t")
        .as_primitive::<Date64Type>()
        .iter()
        .collect();
    assert_eq!(times, [Some(5), None, Some(5)]);
    let lists = column(&batch, "l").as_list::<i32>();
    assert_eq!(lists.value_offsets(), [0, 2, 2, 4]);
    assert!(lists.is_null(1) && !lists.is_null(2));
    let items: Vec<_> = lists.values().as_string::<i32>().iter().collect();
    assert_eq!(items, [Some("x"), None, Some("x"), None]);
    let vectors = column(&batch, "v").as_fixed_size_list();
    assert!(vectors.is_null(1) && !vectors.is_null(0));
    assert_eq!(
        vectors.value(2).as_primitive::<Float32Type>().values(),
        &[1.0, 2.0]
    );
    let field = table.schema.field_with_name("b").unwrap();
    assert_eq!(
        field.metadata().get("ARROW:extension:name").unwrap(),
        "lance.blob.v2"
    );
}

#[test]
fn a_finished_builder_starts_again() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.node("N").unwrap()];
    let mut builder = BatchBuilder::new(table);
    assert_eq!(builder.finish().unwrap().0.num_rows(), 0);
    for round in 1..3_u64 {
        let mut first = full(Value::Null);
        first.line = round;
        builder.push(first).unwrap();
        builder.push(empty()).unwrap();
        assert_eq!((builder.rows(), builder.lines()), (2, &[round, 7][..]));
        assert!(builder.bytes() > 0);
        let (batch, lines) = builder.finish().unwrap();
        assert_eq!((batch.num_rows(), lines), (2, vec![round, 7]));
        assert_eq!((builder.rows(), builder.bytes()), (0, 0));
    }
}

#[test]
fn the_estimate_is_near_the_arrow_bytes() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.node("N").unwrap()];
    let mut builder = BatchBuilder::new(table);
    for i in 0..2000 {
        let text = "x".repeat(i % 90);
        let mut row = full(Value::Blob(Blob::Bytes(vec![0; i % 300])));
        row.values[3] = Value::Text(text.clone());
        row.values[2] = Value::List(vec![Value::Text(text); i % 4]);
        builder.push(row).unwrap();
        builder.push(empty()).unwrap();
    }
    let estimate = builder.bytes() as f64;
    let (batch, _) = builder.finish().unwrap();
    // Slices count what is used, not what the builders reserved.
    let bytes: usize = batch
        .columns()
        .iter()
        .map(|c| c.to_data().get_slice_memory_size().unwrap())
        .sum();
    let ratio = estimate / bytes as f64;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn a_record_that_does_not_fit_leaves_the_builder_alone() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.node("N").unwrap()];
    let mut builder = BatchBuilder::new(table);
    builder.push(empty()).unwrap();
    let bytes = builder.bytes();
    let with = |index: usize, value: Value| {
        let mut record = empty();
        record.values[index] = value;
        record
    };
    let mut short = empty();
    short.values.pop();
    let mut edge = empty();
    edge.endpoints = Some(("a".into(), "b".into()));
    let cases = [
        (
            with(3, Value::Null),
            "line 7: node:N.s: found null, expected String",
        ),
        (
            with(1, Value::I32(1)),
            "line 7: node:N.d: found an I32, expected Date",
        ),
        (
            with(5, Value::Vector(vec![1.0])),
            "line 7: node:N.v: found a Vector, expected Vector(2)?",
        ),
        (
            with(2, Value::List(vec![Value::I32(1)])),
            "line 7: node:N.l: found a list, expected [String]?",
        ),
        (
            with(2, Value::Text("x".into())),
            "line 7: node:N.l: found a String, expected [String]?",
        ),
        (
            with(3, Value::List(vec![])),
            "line 7: node:N.s: found a list, expected String",
        ),
        (
            short,
            "line 7: node:N: a row of 1 ids and 5 values, expected 1 and 6",
        ),
        (
            edge,
            "line 7: node:N: a row of 3 ids and 6 values, expected 1 and 6",
        ),
    ];
    for (record, message) in cases {
        assert_eq!(builder.push(record).unwrap_err().to_string(), message);
    }
    assert_eq!((builder.rows(), builder.bytes()), (1, bytes));
    let (batch, _) = builder.finish().unwrap();
    assert_eq!(batch.num_rows(), 1);
}

#[test]
fn a_batch_has_a_limit() {
    let types = types("node N { v: Vector(1000000000)? }", Vintage::Current);
    let mut builder = BatchBuilder::new(&types.tables()[0]);
    let mut row = record(vec![Value::Null]);
    row.table = 0;
    assert_eq!(
        builder.push(row).unwrap_err().to_string(),
        "line 7: node:N: the batch would take 4000000005 bytes, above the limit of 2147483647"
    );
}

#[test]
fn endpoints_are_columns_of_an_edge() {
    let types = types(SOURCE, Vintage::Legacy);
    let table = &types.tables()[types.edge("E").unwrap()];
    let mut edge = record(vec![]);
    edge.endpoints = Some(("a".into(), "b".into()));
    let batch = batch(table, vec![edge]);
    for (name, value) in [("id", "i"), ("src", "a"), ("dst", "b")] {
        assert_eq!(column(&batch, name).as_string::<i32>().value(0), value);
    }
}
