use super::*;

const MILLIS: &str = "a count of milliseconds or a time such as \"2026-03-05T22:10:00.250Z\", without a zone in \
                      UTC, no finer than milliseconds (DateTime)";
const DAYS: &str = "a count of days or a date such as \"2026-03-05\" (Date)";

fn read_value(declared: &str, json: &str) -> Result<Value, String> {
    let types = types(&format!("node N {{ p: {declared} }}"), Vintage::Current);
    let first = format!(r#"{{"type":"N","data":{{"p":{json}}}}}"#);
    let second = format!(r#"{{"data":{{"p":{json}}},"type":"N"}}"#);
    let value = |input: &str| read(&types, input).map(|mut r| r.remove(0).values.remove(0));
    let (a, b) = (value(&first), value(&second));
    assert_eq!(a, b);
    a
}

#[test]
fn values_that_are_accepted() {
    let cases = [
        (
            "String",
            r#""ä\n\ud83d\ude00""#,
            Value::Text("ä\n😀".into()),
        ),
        ("String?", "null", Value::Null),
        ("enum(a, b)", r#""b""#, Value::Text("b".into())),
        ("Bool", "false", Value::Bool(false)),
        ("I32", "-2147483648", Value::I32(i32::MIN)),
        ("I64", "-9223372036854775808", Value::I64(i64::MIN)),
        ("I64", "9007199254740993", Value::I64(9007199254740993)),
        ("U32", "4294967295", Value::U32(u32::MAX)),
        ("U64", "18446744073709551615", Value::U64(u64::MAX)),
        ("F32", "1", Value::F32(1.0)),
        ("F32", "0.10000000149011612", Value::F32(0.1)),
        ("F32", "7.038531e-26", Value::F32(7.038531e-26)),
        (
            "F64",
            "18446744073709551616",
            Value::F64(18446744073709551616.0),
        ),
        ("F64", "1e+16", Value::F64(1e16)),
        ("Date", "20517", Value::Date(20517)),
        ("Date", r#""2026-03-05""#, Value::Date(20517)),
        ("DateTime", "-1", Value::DateTime(-1)),
        (
            "DateTime",
            r#""2026-03-05 22:00:00+01:00""#,
            Value::DateTime(1772744400000),
        ),
        ("Vector(2)", "[1,0.5]", Value::Vector(vec![1.0, 0.5])),
        ("Vector(2)?", "null", Value::Null),
        ("[I32]", "[]", Value::List(vec![])),
        (
            "[I32]",
            "[1,null,-2]",
            Value::List(vec![Value::I32(1), Value::Null, Value::I32(-2)]),
        ),
        (
            "[Date]?",
            r#"["1970-01-02",0]"#,
            Value::List(vec![Value::Date(1), Value::Date(0)]),
        ),
        ("[String]?", "null", Value::Null),
        (
            "Blob",
            r#""base64:AQI=""#,
            Value::Blob(Blob::Bytes(vec![1, 2])),
        ),
        (
            "Blob?",
            r#""s3://b/k""#,
            Value::Blob(Blob::External("s3://b/k".into())),
        ),
        ("Blob?", "null", Value::Null),
    ];
    for (declared, json, value) in cases {
        assert_eq!(read_value(declared, json), Ok(value), "{declared} {json}");
    }
}

#[test]
fn values_that_are_refused() {
    let long = format!("\"{}\"", "x".repeat(200));
    let cases = [
        ("String", "1", "found 1, expected a string (String)".to_string()),
        ("String", "null", "found null, expected a string (String): it must not be null".into()),
        ("String", "{\"a\":[1]}", "found an object, expected a string (String)".into()),
        ("String", "[1]", "found an array, expected a string (String)".into()),
        ("enum(a, b)", "\"c\"", "found \"c\", expected one of a, b".into()),
        ("enum(a, b)", "1", "found 1, expected a string (enum(a, b))".into()),
        ("Bool", "\"true\"", "found \"true\", expected true or false (Bool)".into()),
        ("I32", "2147483648", "found 2147483648, expected an integer from -2147483648 to 2147483647 (I32)".into()),
        ("I32", "1.0", "found 1.0, expected an integer from -2147483648 to 2147483647 (I32)".into()),
        ("U32", "-1", "found -1, expected an integer from 0 to 4294967295 (U32)".into()),
        ("I64", "9223372036854775808", "found 9223372036854775808, expected an integer from -9223372036854775808 to 9223372036854775807 (I64)".into()),
        ("U64", "\"1\"", "found \"1\", expected an integer from 0 to 18446744073709551615 (U64)".into()),
        ("F32", "1e39", "found 1e39, expected a number whose magnitude is at most 3.4028235e38 (F32)".into()),
        ("F64", "\"x\"", "found \"x\", expected a number (F64)".into()),
        ("F64", long.as_str(), format!("found \"{}...\", expected a number (F64)", "x".repeat(80))),
        ("Date", "\"2026-02-30\"", format!("found \"2026-02-30\", expected {DAYS}")),
        ("Date", "2147483648", format!("found 2147483648, expected {DAYS}")),
        ("DateTime", "\"2026-03-05T22:10:00.0001\"", format!("found \"2026-03-05T22:10:00.0001\", expected {MILLIS}")),
        ("DateTime", "true", format!("found true, expected {MILLIS}")),
        ("Vector(2)", "[1]", "found an array of 1 elements, expected an array of 2 numbers (Vector(2))".into()),
        ("Vector(2)", "[1,2,3,[]]", "found an array of 4 elements, expected an array of 2 numbers (Vector(2))".into()),
        ("Vector(2)", "[1,null]", "item 1: found null, expected a number whose magnitude is at most 3.4028235e38 (Vector(2))".into()),
        ("Vector(2)", "[1,1e39]", "item 1: found 1e39, expected a number whose magnitude is at most 3.4028235e38 (Vector(2))".into()),
        ("Vector(2)", "[\"1\",2]", "item 0: found \"1\", expected a number whose magnitude is at most 3.4028235e38 (Vector(2))".into()),
        ("Vector(2)", "\"1\"", "found \"1\", expected an array of 2 numbers (Vector(2))".into()),
        ("Vector(2)?", "{}", "found an object, expected an array of 2 numbers (Vector(2))".into()),
        ("[I32]", "1", "found 1, expected an array ([I32])".into()),
        ("[I32]", "{}", "found an object, expected an array ([I32])".into()),
        ("[I32]", "[1,2.5]", "item 1: found 2.5, expected an integer from -2147483648 to 2147483647 (I32)".into()),
        ("[I32]", "[[1]]", "item 0: found an array, expected an integer from -2147483648 to 2147483647 (I32)".into()),
        ("[Bool]?", "[true,0]", "item 1: found 0, expected true or false (Bool)".into()),
        ("Blob", "\"base64:AQI\"", "found \"base64:AQI\", expected \"base64:\" and padded base64, or a URI (Blob)".into()),
        ("Blob", "\"\"", "found \"\", expected \"base64:\" and padded base64, or a URI (Blob)".into()),
        ("Blob", "[1]", "found an array, expected \"base64:\" and padded base64, or a URI (Blob)".into()),
    ];
    for (declared, json, message) in cases {
        assert_eq!(
            read_value(declared, json),
            Err(format!("line 1: node:N.p: {message}")),
            "{declared} {json}"
        );
    }
}

#[test]
fn a_missing_property_is_null() {
    let types = types("node N { a: I32? b: [String] }", Vintage::Current);
    let record = one(&types, r#"{"type":"N","data":{"b":[]}}"#);
    assert_eq!(record.values, [Value::Null, Value::List(vec![])]);
    for input in [
        r#"{"type":"N"}"#,
        r#"{"type":"N","data":{"a":1}}"#,
        r#"{"data":{},"type":"N"}"#,
    ] {
        refused(
            &types,
            input,
            "line 1: node:N.b: missing, expected an array ([String]): it must not be null",
        );
    }
}

#[test]
fn rules_are_applied_with_the_line() {
    let source = "node N {
        a: I64? b: [F32]? c: String? d: [String]? e: enum(on, off)?
        @range(a, 1..5) @range(b, 0.0..0.1) @check(c, \"^[a-z]+$\") @check(d, \"x\")
    }";
    let types = types(source, Vintage::Current);
    let cases = [
        (r#""a":5"#, None),
        (r#""a":null"#, None),
        (
            r#""a":6"#,
            Some("a: found 6, expected a number within 1..5 (@range)"),
        ),
        (r#""b":[0.1,null,0]"#, None),
        (
            r#""b":[0.1,0.2]"#,
            Some("b: item 1: found 0.2, expected a number within 0.0..0.1 (@range)"),
        ),
        (r#""c":"abc""#, None),
        (
            r#""c":"ab1""#,
            Some("c: found \"ab1\", expected text that matches \"^[a-z]+$\" (@check)"),
        ),
        (r#""d":["axb",null]"#, None),
        (
            r#""d":["axb","b"]"#,
            Some("d: item 1: found \"b\", expected text that matches \"x\" (@check)"),
        ),
        (r#""e":"off""#, None),
        (
            r#""e":"OFF""#,
            Some("e: found \"OFF\", expected one of off, on"),
        ),
    ];
    for (data, message) in cases {
        let input = format!("\n{{\"type\":\"N\",\"data\":{{{data}}}}}");
        match message {
            None => assert_eq!(one(&types, &input).line, 2),
            Some(message) => refused(&types, &input, &format!("line 2: node:N.{message}")),
        }
    }
}
