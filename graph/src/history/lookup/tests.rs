#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use super::*;
use crate::error::{Error, Result};
use crate::history::block::{ClosedBlocks, closed_blocks, place, write_placed};
use crate::history::extent::create_extent;
use crate::history::first_parent_chain;
use crate::history::legacy::tests::write_example;
use crate::history::testing::{
    A1, ABSENT, B2, C3, FEATURE, addressed, block_id, commit, example_records, root, ulid,
};
use crate::model::HistoryRecord;

fn set<S: AsRef<str>>(ids: &[S]) -> BTreeSet<String> {
    ids.iter().map(|s| s.as_ref().to_string()).collect()
}

/// Requests answered with an object since the last call; the store's statistics leave out those that
/// found nothing.
fn requests(root: &Root) -> u64 {
    root.store().io_stats_incremental().read_iops
}

async fn put(root: &Root, key: ExtentKey, records: &[HistoryRecord]) {
    create_extent(root, &key, records).await.unwrap();
}

fn internal<T: std::fmt::Debug>(result: Result<T>, part: &str) {
    match result {
        Err(Error::Internal(message)) if message.contains(part) => {}
        other => panic!("expected an internal error with '{part}': {other:?}"),
    }
}

/// Futures of the handle move between threads.
#[allow(dead_code)]
fn futures_are_send(reader: &HistoryReader, ids: &BTreeSet<String>) {
    fn send<T: Send>(_: T) {}
    send(reader.lineage(ids, None));
    send(reader.records(ids));
    send(reader.full_lineage());
    send(reader.writers(None));
    send(reader.numeric_record(None, 1, false, &|_| None, None));
    send(crate::history::legacy::verify(reader.root()));
    send(write_placed(reader.root(), Vec::new()));
}

#[tokio::test]
async fn pre_upgrade_ids_cost_the_stated_requests() {
    let (_dir, root) = root().await;
    write_example(&root).await;
    let records = example_records();
    let reader = HistoryReader::new(root.clone());
    requests(&root);
    assert_eq!(
        reader.commit(C3).await.unwrap().as_ref(),
        Some(&records[2].commit)
    );
    assert_eq!(
        requests(&root),
        3,
        "directory, id shard and data file after the absent singleton"
    );
    assert_eq!(
        reader.commit(A1).await.unwrap().as_ref(),
        Some(&records[0].commit)
    );
    assert_eq!(requests(&root), 1, "another data file of the same shard");
    assert_eq!(
        reader.commit(B2).await.unwrap().as_ref(),
        Some(&records[1].commit)
    );
    assert_eq!(requests(&root), 0, "a held file");
    assert_eq!(reader.record(B2).await.unwrap().as_ref(), Some(&records[1]));
    assert_eq!(requests(&root), 1, "its tables were not held");
    assert_eq!(
        reader.commit(A1).await.unwrap().as_ref(),
        Some(&records[0].commit)
    );
    assert_eq!(requests(&root), 0, "records serve lineage reads");
    assert_eq!(reader.commit(ABSENT).await.unwrap(), None);
    assert!(reader.is_absent_parent(ABSENT).await.unwrap());
    assert!(!reader.is_absent_parent(A1).await.unwrap());
    assert_eq!(reader.commit("genesis").await.unwrap(), None);
    let found = reader.records(&set(&[A1, B2, C3, "zzz"])).await.unwrap();
    assert_eq!(found.into_values().collect::<Vec<_>>().len(), 3);
    internal(reader.commit("hb1.x").await, "not a well-formed");
    internal(reader.commit("").await, "empty");
}

#[tokio::test]
async fn absence_is_kept_of_the_directory_alone() {
    let (_dir, root) = root().await;
    let reader = HistoryReader::new(root.clone());
    assert_eq!(reader.commit(A1).await.unwrap(), None);
    assert_eq!(reader.commit(B2).await.unwrap(), None);
    // Absence is not kept.
    put(&root, ExtentKey::singleton(B2), &example_records()[1..2]).await;
    assert!(reader.commit(B2).await.unwrap().is_some());
    // That of the directory is, until the handle is cleared.
    write_example(&root).await;
    assert_eq!(reader.commit(A1).await.unwrap(), None);
    reader.clear();
    assert!(reader.commit(A1).await.unwrap().is_some());
}

