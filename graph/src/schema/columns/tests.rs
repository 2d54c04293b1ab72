#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::schema::ir::resolve;
use crate::schema::source::{ParseMode, compile};

const DOMAIN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const SOURCE: &str = "
interface I { z: I32 }
node N implements I {
  s: String a: Bool? b: I32 c: I64? d: U32 e: U64? f: F32 g: F64? h: Date i: DateTime?
  v: Vector(4)? p: Blob? q: Blob l: [String]? m: [DateTime] k: enum(x, y)
}
edge E: N -> N { w: F64? }
edge D: N -> N
";

fn declared(vintage: Vintage) -> Vec<DeclaredTable> {
    let compiled = compile(SOURCE, ParseMode::Admission, Some(vintage)).unwrap();
    tables(&resolve(&compiled, None, DOMAIN, vintage).unwrap()).unwrap()
}

#[test]
fn keys_identities_and_order() {
    let tables = declared(Vintage::Current);
    let found: Vec<_> = tables
        .iter()
        .map(|t| (t.table_key.as_str(), t.identity.to_string()))
        .collect();
    let text = |a: u64, b: u64| format!("{a:016x}:{b:016x}");
    assert_eq!(
        found,
        [
            ("node:N", text(2, 24)),
            ("edge:D", text(3, 25)),
            ("edge:E", text(4, 26)),
        ]
    );
}

#[test]
fn types_and_order_of_columns() {
    let tables = declared(Vintage::Legacy);
    let columns = |table: &DeclaredTable| -> Vec<String> {
        let fields = table.schema.fields().iter();
        fields
            .map(|f| {
                format!(
                    "{}: {}{}",
                    f.name(),
                    f.data_type(),
                    if f.is_nullable() { "?" } else { "" }
                )
            })
            .collect()
    };
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    assert_eq!(columns(&tables[1]), ["id: Utf8", "src: Utf8", "dst: Utf8"]);
    assert_eq!(
        columns(&tables[2]),
        ["id: Utf8", "src: Utf8", "dst: Utf8", "w: Float64?"]
    );
    let node = &tables[0].schema;
    assert_eq!(
        columns(&tables[0])
            .into_iter()
            .filter(|c| !["l:", "m:", "p:", "q:", "v:"]
                .iter()
                .any(|p| c.starts_with(p)))
            .collect::<Vec<_>>(),
        [
            "id: Utf8",
            "a: Boolean?",
            "b: Int32",
            "c: Int64?",
            "d: UInt32",
            "e: UInt64?",
            "f: Float32",
            "g: Float64?",
            "h: Date32",
            "i: Date64?",
            "k: Utf8",
            "s: Utf8",
            "z: Int32",
        ]
    );
    let field = |name: &str| node.field_with_name(name).unwrap();
    assert_eq!(
        *field("v").data_type(),
        DataType::FixedSizeList(item(DataType::Float32), 4)
    );
    assert_eq!(
        *field("l").data_type(),
        DataType::List(item(DataType::Utf8))
    );
    assert_eq!(
        *field("m").data_type(),
        DataType::List(item(DataType::Date64))
    );
    let blob = DataType::Struct(
        vec![
            Field::new("data", DataType::LargeBinary, true),
            Field::new("uri", DataType::Utf8, true),
        ]
        .into(),
    );
    assert_eq!(*field("p").data_type(), blob);
    assert!(field("p").is_nullable() && !field("q").is_nullable());
    let names: Vec<_> = declared(Vintage::Current)[2]
        .schema
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    assert_eq!(names, ["__id", "__src", "__dst", "w"]);
}

