use graph::ulids::is_canonical;

use super::*;

#[test]
fn ids_without_a_key() {
    let types = types("node N { a: I32? } edge E: N -> N", Vintage::Current);
    let record = one(&types, r#"{"type":"N","id":"any thing"}"#);
    assert_eq!((record.id.as_str(), record.supplied), ("any thing", true));
    let input = "{\"type\":\"N\"}\n{\"edge\":\"E\",\"from\":\"a\",\"to\":\"b\"}\n".repeat(500);
    let records = read(&types, &input).unwrap();
    assert!(records.iter().all(|r| is_canonical(&r.id) && !r.supplied));
    assert!(records.windows(2).all(|pair| pair[0].id < pair[1].id));
    refused(
        &types,
        r#"{"type":"N","id":""}"#,
        "line 1: node:N: the id is an empty string: give it a value, or leave it out",
    );
}

#[test]
fn the_id_in_data_of_the_legacy_vintage() {
    let types = types("node N { a: I32? } edge E: N -> N", Vintage::Legacy);
    for input in [
        r#"{"type":"N","data":{"id":"x","a":1}}"#,
        r#"{"data":{"a":1,"id":"x"},"type":"N"}"#,
        r#"{"type":"N","id":"x","data":{"a":1}}"#,
    ] {
        let record = one(&types, input);
        assert_eq!((record.id.as_str(), record.supplied), ("x", true));
        assert_eq!(record.values, [Value::I32(1)]);
    }
    let both = "line 1: node:N: found an id at the top level and another in \"data\": keep the one at the top \
                level";
    refused(&types, r#"{"type":"N","id":"x","data":{"id":"x"}}"#, both);
    refused(&types, r#"{"type":"N","data":{"id":"x"},"id":"x"}"#, both);
    refused(
        &types,
        r#"{"type":"N","data":{"id":5}}"#,
        "line 1: node:N: \"id\" is 5, expected a string",
    );
    refused(
        &types,
        r#"{"type":"N","data":{"id":"a","id":"a"}}"#,
        "line 1: node:N.id: given twice in one record: keep one",
    );
    refused(
        &types,
        r#"{"edge":"E","from":"a","to":"b","data":{"id":""}}"#,
        "line 1: edge:E: the id is an empty string: give it a value, or leave it out",
    );
}

#[test]
fn a_declared_id_is_a_property_of_the_current_vintage() {
    let types = types("node N { id: I32 }", Vintage::Current);
    let record = one(&types, r#"{"type":"N","id":"x","data":{"id":7}}"#);
    assert_eq!(record.id, "x");
    assert_eq!(record.values, [Value::I32(7)]);
}

#[test]
fn derived_ids_of_one_member() {
    let cases = [
        ("String", r#""a b""#, "a b"),
        ("enum(x, y)", r#""y""#, "y"),
        ("Bool", "true", "true"),
        ("I32", "-5", "-5"),
        ("I64", "9007199254740993", "9007199254740993"),
        ("U64", "18446744073709551615", "18446744073709551615"),
        ("F32", "0.10000000149011612", "0.1"),
        ("F64", "1e16", "10000000000000000"),
        ("F64", "-0.0", "0"),
        ("F64", "3", "3"),
        ("Date", r#""1969-12-31""#, "-1"),
        ("DateTime", r#""1970-01-01T00:00:01Z""#, "1000"),
    ];
    for (scalar, json, id) in cases {
        let types = types(&format!("node N {{ k: {scalar} @key }}"), Vintage::Current);
        let record = one(&types, &format!(r#"{{"type":"N","data":{{"k":{json}}}}}"#));
        assert_eq!(
            (record.id.as_str(), record.supplied),
            (id, false),
            "{scalar}"
        );
        let input = format!(r#"{{"type":"N","id":"{id}","data":{{"k":{json}}}}}"#);
        let record = one(&types, &input);
        assert_eq!(
            (record.id.as_str(), record.supplied),
            (id, true),
            "{scalar}"
        );
        assert_eq!(record.alias, None);
    }
}

#[test]
fn tuples_are_in_the_order_of_property_ids() {
    let first = compile_tuple("node N { p: I32 q: Bool z: String @key(p, q, z) }");
    let renamed =
        "node N { x: I32 @rename_from(\"p\") q: Bool a: String @rename_from(\"z\") @key(x, q, a) }";
    let compiled = graph::schema::compile(
        renamed,
        graph::schema::ParseMode::Admission,
        Some(Vintage::Current),
    )
    .unwrap();
    let domain = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let ir = graph::schema::resolve(&compiled, Some(&first), domain, Vintage::Current).unwrap();
    let types = Types::of(&ir).unwrap();
    let input = r#"{"type":"N","data":{"a":"q\"","q":true,"x":-5}}"#;
    // By name a would come first, by identity it is the last.
    assert_eq!(one(&types, input).id, r#"["-5","true","q\""]"#);
}

fn compile_tuple(source: &str) -> graph::schema::SchemaIr {
    let mode = graph::schema::ParseMode::Admission;
    let compiled = graph::schema::compile(source, mode, Some(Vintage::Current)).unwrap();
    let domain = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    graph::schema::resolve(&compiled, None, domain, Vintage::Current).unwrap()
}

const KEYED_EDGE: &str =
    "node N { a: I32? } edge E: N -> N { b: I32 a: String? @key(b, @dst, @src) }";

#[test]
fn keyed_edges_have_their_endpoints_first() {
    let types = types(KEYED_EDGE, Vintage::Current);
    let table = &types.tables()[types.edge("E").unwrap()];
    let mut record = one(&types, r#"{"data":{"b":7},"edge":"E","from":"x","to":"y"}"#);
    assert_eq!(record.id, r#"["x","y","7"]"#);
    record.endpoints = Some(("new".into(), "y".into()));
    record.rederive(table).unwrap();
    assert_eq!(record.id, r#"["new","y","7"]"#);
    let input = r#"{"edge":"E","id":"[\"x\",\"y\",\"7\"]","from":"x","to":"y","data":{"b":7}}"#;
    assert_eq!(one(&types, input).id, r#"["x","y","7"]"#);
    refused(
        &types,
        r#"{"edge":"E","id":"[\"x\",\"y\",\"07\"]","from":"x","to":"y","data":{"b":7}}"#,
        "line 1: edge:E: the id is \"[\\\"x\\\",\\\"y\\\",\\\"07\\\"]\", but the key of the record is \
         \"[\\\"x\\\",\\\"y\\\",\\\"7\\\"]\": correct one of them, or leave the id out",
    );
}

#[test]
fn rederiving_leaves_other_records_alone() {
    let types = types("node N { k: I32 @key } edge E: N -> N", Vintage::Current);
    for (input, kind) in [
        (r#"{"type":"N","data":{"k":1}}"#, "node:N"),
        (r#"{"edge":"E","id":"i","from":"x","to":"y"}"#, "edge:E"),
    ] {
        let mut record = one(&types, input);
        let before = record.clone();
        record
            .rederive(&types.tables()[types.by_key(kind).unwrap()])
            .unwrap();
        assert_eq!(record, before);
    }
}

#[test]
fn other_spellings_of_a_key_in_the_legacy_vintage() {
    let one_member = [
        ("I64", "7", "007", Some("7")),
        ("I64", "7", "7.0", None),
        ("I64", "7", "8", None),
        ("F64", "1", "1.0", Some("1")),
        ("F64", "0", "-0", Some("0")),
        ("F64", "1", "NaN", None),
        ("Date", "20517", "2026-03-05", Some("20517")),
        ("Date", "20517", "20517", None),
        ("DateTime", "1000", "1970-01-01T00:00:01Z", Some("1000")),
        ("String", "\"a\"", "A", None),
    ];
    for (scalar, json, supplied, id) in one_member {
        let source = format!("node N {{ k: {scalar} @key }}");
        let input = format!(r#"{{"type":"N","data":{{"id":"{supplied}","k":{json}}}}}"#);
        let types = types(&source, Vintage::Legacy);
        match id {
            Some(id) => {
                let record = one(&types, &input);
                assert_eq!(record.id, id);
                assert_eq!(record.alias.as_deref(), Some(supplied));
            }
            None if supplied == json => assert_eq!(one(&types, &input).alias, None),
            None => refused_around(
                &types,
                &input,
                &format!(
                    "line 1: node:N: the id is \"{supplied}\", but the key of the record is \""
                ),
                "\": correct one of them, or leave the id out",
            ),
        }
        if supplied != json {
            let current = crate::tests::types(&source, Vintage::Current);
            let input = input
                .replace(r#""data":{"id""#, r#""id""#)
                .replace(r#","k""#, r#","data":{"k""#);
            refused_around(
                &current,
                &input,
                "line 1: node:N: the id is",
                "leave the id out",
            );
        }
    }
}

#[test]
fn other_spellings_of_a_tuple() {
    let types = types("node N { b: I64 d: Date @key(b, d) }", Vintage::Legacy);
    let cases = [
        (r#"[\"7\",\"1\"]"#, false),
        (r#"[\"7\", \"1\"]"#, true),
        (r#"[\"007\",\"1970-01-02\"]"#, true),
        (r#"[7,1]"#, true),
    ];
    for (supplied, alias) in cases {
        let input = format!(r#"{{"type":"N","data":{{"id":"{supplied}","b":7,"d":1}}}}"#);
        let record = one(&types, &input);
        assert_eq!(record.id, r#"["7","1"]"#);
        assert_eq!(record.alias, alias.then(|| supplied.replace('\\', "")));
    }
    for supplied in [
        r#"[\"1\",\"7\"]"#,
        r#"[\"7\"]"#,
        r#"[\"7\",\"1\",\"1\"]"#,
        "7",
        r#"[\"7\",null]"#,
    ] {
        let input = format!(r#"{{"type":"N","data":{{"id":"{supplied}","b":7,"d":1}}}}"#);
        refused_around(
            &types,
            &input,
            "line 1: node:N: the id is",
            "leave the id out",
        );
    }
}

#[test]
fn an_empty_key_is_no_id() {
    let types = types("node N { k: String @key }", Vintage::Current);
    refused(
        &types,
        r#"{"type":"N","data":{"k":""}}"#,
        "line 1: node:N: the key is an empty string, expected a key that can serve as the id: give it a value",
    );
}
