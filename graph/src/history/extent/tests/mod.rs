#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod address;
mod random;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use lance_file::versions::v2_2;
use lance_file::writer::{FileWriter, FileWriterOptions};
use lance_io::object_store::ObjectStore;
use object_store::path::Path;

use super::*;
use crate::error::{Error, Result};
use crate::history::path::ExtentKey;
use crate::history::testing::{
    A1, FEATURE, SCHEMA, addressed, block_id, commit, example_records, root, ulid,
};
use crate::model::measure::{MAX_OBJECT_BYTES, MAX_RECORD_BYTES, record_bytes};
use crate::model::{Commit, HistoryRecord, Pin, PinMetadata, TableIdentity, TableRow, TableState};
use crate::store::Tail;

async fn encoded(records: &[HistoryRecord]) -> Bytes {
    match encode(records).await.unwrap() {
        Encoded::Fits(bytes) => bytes,
        Encoded::TooLarge => panic!("too large"),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Write a batch of any shape as a 2.2 file.
async fn raw_file(batch: &RecordBatch) -> Bytes {
    let store = ObjectStore::memory();
    let path = Path::from("x");
    let schema = lance_core::datatypes::Schema::try_from(batch.schema().as_ref()).unwrap();
    let sink = store.create(&path).await.unwrap();
    let writer = v2_2::Writer::try_new(sink, schema, FileWriterOptions::default()).unwrap();
    let mut writer = FileWriter::from(writer);
    writer.write_batch(batch).await.unwrap();
    writer.finish().await.unwrap();
    store.read_one_all(&path).await.unwrap()
}

fn example_batch() -> RecordBatch {
    let records = example_records();
    columns::to_batch(&records.iter().collect::<Vec<_>>()).unwrap()
}

/// The batch with field `i` of the struct at column `at` replaced.
fn with_field(batch: &RecordBatch, at: usize, i: usize, values: ArrayRef) -> RecordBatch {
    let record = batch.column(at).as_struct();
    let mut children = record.columns().to_vec();
    children[i] = values;
    let mut all = batch.columns().to_vec();
    all[at] = std::sync::Arc::new(StructArray::new(record.fields().clone(), children, None));
    RecordBatch::try_new(batch.schema(), all).unwrap()
}

#[tokio::test]
async fn records_round_trip() {
    let mut records = example_records();
    records[1].tables.clear();
    records[1].commit.actor_id = Some(String::new());
    records[2].commit.schema_contract = None;
    records[2].commit.schema_content_hash = None;
    let bytes = encoded(&records).await;
    assert_eq!(
        bytes[bytes.len() - 8..],
        [2, 0, 2, 0, b'L', b'A', b'N', b'C']
    );
    let columns = &bytes[bytes.len() - 12..bytes.len() - 8];
    assert_eq!(columns, 12u32.to_le_bytes());
    assert_eq!(decode_records("x", bytes).await.unwrap(), records);
}

#[tokio::test]
async fn an_extent_without_any_table_round_trips() {
    let record = HistoryRecord {
        commit: commit(A1, 1, None),
        tables: Vec::new(),
    };
    let bytes = encoded(std::slice::from_ref(&record)).await;
    assert_eq!(decode_records("x", bytes).await.unwrap(), [record]);
}

#[tokio::test]
async fn a_full_block_round_trips() {
    let records: Vec<HistoryRecord> = (0..16_384u16)
        .map(|slot| {
            let parent = slot
                .checked_sub(1)
                .map(|p| block_id(7, p, 8_000 + u128::from(p)));
            addressed(7, slot, 8_000 + u128::from(slot), parent.as_deref())
        })
        .collect();
    let bytes = encoded(&records).await;
    let (dir, root) = root().await;
    let key = ExtentKey::Range {
        block: ulid(7),
        start: 0,
        end: 16_383,
    };
    std::fs::create_dir_all(dir.path().join(key.key()).parent().unwrap()).unwrap();
    std::fs::write(dir.path().join(key.key()), &bytes).unwrap();
    // Lineage alone, from a short suffix and ranged reads before it.
    let tail = root.get_tail(&key.key(), 4_096).await.unwrap().unwrap();
    let lineage = decode_lineage(&root, &key.key(), tail).await.unwrap();
    assert!(lineage.fetched > 0 && lineage.fetched < bytes.len() as u64);
    let expected: Vec<Commit> = records.iter().map(|r| r.commit.clone()).collect();
    assert_eq!(lineage.commits, expected);
    check_address(&key, &expected.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(decode_records("x", bytes).await.unwrap(), records);
    let refused = encode(&[records, vec![addressed(7, 0, 1, None)]].concat()).await;
    assert!(matches!(refused, Err(Error::Internal(_))));
    let none: [HistoryRecord; 0] = [];
    assert!(matches!(encode(&none).await, Err(Error::Internal(_))));
}

/// A record at its bound fits one object, and what was written can be read.
#[tokio::test]
async fn the_largest_record_fits() {
    let mut record = HistoryRecord {
        commit: commit(A1, 1, None),
        tables: Vec::new(),
    };
    let filler = "p".repeat(1_024);
    for n in 1.. {
        let identity = TableIdentity::new(n, 1).unwrap();
        record.tables.push(TableRow {
            identity,
            table_key: "node:A".into(),
            table_path: crate::model::table::canonical_path("node:A", identity).unwrap(),
            state: TableState::Pinned(Pin {
                table_version: n,
                table_branch: None,
                row_count: n,
                metadata: PinMetadata {
                    manifest_path: format!("{filler}{n}"),
                    ..PinMetadata::default()
                },
                manifest_version: 1,
            }),
        });
        if n % 512 == 0 && record_bytes(&record) > MAX_RECORD_BYTES - 1_048_576 {
            break;
        }
    }
    let record = [record];
    let bytes = encoded(&record).await;
    assert!((bytes.len() as u64) < MAX_OBJECT_BYTES);
    assert_eq!(decode_records("x", bytes).await.unwrap(), record);
    // Two fill half the cap in both measures and are still read back; three are cut.
    let two = [record[0].clone(), record[0].clone()];
    assert_eq!(decode_records("x", encoded(&two).await).await.unwrap(), two);
    let many: Vec<&HistoryRecord> = std::iter::repeat_n(&record[0], 3).collect();
    assert_eq!(encode(&many).await.unwrap(), Encoded::TooLarge);
}

#[tokio::test]
async fn footers_are_checked_before_lance() {
    let good = encoded(&example_records()).await;
    let at = good.len() - 40;
    for (what, offset, value) in [
        ("metadata start", 0, u64::MAX),
        ("column table", 8, u64::MAX),
        ("buffer table", 16, u64::MAX),
        ("descending", 0, good.len() as u64 - 41),
        ("global buffers", 24, 0x0000_000c_ffff_ffff),
        ("columns", 24, 0xffff_ffff_0000_0001),
        ("version", 32, 0x434e_414c_0003_0002),
        ("magic", 32, 0x444e_414c_0002_0002),
    ] {
        let mut bytes = good.to_vec();
        bytes[at + offset..at + offset + 8].copy_from_slice(&value.to_le_bytes());
        let refused = decode_records("x", bytes.into()).await;
        assert!(
            matches!(refused, Err(Error::Internal(ref m)) if m.contains("not an extent file")),
            "{what}: {refused:?}"
        );
    }
    for length in [0, 1, 39, 40] {
        let refused = decode_records("x", good.slice(good.len() - length..)).await;
        assert!(matches!(refused, Err(Error::Internal(_))), "{length}");
    }
}

#[tokio::test]
async fn rows_that_break_a_rule_are_refused() {
    use arrow_array::{StringArray, UInt32Array, UInt64Array};
    use std::sync::Arc;
    let good = example_batch();
    let texts = |v: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from(v.to_vec())) };
    let masks = |v: [u32; 3]| -> ArrayRef { Arc::new(UInt32Array::from(v.to_vec())) };
    let longs = |v: [u64; 3]| -> ArrayRef { Arc::new(UInt64Array::from(v.to_vec())) };
    let record = |i, values| with_field(&good, 2, i, values);
    for (what, batch, part) in [
        (
            "stale text",
            record(4, texts(["x", A1, A1])),
            "marks parent_commit_id null",
        ),
        (
            "version null",
            record(12, masks([115 | 4, 35, 64])),
            "marks graph_manifest_version null",
        ),
        (
            "partial contract",
            record(12, masks([115, 35, 64 | 1 << 10])),
            "marks schema_identity_domain",
        ),
        (
            "marker",
            {
                let batch = record(8, texts(["", "ir1", "ir1"]));
                let batch = with_field(&batch, 2, 10, texts(["", "dom1", "dom1"]));
                let batch = with_field(&batch, 2, 11, texts(["", SCHEMA, SCHEMA]));
                let batch = with_field(&batch, 2, 9, longs([0, 1, 1]));
                let inherited = 115 | 1 << 8 | 1 << 10 | 1 << 11;
                with_field(&batch, 2, 12, masks([inherited, 35, 64]))
            },
            "inherits",
        ),
        (
            "identity above u32",
            record(9, longs([1, 1 << 32, 1])),
            "schema identity version",
        ),
        (
            "identity zero",
            record(9, longs([1, 0, 1])),
            "schema identity version",
        ),
        (
            "content hash alone",
            {
                let batch = record(11, texts([SCHEMA, "", SCHEMA]));
                with_field(&batch, 2, 12, masks([115, 35 | 1 << 11, 64]))
            },
            "set together",
        ),
        (
            "empty id",
            {
                let mut columns = good.columns().to_vec();
                columns[1] = texts(["", "b", "c"]);
                RecordBatch::try_new(good.schema(), columns).unwrap()
            },
            "empty id",
        ),
    ] {
        let refused = decode_records("x", raw_file(&batch).await).await;
        assert!(
            matches!(refused, Err(Error::Internal(ref m)) if m.contains(part)),
            "{what}: {refused:?}"
        );
    }
    // Bits above the fields are not examined.
    let batch = record(12, masks([115 | 1 << 31, 35, 64]));
    assert_eq!(
        decode_records("x", raw_file(&batch).await).await.unwrap(),
        example_records()
    );
}

#[tokio::test]
async fn other_columns_are_refused() {
    let good = example_batch();
    let names: Vec<Vec<usize>> = vec![vec![1, 2, 0], vec![1, 2], vec![0, 2, 1]];
    for order in names {
        let batch = good.project(&order).unwrap();
        let refused = decode_records("x", raw_file(&batch).await).await;
        assert!(
            matches!(refused, Err(Error::Internal(ref m)) if m.contains("columns of an extent"))
        );
    }
    let mut fields = good.schema().fields().to_vec();
    fields[1] = std::sync::Arc::new(fields[1].as_ref().clone().with_nullable(true));
    let batch = RecordBatch::try_new(
        std::sync::Arc::new(Schema::new(fields)),
        good.columns().to_vec(),
    );
    let refused = decode_records("x", raw_file(&batch.unwrap()).await).await;
    assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("columns of an extent")));
    assert!(matches!(
        good.schema().field(0).data_type(),
        DataType::List(_)
    ));
}
