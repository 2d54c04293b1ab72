use std::sync::Arc;

use arrow_array::{Float64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use graph::schema::Vintage;

use super::*;

const SOURCE: &str = "
node N {
    a: String? @unique b: I32? f: F64? g: F32? l: [String]? v: Vector(2)? t: DateTime? ok: Bool?
    @unique(a, b) @unique(f) @unique(l) @unique(v) @unique(g, ok, t)
}
edge E: N -> N { w: I32? @unique(@src, @dst) }
";

/// The texts of the constraint whose members are these properties.
fn texts(
    types: &Types,
    batch: &RecordBatch,
    members: &[&str],
) -> graph::Result<Vec<Option<String>>> {
    let table = &types.tables()[types.node("N").unwrap()];
    let mut wanted: Vec<_> = members
        .iter()
        .map(|name| Member::Property(table.property(name).unwrap()))
        .collect();
    wanted.sort();
    let constraint = table
        .unique
        .iter()
        .find(|members| {
            let mut members = members.to_vec();
            members.sort();
            members == wanted
        })
        .unwrap();
    unique_texts(types, table, constraint, batch)
}

fn nodes(types: &Types, data: &[&str]) -> RecordBatch {
    let input: String = data
        .iter()
        .map(|data| format!(r#"{{"type":"N","data":{{{data}}}}}"#))
        .collect();
    let table = &types.tables()[types.node("N").unwrap()];
    batch(table, read(types, &input).unwrap())
}

#[test]
fn rows_conflict_when_every_member_is_equal() {
    let types = types(SOURCE, Vintage::Current);
    // Members, rows, and for each row the first one it conflicts with.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [Option<usize>]);
    let cases: [Case<'_>; 6] = [
        (
            &["a"],
            &[r#""a":"x""#, r#""a":"y""#, r#""a":"x""#, "", r#""a":"""#],
            &[Some(0), Some(1), Some(0), None, Some(4)],
        ),
        (
            &["a", "b"],
            &[
                r#""a":"x","b":1"#,
                r#""a":"x","b":11"#,
                r#""a":"x","b":1"#,
                r#""a":"x""#,
                r#""b":1"#,
                r#""a":"x\",\"1","b":1"#,
            ],
            &[Some(0), Some(1), Some(0), None, None, Some(5)],
        ),
        (
            &["f"],
            &[r#""f":0.0"#, r#""f":-0.0"#, r#""f":1"#, ""],
            &[Some(0), Some(0), Some(2), None],
        ),
        (
            &["l"],
            &[
                r#""l":["a","b"]"#,
                r#""l":["a,b"]"#,
                r#""l":[null]"#,
                r#""l":["null"]"#,
                r#""l":[]"#,
                "",
                r#""l":["a","b"]"#,
            ],
            &[Some(0), Some(1), Some(2), Some(3), Some(4), None, Some(0)],
        ),
        (
            &["v"],
            &[r#""v":[1,2]"#, r#""v":[1,2.0]"#, r#""v":[12,0]"#],
            &[Some(0), Some(0), Some(2)],
        ),
        (
            &["g", "ok", "t"],
            &[
                r#""g":0.1,"ok":true,"t":1"#,
                r#""g":0.10000000149011612,"ok":true,"t":"1970-01-01T00:00:00.001""#,
                r#""g":0.1,"ok":false,"t":1"#,
            ],
            &[Some(0), Some(0), Some(2)],
        ),
    ];
    for (members, rows, groups) in cases {
        let found = texts(&types, &nodes(&types, rows), members).unwrap();
        let first: Vec<_> = found
            .iter()
            .map(|text| {
                text.as_ref()
                    .map(|_| found.iter().position(|t| t == text).unwrap())
            })
            .collect();
        assert_eq!(first, groups, "{members:?} {found:?}");
    }
}

#[test]
fn endpoints_in_either_spelling() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.edge("E").unwrap()];
    let input = r#"{"edge":"E","from":"a","to":"b"}{"edge":"E","from":"b","to":"a"}"#;
    let made = batch(table, read(&types, input).unwrap());
    let constraint = &table.unique[0];
    let expected = unique_texts(&types, table, constraint, &made).unwrap();
    assert_ne!(expected[0], expected[1]);
    // A scan of the members alone, in another order.
    let scanned = made.project(&[2, 1]).unwrap();
    assert_eq!(
        unique_texts(&types, table, constraint, &scanned).unwrap(),
        expected
    );
    let names = ["w", "dst", "src", "id"];
    let fields: Vec<_> = names
        .iter()
        .zip([3, 2, 1, 0])
        .map(|(name, at)| made.schema().field(at).clone().with_name(*name))
        .collect();
    let columns = [3, 2, 1, 0].map(|at| made.column(at).clone()).to_vec();
    let other = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    assert_eq!(
        unique_texts(&types, table, constraint, &other).unwrap(),
        expected
    );
}

#[test]
fn what_cannot_be_compared() {
    let types = types(SOURCE, Vintage::Current);
    let column = |name: &str, array: arrow_array::ArrayRef| {
        let field = Field::new(name, array.data_type().clone(), true);
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
    };
    let nan = column("f", Arc::new(Float64Array::from(vec![f64::NAN])));
    let error = texts(&types, &nan, &["f"]).unwrap_err();
    assert!(
        matches!(&error, graph::Error::Refused(m) if m.starts_with("node:N.f: found NaN")),
        "{error}"
    );
    let typed = column("f", Arc::new(Int32Array::from(vec![1])));
    let error = texts(&types, &typed, &["f"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "node:N.f: the column is stored as {}, which is not its declared type",
            DataType::Int32
        )
    );
    assert!(matches!(error, graph::Error::Internal(_)));
    let error = texts(&types, &typed, &["a"]).unwrap_err();
    assert_eq!(error.to_string(), "node:N: the rows have no column 'a'");
}

#[test]
fn a_blob_is_never_unique() {
    let compiled = compile(
        "node N { b: Blob? @unique(b) }",
        ParseMode::Tolerant,
        Some(Vintage::Legacy),
    )
    .unwrap();
    let types = Types::of(&resolve(&compiled, None, DOMAIN, Vintage::Legacy).unwrap()).unwrap();
    let table = &types.tables()[0];
    let error = unique_texts(&types, table, &table.unique[0], &batch(table, vec![])).unwrap_err();
    assert!(
        matches!(&error, graph::Error::Refused(m) if m.starts_with("node:N.b: @unique over a Blob"))
    );
}
