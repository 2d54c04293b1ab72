#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::testing::{self, child, commit, contract, pin, pointer, table, ulid};
use legacy::fold::tables_at;
use legacy::row::Row;
use std::collections::HashMap;

/// Rows of main's head: commit 1 at version 1 and commit 2 at version 2, one table.
fn rows(more: Vec<Row>) -> Vec<Row> {
    let mut rows = vec![
        Row::Table(table(1, "node:A")),
        pin(1, 1),
        pin(1, 2),
        Row::Commit(commit(1, None, 1)),
        Row::Commit(child(commit(2, None, 2), 1)),
    ];
    rows.extend(more);
    rows
}

fn tables(head: &Head, version: u64) -> Vec<TableRow> {
    tables_at(&head.scan, version, &[table(1, "node:A")])
}

fn record_of(head: &Head, native: Option<&str>) -> HistoryRecord {
    let effective = head_commit(&head.scan.commits).unwrap();
    let generations = HashMap::new();
    crate::fold::record(
        effective,
        native,
        &generations,
        &contract("root"),
        tables(head, effective.version),
    )
}

fn check(head: &Head, held: &[TableRow], recorded: HistoryRecord) -> Result<String, Finding> {
    let recorded = Arc::new(recorded);
    match record(head, held, |_| Some(recorded.clone())) {
        Ok(record) => Ok(record.commit.graph_commit_id.clone()),
        Err(Stop::Finding(finding)) => Err(finding),
        Err(Stop::Failed(error)) => panic!("{error}"),
    }
}

fn run(head: &Head, written_by: Option<&str>) -> Result<String, Finding> {
    check(
        head,
        &tables(head, head.input.pinned),
        record_of(head, written_by),
    )
}

#[test]
fn the_head_pointer_of_a_writer_must_name_its_head() {
    for (pointers, want) in [
        (vec![pointer("main", 2)], None),
        (vec![], Some("is missing")),
        (vec![pointer("main", 1)], Some("earlier commit")),
        (vec![pointer("main", 77)], Some("names")),
        (vec![pointer("other", 2)], Some("is missing")),
    ] {
        let head = testing::head(None, 0, 3, rows(pointers));
        match (run(&head, None), want) {
            (Ok(id), None) => assert_eq!(id, ulid(2)),
            (Err(finding), Some(words)) => {
                assert_eq!(finding.code, FindingCode::LegacyLineageCorrupt);
                assert!(finding.message.contains(words), "{}", finding.message);
            }
            (got, want) => panic!("{got:?} instead of {want:?}"),
        }
    }
}

#[test]
fn a_fork_without_commits_may_lack_its_pointer() {
    let head = testing::head(Some("f"), 2, 2, rows(vec![pointer("main", 2)]));
    assert_eq!(run(&head, None), Ok(ulid(2)));
    // A pointer left by an earlier branch of that name does not matter either.
    let head = testing::head(Some("f"), 2, 2, rows(vec![pointer("f", 1)]));
    assert_eq!(run(&head, None), Ok(ulid(2)));
}

#[test]
fn a_live_ref_without_any_commit_is_incomplete() {
    let head = testing::head(Some("f"), 2, 2, vec![]);
    let stop = record(&head, &[], |_| None);
    assert!(
        matches!(stop, Err(Stop::Finding(f)) if f.code == FindingCode::LegacyLineageIncomplete)
    );
}

#[test]
fn head_and_record_must_show_the_same_tables() {
    let head = testing::head(None, 0, 2, rows(vec![pointer("main", 2)]));
    let good = tables(&head, 2);
    let older = tables(&head, 1);
    let mut renamed = good.clone();
    renamed[0].table_key = "node:B".into();
    let mut rewritten = good.clone();
    if let TableState::Pinned(pin) = &mut rewritten[0].state {
        pin.metadata.e_tag = Some("other".into());
    }
    let mut more = good.clone();
    more.push(TableRow {
        identity: testing::identity(2),
        ..good[0].clone()
    });
    for (held, words) in [
        (older, "pinned at table version 10"),
        (renamed, "node:B"),
        (rewritten, "\"e_tag\":\"other\""),
        (more, "which the commit lacks"),
        (vec![], "the head lacks table node:A"),
    ] {
        let finding = check(&head, &held, record_of(&head, None)).expect_err(words);
        assert_eq!(finding.code, FindingCode::LegacyHeadRecordMismatch);
        assert!(finding.message.contains(words), "{}", finding.message);
    }
}

#[test]
fn head_and_record_must_name_the_same_contract() {
    let head = testing::head(None, 0, 2, rows(vec![pointer("main", 2)]));
    let mut recorded = record_of(&head, None);
    recorded.commit.schema_content_hash = Some("0".repeat(64));
    let finding = check(&head, &tables(&head, 2), recorded).expect_err("a mismatch");
    assert_eq!(finding.code, FindingCode::LegacyHeadRecordMismatch);
    assert!(finding.message.contains("schema contract"));
}
