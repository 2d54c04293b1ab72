//! Records of extents that contradict their copies, their parents or their place.

use bytes::Bytes;
use graph::history::extent::{Encoded, decode_records, encode};
use graph::model::HistoryRecord;
use verify::{Code, Report};

use crate::semantic::{block, damaged, finds, first_pin};
use crate::support::publish::publish;
use crate::support::{Case, published, run, verify};

async fn store(case: &Case, key: &str, records: &[HistoryRecord]) {
    let Encoded::Fits(bytes) = encode(records).await.unwrap() else {
        panic!("it fits");
    };
    case.write(key, &bytes);
}

/// Change the records of the first block extent.
async fn in_block(change: impl FnOnce(&mut Vec<HistoryRecord>)) -> Report {
    damaged(async |case| {
        let (key, mut records) = block(case).await;
        change(&mut records);
        store(case, &key, &records).await;
    })
    .await
}

#[test]
fn records_of_an_extent() {
    run(|| async {
        let report = in_block(|r| first_pin(&mut r[1].tables).row_count += 1).await;
        finds(
            &report,
            Code::RecordInconsistent,
            &["all.lance", "do not follow"],
        );
        let report = in_block(|r| first_pin(&mut r[0].tables).row_count += 1).await;
        finds(&report, Code::RecordInconsistent, &[]);
        let report = in_block(|r| {
            r[1].tables.pop();
        })
        .await;
        finds(&report, Code::RecordInconsistent, &["not there any more"]);
        let report = in_block(|r| {
            let table = r[1].tables.iter_mut().find(|t| t.state.pin().is_some());
            let key = &mut table.unwrap().table_key;
            *key = key.replace(':', ":X");
        })
        .await;
        finds(&report, Code::RecordInconsistent, &["renamed"]);
        let report = in_block(|r| r[1].commit.generation += 1).await;
        finds(&report, Code::CommitInconsistent, &["generation"]);
        let report = in_block(|r| r[1].commit.parent_commit_id = Some("other".into())).await;
        finds(&report, Code::CommitMissing, &["first parent other"]);
        let report = in_block(|r| r[1].commit.graph_manifest_version = 1).await;
        finds(&report, Code::CommitInconsistent, &["dated at version 1"]);
        let report = in_block(|r| r[1].commit.schema_content_hash = Some("0".repeat(64))).await;
        finds(&report, Code::SchemaArchiveMissing, &["0000"]);
        let report = in_block(|r| {
            r.pop();
        })
        .await;
        finds(&report, Code::CommitMissing, &["first parent"]);
        let report = in_block(|r| r.swap(0, 1)).await;
        finds(&report, Code::HistoryObjectDamaged, &["all.lance"]);
    });
}

#[test]
fn copies_that_differ() {
    run(|| async {
        let report = damaged(async |case| {
            let key = case
                .keys(|k| k.starts_with("__history/singletons/"))
                .remove(0);
            let mut records = decode_records(&key, Bytes::from(case.read(&key)))
                .await
                .unwrap();
            records[0].commit.created_at += 1;
            store(case, &key, &records).await;
        })
        .await;
        finds(
            &report,
            Code::CommitCopiesDiffer,
            &["singletons/", "legacy/data"],
        );
        // A range beside the whole block.
        let report = damaged(async |case| {
            let (key, mut records) = block(case).await;
            records.truncate(1);
            records[0].commit.actor_id = Some("eve".into());
            let slot: Vec<String> = records[0]
                .commit
                .graph_commit_id
                .split('.')
                .map(str::to_string)
                .collect();
            let range = key.replace("all", &format!("{0}-{0}", slot[2]));
            store(case, &range, &records).await;
        })
        .await;
        finds(&report, Code::CommitCopiesDiffer, &["all.lance"]);
        // An older version of the catalog holds a copy of its commit too.
        let case = published().await.copy();
        let (key, mut records) = block(&case).await;
        records[1].commit.actor_id = Some("eve".into());
        store(&case, &key, &records).await;
        let deep = verify(&case.path(), true).await;
        finds(&deep, Code::CommitCopiesDiffer, &["__manifest at version"]);
    });
}

#[test]
fn a_lost_block_is_found_however_long_ago() {
    run(|| async {
        let case = published().await.copy();
        let root = case.root().await;
        for _ in 0..8 {
            publish(&root, None, 4).await;
        }
        assert_eq!(verify(&case.path(), true).await.findings, []);
        let blocks = case.keys(|k| k.starts_with("__history/blocks/"));
        assert!(blocks.len() >= 3, "{blocks:?}");
        for key in blocks {
            let bytes = case.read(&key);
            case.remove(&key);
            finds(&verify(&case.path(), false).await, Code::CommitMissing, &[]);
            case.write(&key, &bytes);
        }
    });
}
