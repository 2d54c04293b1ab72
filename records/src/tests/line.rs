use std::sync::Arc;

use arrow_array::{Float32Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::Schema;
use graph::schema::Vintage;

use super::*;

const SOURCE: &str = "
node N {
    b: Blob? bo: Bool? d: Date? f: F32? g: F64? i: I64? l: [DateTime]? s: String? t: DateTime? u: U64? v: Vector(2)?
}
edge E: N -> N { w: I32? }
";

/// The lines of what `input` reads as.
fn printed(types: &Types, input: &str) -> Result<String, String> {
    let records = read(types, input).unwrap();
    let table = &types.tables()[records[0].table];
    let batch = batch(table, records.clone());
    lines(types, table, &batch, &records).map_err(|e| e.to_string())
}

#[test]
fn values_as_they_are_printed() {
    let cases = [
        ("", ""),
        (r#""b":"base64:iVBORw==""#, r#""b":"base64:iVBORw==""#),
        (r#""b":"base64:""#, r#""b":"base64:""#),
        (r#""b":"s3://b/\"k""#, r#""b":"s3://b/\"k""#),
        (r#""bo":true,"b":null"#, r#""bo":true"#),
        (r#""d":20517"#, r#""d":"2026-03-05""#),
        (
            r#""f":0.10000000149011612,"g":0.10000000149011612"#,
            r#""f":0.1,"g":0.10000000149011612"#,
        ),
        (r#""f":90,"g":1e16"#, r#""f":90.0,"g":1e+16"#),
        (r#""i":-9007199254740993"#, r#""i":-9007199254740993"#),
        (r#""u":18446744073709551615"#, r#""u":18446744073709551615"#),
        (r#""t":1772748000000"#, r#""t":"2026-03-05T22:00:00""#),
        (r#""t":1772748000007"#, r#""t":"2026-03-05T22:00:00.007""#),
        (
            r#""l":[0,null,1]"#,
            r#""l":["1970-01-01T00:00:00",null,"1970-01-01T00:00:00.001"]"#,
        ),
        (r#""l":[]"#, r#""l":[]"#),
        (r#""s":"ä\u0001\n\"""#, r#""s":"ä\u0001\n\"""#),
        (r#""v":[1,0.5],"s":"""#, r#""s":"","v":[1.0,0.5]"#),
    ];
    for vintage in [Vintage::Legacy, Vintage::Current] {
        let types = types(SOURCE, vintage);
        for (data, expected) in cases {
            let input = format!(r#"{{"type":"N","id":"x \" y","data":{{{data}}}}}"#);
            let expected =
                format!("{{\"type\":\"N\",\"id\":\"x \\\" y\",\"data\":{{{expected}}}}}\n");
            assert_eq!(printed(&types, &input), Ok(expected));
        }
    }
}

#[test]
fn the_envelope_of_an_edge() {
    for vintage in [Vintage::Legacy, Vintage::Current] {
        let types = types(SOURCE, vintage);
        assert_eq!(
            printed(
                &types,
                r#"{"edge":"e","to":"y","from":"x","id":"i","data":{"w":1}}"#
            ),
            Ok(
                "{\"edge\":\"E\",\"id\":\"i\",\"from\":\"x\",\"to\":\"y\",\"data\":{\"w\":1}}\n"
                    .to_string()
            )
        );
    }
}

#[test]
fn a_date_without_a_text_names_the_row() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.node("N").unwrap()];
    // A load refuses such a value; a stored row of another writer can hold it.
    let stored = |property: &str, value: Value| {
        let mut records = read(&types, r#"{"type":"N","id":"x","data":{}}"#).unwrap();
        records[0].values[table.property(property).unwrap()] = value;
        let made = batch(table, records.clone());
        lines(&types, table, &made, &records).unwrap_err()
    };
    assert_eq!(
        stored("d", Value::Date(2_932_897)).to_string(),
        "node:N.d: row \"x\": the stored Date 2932897 is outside of the years 0 to 9999 and has no text: correct \
         the value"
    );
    assert_eq!(
        stored("l", Value::List(vec![Value::DateTime(253_402_300_800_000)])).to_string(),
        "node:N.l: row \"x\": the stored DateTime 253402300800000 is outside of the years 0 to 9999 and has no \
         text: correct the value"
    );
}

#[test]
fn columns_are_matched_by_name_in_either_vintage() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.edge("E").unwrap()];
    let records = read(
        &types,
        r#"{"edge":"E","from":"x","to":"y","id":"i","data":{"w":1}}"#,
    )
    .unwrap();
    let made = batch(table, records.clone());
    let line = lines(&types, table, &made, &records).unwrap();
    let shuffled = made.project(&[3, 1, 0, 2]).unwrap();
    assert_eq!(lines(&types, table, &shuffled, &records).unwrap(), line);
    let fields: Vec<_> = ["w", "dst", "id", "src"]
        .iter()
        .zip([3, 2, 0, 1])
        .map(|(name, at)| made.schema().field(at).clone().with_name(*name))
        .collect();
    let columns = [3, 2, 0, 1].map(|at| made.column(at).clone()).to_vec();
    let other = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    assert_eq!(lines(&types, table, &other, &records).unwrap(), line);
}

#[test]
fn the_id_column_of_the_own_vintage_goes_first() {
    let types = types("node N { s: String? }", Vintage::Current);
    let table = &types.tables()[0];
    let field = |at: usize, name: &str| table.schema.field(at).clone().with_name(name);
    let schema = Schema::new(vec![field(0, "id"), field(0, "__id"), field(1, "s")]);
    let columns: Vec<arrow_array::ArrayRef> = ["stray", "own", "a"]
        .map(|text| Arc::new(StringArray::from(vec![text])) as _)
        .to_vec();
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let mut out = Vec::new();
    let writer = LineWriter::new(&types, table);
    writer.line(&batch, 0, &[], &mut out).unwrap();
    let line = "{\"type\":\"N\",\"id\":\"own\",\"data\":{\"s\":\"a\"}}\n";
    assert_eq!(String::from_utf8(out).unwrap(), line);
}

#[test]
fn a_property_called_id_is_not_the_id() {
    let types = types("node N { id: String? }", Vintage::Current);
    let input = r#"{"type":"N","id":"x","data":{"id":"y"}}"#;
    assert_eq!(printed(&types, input), Ok(format!("{input}\n")));
    let table = &types.tables()[0];
    let records = read(&types, input).unwrap();
    let stripped = batch(table, records.clone()).project(&[1]).unwrap();
    assert_eq!(
        lines(&types, table, &stripped, &records)
            .unwrap_err()
            .to_string(),
        "node:N: the rows have no column '__id'"
    );
}

#[test]
fn floats_that_are_no_numbers_are_null() {
    let types = types("node N { f: F32? g: F64? }", Vintage::Current);
    let table = &types.tables()[0];
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["x"])),
        Arc::new(Float32Array::from(vec![f32::NAN])),
        Arc::new(Float64Array::from(vec![f64::NEG_INFINITY])),
    ];
    let batch = RecordBatch::try_new(table.schema.clone(), columns).unwrap();
    let mut out = b"kept".to_vec();
    let writer = LineWriter::new(&types, table);
    writer.line(&batch, 0, &[], &mut out).unwrap();
    let line = "kept{\"type\":\"N\",\"id\":\"x\",\"data\":{\"f\":null,\"g\":null}}\n";
    assert_eq!(String::from_utf8(out).unwrap(), line);
}

#[test]
fn blob_columns_are_not_read() {
    let types = types(SOURCE, Vintage::Current);
    let table = &types.tables()[types.node("N").unwrap()];
    let records = read(
        &types,
        r#"{"type":"N","id":"x","data":{"b":"base64:AQ==","s":"a"}}"#,
    )
    .unwrap();
    let made = batch(table, records.clone());
    let without: Vec<_> = (0..made.num_columns()).filter(|i| *i != 1).collect();
    let projected = made.project(&without).unwrap();
    let line = "{\"type\":\"N\",\"id\":\"x\",\"data\":{\"b\":\"base64:AQ==\",\"s\":\"a\"}}\n";
    assert_eq!(lines(&types, table, &projected, &records).unwrap(), line);
    let writer = LineWriter::new(&types, table);
    let mut out = b"kept".to_vec();
    let error = writer.line(&made, 0, &[], &mut out).unwrap_err();
    assert_eq!(error.to_string(), "node:N: 0 blobs for a row, expected 1");
    let error = writer.line(&made, 1, &[None], &mut out).unwrap_err();
    assert_eq!(error.to_string(), "node:N: the batch has no row 1");
    let half = made.project(&[0, 8]).unwrap();
    let error = writer.line(&half, 0, &[None], &mut out).unwrap_err();
    assert_eq!(error.to_string(), "node:N: the rows have no column 'bo'");
    assert_eq!(out, b"kept");
}

#[test]
fn properties_that_an_image_does_not_have_are_left_out() {
    let types = types(
        "node N { a: String b: Blob? c: Blob? d: String? }",
        Vintage::Current,
    );
    let table = &types.tables()[0];
    let input = r#"{"type":"N","id":"x","data":{"a":"1","c":"base64:AQ==","d":"4"}}"#;
    let records = read(&types, input).unwrap();
    let made = batch(table, records);
    let columns = |names: &[&str]| {
        let index = |n: &&str| made.schema().index_of(n).unwrap();
        made.project(&names.iter().map(index).collect::<Vec<_>>())
            .unwrap()
    };
    let printed = |has: &[&str], blobs: &[Option<BlobCell<'_>>]| {
        let names: Vec<&str> = ["__id"].iter().chain(has).copied().collect();
        let writer = LineWriter::of_image(&types, table, |p| has.contains(&p.name.as_str()));
        let mut out = Vec::new();
        writer.line(&columns(&names), 0, blobs, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let one = Some(BlobCell::Bytes(&[1]));
    let head = r#"{"type":"N","id":"x","data":"#;
    assert_eq!(printed(&[], &[]), format!("{head}{{}}}}\n"));
    assert_eq!(printed(&["d"], &[]), format!("{head}{{\"d\":\"4\"}}}}\n"));
    // Of two blobs the one that is there.
    let line = format!("{head}{{\"a\":\"1\",\"c\":\"base64:AQ==\"}}}}\n");
    assert_eq!(printed(&["a", "c"], &[one]), line);
}

#[test]
fn a_null_id_is_an_error() {
    let types = types("node N { s: String? }", Vintage::Current);
    let table = &types.tables()[0];
    let fields: Vec<_> = table
        .schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_nullable(true))
        .collect();
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(StringArray::from(vec![None::<&str>])),
        Arc::new(StringArray::from(vec!["x"])),
    ];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let error = LineWriter::new(&types, table).line(&batch, 0, &[], &mut Vec::new());
    assert_eq!(
        error.unwrap_err().to_string(),
        "node:N: column '__id' is null"
    );
}