#[test]
fn field_metadata() {
    for table in declared(Vintage::Current) {
        assert!(table.schema.metadata().is_empty());
        for field in table.schema.fields() {
            let mut keys: Vec<_> = field.metadata().keys().map(String::as_str).collect();
            keys.sort_unstable();
            let expected: &[&str] = match field.name().as_str() {
                "__id" => &[PRIMARY_KEY],
                "__src" | "__dst" => &[],
                "p" | "q" => &["ARROW:extension:name", STABLE_PROPERTY_ID],
                _ => &[STABLE_PROPERTY_ID],
            };
            assert_eq!(keys, expected, "{}", field.name());
        }
    }
    let tables = declared(Vintage::Current);
    let node = &tables[0].schema;
    let value = |name: &str, key: &str| node.field_with_name(name).unwrap().metadata()[key].clone();
    assert_eq!(value("__id", PRIMARY_KEY), "true");
    assert_eq!(value("a", STABLE_PROPERTY_ID), "6");
    assert_eq!(value("p", "ARROW:extension:name"), "lance.blob.v2");
}

#[test]
fn impossible_types_are_errors_not_panics() {
    let compiled = compile("node N { v: Vector(4) }", ParseMode::Admission, None).unwrap();
    let ir = resolve(&compiled, None, DOMAIN, Vintage::Current).unwrap();
    for (scalar, list) in [
        (Scalar::Vector(0), false),
        (Scalar::Vector(u32::MAX), false),
        (Scalar::Vector(4), true),
        (Scalar::Blob, true),
    ] {
        let mut bad = ir.clone();
        bad.nodes[0].properties[0].prop_type.scalar = scalar;
        bad.nodes[0].properties[0].prop_type.list = list;
        let error = tables(&bad).unwrap_err().to_string();
        assert!(
            error.starts_with("node N.v: ") && error.ends_with("is not a type"),
            "{error}"
        );
    }
}

fn schema(fields: &[(&str, DataType)]) -> Schema {
    let fields = fields
        .iter()
        .map(|(name, t)| Field::new(*name, t.clone(), false));
    Schema::new(fields.collect::<Vec<_>>())
}

#[test]
fn comparison_sees_names_and_types_only() {
    let declared = schema(&[
        ("id", DataType::Utf8),
        ("a", DataType::Int32),
        ("b", DataType::Int64),
    ]);
    let other = Schema::new(vec![
        Field::new("b", DataType::Int64, true).with_metadata([("k".into(), "v".into())].into()),
        Field::new("id", DataType::Utf8, true),
        Field::new("a", DataType::Int32, true),
    ]);
    assert_eq!(compare_columns(&declared, &other), None);
}

#[test]
fn the_first_difference_is_named() {
    let declared = schema(&[
        ("id", DataType::Utf8),
        ("a", DataType::Int32),
        ("b", DataType::Int64),
    ]);
    for (stored, expected) in [
        (
            vec![
                ("x", DataType::Utf8),
                ("id", DataType::Utf8),
                ("b", DataType::Utf8),
            ],
            "column 'a' is declared as Int32 but the table does not have it",
        ),
        (
            vec![
                ("x", DataType::Utf8),
                ("b", DataType::Utf8),
                ("a", DataType::Int32),
                ("id", DataType::Utf8),
            ],
            "column 'b' is declared as Int64 but stored as Utf8",
        ),
        (
            vec![
                ("b", DataType::Int64),
                ("y", DataType::Date32),
                ("a", DataType::Int32),
                ("x", DataType::Utf8),
                ("id", DataType::Utf8),
            ],
            "column 'y' is stored as Date32 but not declared",
        ),
    ] {
        let difference = compare_columns(&declared, &schema(&stored)).unwrap();
        assert_eq!(difference.to_string(), expected);
    }
    // Child fields are part of a type.
    let list =
        |name: &str, nullable| DataType::List(Arc::new(Field::new(name, DataType::Utf8, nullable)));
    let declared = schema(&[("l", list("item", true))]);
    for other in [list("element", true), list("item", false)] {
        let difference = compare_columns(&declared, &schema(&[("l", other)])).unwrap();
        assert!(matches!(difference, ColumnDifference::Type { .. }));
    }
}
