use graph::schema::Vintage;

use crate::tests::{read, types};
use crate::*;

mod envelope;
mod ids;
mod values;

/// The one record of `input`.
fn one(types: &Types, input: &str) -> Record {
    let mut records = read(types, input).unwrap();
    assert_eq!(records.len(), 1, "{input}");
    records.remove(0)
}

/// `input` is refused with exactly this text.
fn refused(types: &Types, input: &str, message: &str) {
    assert_eq!(read(types, input).unwrap_err(), message, "{input}");
}

/// `input` is refused with a text that starts and ends like this.
fn refused_around(types: &Types, input: &str, start: &str, end: &str) {
    let error = read(types, input).unwrap_err();
    assert!(error.starts_with(start) && error.ends_with(end), "{error}");
}

/// The observatory sample of release 0.10.
const OBSERVATORY: &str = "
interface Named { title: String @index }
node Instrument implements Named {
    code: String @key kind: enum(camera, spectrograph, photometer) aperture_mm: U32? gain: F32?
    active: Bool filters: [String]?
}
node Target implements Named {
    designation: String @key ra_deg: F64 dec_deg: F64 magnitude: F32? first_seen: Date?
    embedding: Vector(4)? thumbnail: Blob?
}
node Night { night_id: String @key starts_at: DateTime seeing: F64? note: String? exposures: I64 }
edge Observed: Night -> Target { exposure_s: F64 taken_at: DateTime? }
edge UsedOn: Instrument -> Night { @unique(src, dst) }
";

#[test]
fn an_export_of_0_10_is_read() {
    let types = types(OBSERVATORY, Vintage::Legacy);
    let input = r#"{"edge":"Observed","from":"2026-03-05","to":"HD 100518","data":{"id":"01M8PHSBHG0407JYJ7E4EPFRB2","exposure_s":90.0,"taken_at":1772748000000}}
{"edge":"UsedOn","from":"CAM-1","to":"2026-03-04","data":{"id":"01M8PHSBHG8WWZ15VVEV57A070"}}
{"type":"Target","data":{"id":"NGC 102","dec_deg":-1.0,"designation":"NGC 102","embedding":[1.0,2.0,0.0,0.10000000149011612],"first_seen":null,"magnitude":9.100000381469727,"ra_deg":2.0,"thumbnail":"base64:iVBORw==","title":"Cluster 1.2"}}
{"type":"Night","data":{"id":"2026-03-05","exposures":3,"night_id":"2026-03-05","note":null,"seeing":null,"starts_at":1772740800000}}
"#;
    let records = read(&types, input).unwrap();
    let found: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.line,
                types.tables()[r.table].table_key.as_str(),
                r.id.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (1, "edge:Observed", "01M8PHSBHG0407JYJ7E4EPFRB2"),
            (2, "edge:UsedOn", "01M8PHSBHG8WWZ15VVEV57A070"),
            (3, "node:Target", "NGC 102"),
            (4, "node:Night", "2026-03-05"),
        ]
    );
    assert!(records.iter().all(|r| r.supplied && r.alias.is_none()));
    assert_eq!(
        records[0].endpoints,
        Some(("2026-03-05".to_string(), "HD 100518".to_string()))
    );
    assert_eq!(
        records[0].values,
        [Value::F64(90.0), Value::DateTime(1772748000000)]
    );
    assert_eq!(records[1].values, []);
    assert_eq!(records[2].endpoints, None);
    assert_eq!(
        records[2].values,
        [
            Value::F64(-1.0),
            Value::Text("NGC 102".into()),
            Value::Vector(vec![1.0, 2.0, 0.0, 0.1]),
            Value::Null,
            Value::F32(9.1),
            Value::F64(2.0),
            Value::Blob(Blob::Bytes(vec![0x89, b'P', b'N', b'G'])),
            Value::Text("Cluster 1.2".into()),
        ]
    );
}

#[test]
fn pretty_printed_records_have_the_line_they_start_at() {
    let types = types("node N { a: I32? }", Vintage::Current);
    let input = "\n{\n  \"type\": \"N\",\n  \"data\": {\n    \"a\": 1\n  }\n}\n{\"type\":\"N\"} {\"type\":\"N\",\"data\":{\n\"a\":}}";
    let mut reader = RecordReader::new(input.as_bytes(), &types);
    let lines: Vec<_> = reader.by_ref().take(2).map(|r| r.unwrap().line).collect();
    assert_eq!(lines, [2, 8]);
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 8: node:N.a: not valid JSON: expected value at line 9, column 5"
    );
    assert!(reader.next().is_none());
}

#[test]
fn an_empty_input_has_no_records() {
    let types = types("node N { a: I32? }", Vintage::Current);
    assert_eq!(read(&types, "").unwrap(), []);
    assert_eq!(read(&types, " \r\n\t\n").unwrap(), []);
}