#[tokio::test]
async fn a_released_head_is_an_equal_second_copy() {
    let (_dir, root) = root().await;
    write_example(&root).await;
    put(&root, ExtentKey::singleton(B2), &example_records()[1..2]).await;
    let reader = HistoryReader::new(root.clone());
    let full = reader.full_lineage().await.unwrap();
    assert_eq!(
        full.keys().map(String::as_str).collect::<Vec<_>>(),
        [A1, C3, B2]
    );
    let mut seen = 0;
    reader
        .for_each_extent(|_, records| {
            seen += records.len();
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(seen, 4);
    let chain = first_parent_chain(&full[C3], |id| full.get(id)).unwrap();
    assert_eq!(
        chain
            .iter()
            .map(|c| c.graph_commit_id.as_str())
            .collect::<Vec<_>>(),
        [A1, B2, C3]
    );
    internal(first_parent_chain(&full[C3], |_| None), "held nowhere");
    internal(first_parent_chain(&full[C3], |_| Some(&full[C3])), "cycle");
}

#[tokio::test]
async fn copies_that_differ_are_refused() {
    let (_dir, root) = root().await;
    write_example(&root).await;
    let mut other = example_records().remove(1);
    other.commit.actor_id = Some("eve".into());
    put(&root, ExtentKey::singleton(B2), &[other]).await;
    let reader = HistoryReader::new(root.clone());
    internal(reader.full_lineage().await, "copies differ");
}

#[tokio::test]
async fn foreign_keys_stop_a_listing() {
    let (dir, root) = root().await;
    write_example(&root).await;
    let reader = HistoryReader::new(root);
    std::fs::create_dir_all(dir.path().join("__history/schemas")).unwrap();
    std::fs::write(dir.path().join("__history/schemas/anything"), b"x").unwrap();
    let temporary = format!(
        "__history/legacy/data/00000009.lance.tmp.{}",
        "a".repeat(32)
    );
    std::fs::write(dir.path().join(temporary), b"x").unwrap();
    assert_eq!(reader.full_lineage().await.unwrap().len(), 3);
    std::fs::write(dir.path().join("__history/notes.txt"), b"x").unwrap();
    internal(reader.full_lineage().await, "notes.txt");
}

/// Slots `0..=last` of block 7, opened by slot 0, and a commit of block 8 after them.
fn block(last: u16) -> (Vec<HistoryRecord>, ClosedBlocks) {
    let nonce = |slot: u16| if slot == 0 { 7 } else { 700 + u128::from(slot) };
    let mut records: Vec<HistoryRecord> = (0..=last)
        .map(|slot| {
            let parent = slot.checked_sub(1).map(|p| block_id(7, p, nonce(p)));
            addressed(7, slot, nonce(slot), parent.as_deref())
        })
        .collect();
    records.push(addressed(8, 0, 8, Some(&block_id(7, last, nonce(last)))));
    let closed = closed_blocks(records.iter().map(|r| &r.commit)).unwrap();
    records.pop();
    (records, closed)
}

fn id(record: &HistoryRecord) -> &str {
    &record.commit.graph_commit_id
}

#[tokio::test]
async fn whole_blocks_serve_in_one_request() {
    let (_dir, root) = root().await;
    let (records, closed) = block(15);
    let keys = write_placed(&root, place(records.clone(), &closed).unwrap())
        .await
        .unwrap();
    assert_eq!(keys, [ExtentKey::Whole(ulid(7))]);
    let reader = HistoryReader::new(root.clone());
    requests(&root);
    let wanted = set(&[id(&records[3]), id(&records[9])]);
    // A lineage read hands back the block, a record read what was asked for.
    assert_eq!(reader.lineage(&wanted, None).await.unwrap().len(), 16);
    assert_eq!(requests(&root), 1);
    let found = reader.records(&wanted).await.unwrap();
    assert_eq!(
        found.into_values().collect::<Vec<_>>(),
        [records[3].clone(), records[9].clone()]
    );
    // Another nonce in a held slot, a slot beyond: no answer.
    assert_eq!(reader.commit(&block_id(7, 3, 9_999)).await.unwrap(), None);
    assert_eq!(reader.record(&block_id(7, 3, 9_999)).await.unwrap(), None);
    assert_eq!(reader.record(&block_id(7, 16, 716)).await.unwrap(), None);
    assert_eq!(reader.record(&block_id(9, 1, 1)).await.unwrap(), None);
}

#[tokio::test]
async fn overlapping_ranges_are_compared() {
    let (dir, root) = root().await;
    let (records, _) = block(15);
    let range = |start, end| ExtentKey::Range {
        block: ulid(7),
        start,
        end,
    };
    put(&root, range(0, 7), &records[0..=7]).await;
    let wanted = set(&[id(&records[2])]);
    let reader = HistoryReader::new(root.clone());
    assert_eq!(reader.lineage(&wanted, None).await.unwrap().len(), 8);
    put(&root, range(4, 15), &records[4..=15]).await;
    let wanted = set(&[id(&records[2]), id(&records[5]), id(&records[12])]);
    assert_eq!(reader.lineage(&wanted, None).await.unwrap().len(), 3);
    let found = reader.records(&wanted).await.unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(reader.full_lineage().await.unwrap().len(), 16);
    // A differing copy of slot 5.
    let mut other = records[5].clone();
    other.tables.pop();
    put(&root, range(5, 5), &[other]).await;
    reader.clear();
    internal(reader.records(&wanted).await, "copies differ");
    // Lineage does not read tables, so it agrees.
    assert_eq!(reader.lineage(&wanted, None).await.unwrap().len(), 3);
    // Two ids in one slot.
    put(&root, range(12, 12), &[addressed(7, 12, 4_444, None)]).await;
    internal(reader.lineage(&wanted, None).await, "in the same slot");
    let foreign = dir
        .path()
        .join(format!("__history/blocks/{}/x.lance", ulid(7)));
    std::fs::write(foreign, b"x").unwrap();
    internal(
        reader.lineage(&wanted, None).await,
        "not an object of this format",
    );
}

#[tokio::test]
async fn budgets_run_out() {
    let (_dir, root) = root().await;
    let (records, closed) = block(15);
    write_placed(&root, place(records.clone(), &closed).unwrap())
        .await
        .unwrap();
    let reader = HistoryReader::new(root.clone());
    let wanted = set(&[id(&records[3])]);
    internal(reader.lineage(&wanted, Some(511)).await, "budget");
    internal(reader.lineage(&wanted, Some(524_288 + 511)).await, "budget");
    reader.lineage(&wanted, Some(524_288 + 512)).await.unwrap();
    // From the cache: the address and sixteen rows.
    internal(reader.lineage(&wanted, Some(512 * 17 - 1)).await, "budget");
    reader.lineage(&wanted, Some(512 * 17)).await.unwrap();
}

#[tokio::test]
async fn damaged_locator_objects_are_refused_on_use() {
    let (dir, root) = root().await;
    write_example(&root).await;
    let legacy = dir.path().join("__history/legacy");
    let damage = |name: &str| {
        let path = legacy.join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let reader = || HistoryReader::new(root.clone());
    damage("locator/ids/00000000.oglx");
    internal(reader().commit(A1).await, "hashes to");
    damage("locator/writers/00000000.oglx");
    internal(reader().writers(None).await, "hashes to");
    std::fs::remove_file(legacy.join("locator/ids/00000000.oglx")).unwrap();
    internal(reader().commit(A1).await, "missing");
    damage("locator/directory.oglx");
    internal(reader().commit(A1).await, "trailer");
}

#[tokio::test]
async fn damaged_data_files_are_refused_on_use() {
    let (dir, root) = root().await;
    write_example(&root).await;
    let data = dir.path().join("__history/legacy/data");
    std::fs::copy(data.join("00000001.lance"), data.join("00000000.lance")).unwrap();
    let reader = HistoryReader::new(root.clone());
    internal(reader.commit(A1).await, "the legacy locator places commit");
    internal(
        reader.numeric(None, 2, false, &|_| None, None).await,
        "holds 1 rows",
    );
    std::fs::remove_file(data.join("00000001.lance")).unwrap();
    internal(reader.commit(C3).await, "missing");
}

#[tokio::test]
async fn writers_are_found_by_name() {
    let (_dir, root) = root().await;
    let reader = HistoryReader::new(root.clone());
    assert!(reader.writers(None).await.unwrap().is_empty());
    write_example(&root).await;
    reader.clear();
    let main = reader.writers(None).await.unwrap();
    assert_eq!((main.len(), main[0].head.to_string().as_str()), (1, B2));
    let fork = reader.writers(Some(FEATURE)).await.unwrap();
    assert_eq!((fork.len(), fork[0].head.to_string().as_str()), (1, C3));
    assert!(reader.writers(Some("feature")).await.unwrap().is_empty());
    let head = reader.writer_head(Some(FEATURE)).await.unwrap().unwrap();
    assert_eq!(head.graph_commit_id, C3);
    assert_eq!(reader.writer_head(Some("idle")).await.unwrap(), None);
    assert_eq!(commit(A1, 1, None).graph_commit_id, A1);
}
