//! The round trip, and what the tests of the modules share.

use arrow_array::RecordBatch;
use graph::schema::{ParseMode, Vintage, compile, resolve};
use proptest::prelude::*;

use crate::*;

mod batch_rows;
mod line;
mod strategy;
mod types;
mod unique;

const DOMAIN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// The types of a schema source.
pub(crate) fn types(source: &str, vintage: Vintage) -> Types {
    try_types(source, vintage).unwrap()
}

/// The types of a schema source that may be refused.
pub(crate) fn try_types(source: &str, vintage: Vintage) -> graph::Result<Types> {
    let compiled = compile(source, ParseMode::Admission, Some(vintage)).unwrap();
    Types::of(&resolve(&compiled, None, DOMAIN, vintage).unwrap())
}

/// The records of `input` up to the first error.
pub(crate) fn read(types: &Types, input: &str) -> Result<Vec<Record>, String> {
    let mut reader = RecordReader::new(input.as_bytes(), types);
    let records: Result<Vec<_>, _> = reader.by_ref().collect();
    assert!(reader.next().is_none());
    records.map_err(|e| e.to_string())
}

/// A batch of records of one table.
pub(crate) fn batch(table: &TableType, records: Vec<Record>) -> RecordBatch {
    let mut builder = BatchBuilder::new(table);
    for record in records {
        builder.push(record).unwrap();
    }
    builder.finish().unwrap().0
}

/// The lines of a batch, with the blobs of the values it was made of.
pub(crate) fn lines(
    types: &Types,
    table: &TableType,
    batch: &RecordBatch,
    records: &[Record],
) -> Result<String, RecordError> {
    let writer = LineWriter::new(types, table);
    let mut out = Vec::new();
    for (row, record) in records.iter().enumerate() {
        let blobs: Vec<_> = table
            .properties
            .iter()
            .zip(&record.values)
            .filter(|(property, _)| property.is_blob())
            .map(|(_, value)| match value {
                Value::Blob(Blob::Bytes(bytes)) => Some(BlobCell::Bytes(bytes)),
                Value::Blob(Blob::External(uri)) => Some(BlobCell::External(uri)),
                _ => None,
            })
            .collect();
        writer.line(batch, row, &blobs, &mut out)?;
    }
    Ok(String::from_utf8(out).unwrap())
}

/// A schema of this source and records for its tables come back from their lines.
fn round_trip(sample: &strategy::Sample) {
    let types = types(&sample.source, sample.vintage);
    for (index, table) in types.tables().iter().enumerate() {
        let records: Vec<Record> = sample
            .rows
            .iter()
            .enumerate()
            .map(|(line, row)| {
                let mut record = row.record(index, table);
                record.line = line as u64 + 1;
                record
            })
            .collect();
        let first = batch(table, records.clone());
        let text = lines(&types, table, &first, &records).unwrap();
        let back = read(&types, &text).unwrap();
        assert_eq!(back, records, "{text}");
        assert_eq!(batch(table, back.clone()), first);
        assert_eq!(lines(&types, table, &first, &back).unwrap(), text);
        assert_eq!(first.schema(), table.schema);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_come_back_from_their_lines(sample in strategy::sample()) {
        round_trip(&sample);
    }

    #[test]
    fn no_text_panics(text in "[{}\\[\\]\":,a-z0-9.\\\\ \n-]{0,60}", data in "[{}\\[\\]\":,ab0-9.e ]{0,20}") {
        let types = types("node N { a: I32? b: [String]? }", Vintage::Current);
        let _ = read(&types, &text);
        let _ = read(&types, &format!("{{\"type\":\"N\",\"data\":{{\"a\":{data}}}}}"));
        let _ = read(&types, &format!("{{\"data\":{{\"b\":[{data}]}},\"type\":\"N\"}}"));
    }
}
