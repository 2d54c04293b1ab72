use super::*;

const SCHEMA: &str = "
node N { a: I32? b: I32? }
node Other { a: I32? }
edge E: N -> Other { w: I32? }
edge Both: N -> N
node Both { x: I32 }
";

#[test]
fn members_in_any_order() {
    let types = types(SCHEMA, Vintage::Current);
    let orders = [
        r#"{"edge":"E","id":"i","from":"x","to":"y","data":{"w":1}}"#,
        r#"{"data":{"w":1},"to":"y","from":"x","id":"i","edge":"E"}"#,
        r#"{"from":"x","edge":"E","to":"y","data":{"w":1},"id":"i"}"#,
        r#"{"to":"y","data":{"w":1},"id":"i","\u0065dge":"E","from":"x"}"#,
    ];
    for input in orders {
        let record = one(&types, input);
        assert_eq!(record.table, types.edge("E").unwrap());
        assert_eq!(record.id, "i");
        assert!(record.supplied);
        assert_eq!(record.endpoints, Some(("x".to_string(), "y".to_string())));
        assert_eq!(record.values, [Value::I32(1)]);
    }
    let reversed = one(&types, r#"{"data":{"b":2,"a":1},"type":"N"}"#);
    assert_eq!(reversed.values, [Value::I32(1), Value::I32(2)]);
}

#[test]
fn edge_names_have_any_case_and_node_names_one() {
    let types = types(SCHEMA, Vintage::Current);
    let record = one(&types, r#"{"edge":"bOTH","from":"x","to":"y"}"#);
    assert_eq!(types.tables()[record.table].table_key, "edge:Both");
    refused(
        &types,
        r#"{"type":"both"}"#,
        "line 1: no node type is called \"both\", expected one of the schema's (Both, N, Other). An edge type \
         has this name: write \"edge\" instead of \"type\" if it is meant",
    );
    refused(
        &types,
        r#"{"edge":"Other","from":"x","to":"y"}"#,
        "line 1: no edge type is called \"Other\", expected one of the schema's (Both, E). A node type has this \
         name: write \"type\" instead of \"edge\" if it is meant",
    );
}

#[test]
fn at_most_five_types_are_listed() {
    let source: String = (0..7)
        .map(|i| format!("node N{i} {{ a: I32? }}\n"))
        .collect();
    let types = types(&source, Vintage::Current);
    refused(
        &types,
        r#"{"type":"X"}"#,
        "line 1: no node type is called \"X\", expected one of the schema's (N0, N1, N2, N3, N4 and 2 more)",
    );
    refused(
        &types,
        r#"{"edge":"X"}"#,
        "line 1: no edge type is called \"X\", expected one of the schema's (none)",
    );
}

#[test]
fn what_is_no_envelope() {
    let types = types(SCHEMA, Vintage::Current);
    let both = "line 1: node:N: the type is given twice, expected exactly one of \"type\" (a node) and \"edge\"";
    let edge = "line 1: edge:E: the type is given twice, expected exactly one of \"type\" (a node) and \"edge\"";
    let cases = [
        (
            r#"{}"#,
            "line 1: found neither \"type\" nor \"edge\", expected exactly one of them",
        ),
        (
            r#"{"data":{"a":1}}"#,
            "line 1: found neither \"type\" nor \"edge\", expected exactly one of them",
        ),
        (r#"{"type":"N","edge":"E"}"#, both),
        (r#"{"type":"N","type":"N"}"#, both),
        (r#"{"edge":"E","data":{},"type":"N"}"#, edge),
        (r#"{"type":1}"#, "line 1: \"type\" is 1, expected a string"),
        (
            r#"{"edge":null}"#,
            "line 1: \"edge\" is null, expected a string",
        ),
        (
            r#"{"type":"N","id":1}"#,
            "line 1: node:N: \"id\" is 1, expected a string",
        ),
        (
            r#"{"id":null,"type":"N"}"#,
            "line 1: \"id\" is null, expected a string",
        ),
        (
            r#"{"type":"N","id":["a"]}"#,
            "line 1: node:N: \"id\" is an array, expected a string",
        ),
        (
            r#"{"type":"N","id":"a","id":"a"}"#,
            "line 1: node:N: \"id\" is given twice in one record: keep one",
        ),
        (
            r#"{"type":"N","data":null}"#,
            "line 1: node:N: \"data\" is null, expected an object",
        ),
        (
            r#"{"data":[],"type":"N"}"#,
            "line 1: node:N: \"data\" is an array, expected an object",
        ),
        (
            r#"{"type":"N","data":{},"data":{}}"#,
            "line 1: node:N: \"data\" is given twice in one record: keep one",
        ),
        (
            r#"{"data":{},"data":{},"type":"N"}"#,
            "line 1: \"data\" is given twice in one record: keep one",
        ),
        (
            r#"{"type":"N","from":"a"}"#,
            "line 1: node:N: a node has no \"from\" and \"to\": remove them, or write \"edge\" instead of \"type\"",
        ),
        (
            r#"{"type":"N","to":"a"}"#,
            "line 1: node:N: a node has no \"from\" and \"to\": remove them, or write \"edge\" instead of \"type\"",
        ),
        (
            r#"{"edge":"E","to":"a"}"#,
            "line 1: edge:E: \"from\" is missing, expected the id of a node",
        ),
        (
            r#"{"edge":"E","from":"a"}"#,
            "line 1: edge:E: \"to\" is missing, expected the id of a node",
        ),
        (
            r#"{"edge":"E","from":"a","to":null}"#,
            "line 1: edge:E: \"to\" is null, expected a string",
        ),
        (
            r#"{"edge":"E","from":"a","to":""}"#,
            "line 1: edge:E: \"to\" is an empty string, expected the id of a node",
        ),
        (
            r#"{"edge":"E","from":"a","to":"b","to":"b"}"#,
            "line 1: edge:E: \"to\" is given twice in one record: keep one",
        ),
        (
            r#"{"type":"N","a":1}"#,
            "line 1: node:N: \"a\" is no member of a record, expected type or edge, id, from, to, data: properties belong inside \"data\"",
        ),
        (
            r#"{"type":"N"},"#,
            "line 1: found `,` at column 13, expected the `{` of a record: the input is UTF-8 text of JSON objects, one after the other, without brackets or commas around them and without a byte order mark",
        ),
        (
            r#"{"type":"N",}"#,
            "line 1: not valid JSON: trailing comma at line 1, column 13",
        ),
        (
            r#"{"type":"N","data":{"a":1e999}}"#,
            "line 1: node:N.a: not valid JSON: number out of range at line 1, column 29",
        ),
    ];
    for (input, message) in cases {
        refused(&types, input, message);
    }
}

#[test]
fn members_of_data_that_are_no_property() {
    let has = "the type declares no such property";
    let top = r#"give the endpoints at the top level, as "from" and "to""#;
    let cases: [(Vintage, &str, &str, String); 12] = [
        (
            Vintage::Current,
            "node",
            "id",
            format!(r#"{has}: move "id" from "data" to the top level of the record"#),
        ),
        (
            Vintage::Current,
            "edge",
            "id",
            format!(r#"{has}: move "id" from "data" to the top level of the record"#),
        ),
        (
            Vintage::Current,
            "node",
            "__id",
            format!(r#"{has}: move "__id" from "data" to the top level of the record, as "id""#),
        ),
        (Vintage::Current, "edge", "__src", format!("{has}: {top}")),
        (Vintage::Current, "edge", "__dst", format!("{has}: {top}")),
        (Vintage::Current, "edge", "src", format!("{has}: {top}")),
        (
            Vintage::Current,
            "node",
            "src",
            format!("{has} (it has a, b): correct the name or remove it"),
        ),
        (
            Vintage::Current,
            "node",
            "__src",
            format!("{has} (it has a, b): correct the name or remove it"),
        ),
        (Vintage::Legacy, "edge", "src", format!("{has}: {top}")),
        (Vintage::Legacy, "edge", "dst", format!("{has}: {top}")),
        (
            Vintage::Legacy,
            "node",
            "dst",
            format!("{has} (it has a, b): correct the name or remove it"),
        ),
        (
            Vintage::Legacy,
            "node",
            "__id",
            format!("{has} (it has a, b): correct the name or remove it"),
        ),
    ];
    for (vintage, kind, name, message) in cases {
        let types = types(SCHEMA, vintage);
        let (head, key) = match kind {
            "node" => (r#""type":"N""#, "node:N"),
            _ => (r#""edge":"E","from":"a","to":"b""#, "edge:E"),
        };
        let input = format!(r#"{{{head},"data":{{"{name}":"x"}}}}"#);
        refused(&types, &input, &format!("line 1: {key}.{name}: {message}"));
    }
}

#[test]
fn repeated_and_unknown_properties() {
    let types = types(
        "node N { a: I32? b: I32? c: I32? d: I32? e: I32? f: I32? }",
        Vintage::Current,
    );
    refused(
        &types,
        r#"{"type":"N","data":{"a":null,"b":1,"a":null}}"#,
        "line 1: node:N.a: given twice in one record: keep one",
    );
    refused(
        &types,
        r#"{"type":"N","data":{"A":1}}"#,
        "line 1: node:N.A: the type declares no such property (it has a, b, c, d, e and 1 more): correct the \
         name or remove it",
    );
    let types = crate::tests::types("node N { a: I32? } edge E: N -> N", Vintage::Current);
    refused(
        &types,
        r#"{"edge":"E","from":"a","to":"b","data":{"w":1}}"#,
        "line 1: edge:E.w: the type declares no such property (it has none): correct the name or remove it",
    );
}
