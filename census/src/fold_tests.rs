#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::testing::{child, commit, contract, drop, head, identity, pin, table, ulid};
use ::graph::model::TableState;
use legacy::row::Row;

fn schema(tables: &[Registration]) -> VersionSchema {
    VersionSchema {
        registrations: tables.to_vec(),
        contract: None,
    }
}

fn with_contract(tables: &[Registration], name: &str) -> VersionSchema {
    VersionSchema {
        contract: Some(contract(name)),
        ..schema(tables)
    }
}

struct Case {
    head: Head,
    fallback: Option<Arc<SourceContract>>,
    limits: Limits,
}

impl Case {
    fn new(native: Option<&str>, fork: u64, pinned: u64, rows: Vec<Row>) -> Self {
        Self {
            head: head(native, fork, pinned, rows),
            fallback: Some(contract("root")),
            limits: Limits::default(),
        }
    }

    fn fold(&self, versions: &[(u64, VersionSchema)]) -> Result<Folded, Stop> {
        let generations: HashMap<&str, u64> = self
            .head
            .scan
            .commits
            .iter()
            .map(|c| (c.id.as_str(), c.version))
            .collect();
        let mut fold = RefFold::new(
            &self.head,
            self.fallback.clone(),
            &generations,
            &self.limits,
        );
        let mut meter = Meter::new(u64::MAX);
        for (version, schema) in versions {
            fold.version(*version, schema.clone(), &mut meter)?;
        }
        Ok(fold.finish())
    }

    fn finding(&self, versions: &[(u64, VersionSchema)]) -> Finding {
        match self.fold(versions) {
            Err(Stop::Finding(finding)) => finding,
            other => panic!("expected a finding, got {other:?}"),
        }
    }
}

fn a() -> Registration {
    table(1, "node:A")
}

/// Main: commit 1 at version 1 pins A, version 2 is bookkeeping, commit 3 at version 3 pins it again.
fn main_rows() -> Vec<Row> {
    vec![
        Row::Table(a()),
        pin(1, 1),
        pin(1, 3),
        Row::Commit(commit(1, None, 1)),
        Row::Commit(child(commit(3, None, 3), 1)),
    ]
}

#[test]
fn one_record_per_commit_and_bookkeeping_between() {
    let case = Case::new(None, 0, 3, main_rows());
    let tables = schema(&[a()]);
    let folded = case
        .fold(&[(1, tables.clone()), (2, tables.clone()), (3, tables)])
        .unwrap();
    assert_eq!((folded.bookkeeping, folded.pre_genesis), (1, 0));
    let told: Vec<_> = folded
        .records
        .iter()
        .map(|r| {
            let clock = r.tables[0].state.pin().unwrap().manifest_version;
            (r.commit.graph_manifest_version, r.commit.generation, clock)
        })
        .collect();
    assert_eq!(told, [(1, 1, 1), (3, 3, 3)]);
    let last = &folded.records[1];
    assert_eq!(last.commit.parent_commit_id, Some(ulid(1)));
    assert_eq!(
        last.commit.schema_content_hash.as_deref(),
        Some(contract("root").content_hash())
    );
    assert_eq!(folded.head_tables, last.tables);
    assert_eq!(folded.contracts.len(), 1);
}

#[test]
fn changes_without_a_commit() {
    let b = table(2, "node:B");
    let renamed = table(1, "node:Z");
    let mut stray_pin = main_rows();
    stray_pin.push(pin(1, 2));
    let mut stray_drop = main_rows();
    stray_drop.push(drop(1, "node:A", 2));
    for (name, rows, second, words) in [
        (
            "pin",
            stray_pin,
            schema(&[a()]),
            "pinned or dropped at version 2",
        ),
        (
            "drop",
            stray_drop,
            schema(&[a()]),
            "pinned or dropped at version 2",
        ),
        (
            "registration",
            main_rows(),
            schema(&[a(), b]),
            "newly registered",
        ),
        (
            "rename",
            main_rows(),
            schema(&[renamed]),
            "called node:Z instead of node:A",
        ),
        ("removal", main_rows(), schema(&[]), "no longer registered"),
    ] {
        let case = Case::new(None, 0, 3, rows);
        let finding = case.finding(&[(1, schema(&[a()])), (2, second)]);
        assert_eq!(finding.code, FindingCode::LegacyUncommittedChange, "{name}");
        assert!(
            finding.message.contains(words),
            "{name}: {}",
            finding.message
        );
        assert!(
            finding.message.contains("version 2 of main"),
            "{}",
            finding.message
        );
    }
    let contract_only = Case::new(None, 0, 3, main_rows());
    let changed = with_contract(&[a()], "new");
    assert!(
        contract_only
            .fold(&[(1, schema(&[a()])), (2, changed)])
            .is_ok()
    );
}

#[test]
fn before_genesis_nothing_may_exist() {
    let rows = || vec![Row::Table(a()), pin(1, 3), Row::Commit(commit(1, None, 3))];
    let case = Case::new(None, 0, 3, rows());
    let folded = case
        .fold(&[(1, schema(&[])), (2, schema(&[])), (3, schema(&[a()]))])
        .unwrap();
    assert_eq!((folded.bookkeeping, folded.pre_genesis), (2, 2));
    let finding = case.finding(&[(1, schema(&[a()]))]);
    assert!(finding.message.contains("before the first commit"));
    let mut early = rows();
    early.push(pin(1, 2));
    let finding = Case::new(None, 0, 3, early).finding(&[(1, schema(&[])), (2, schema(&[]))]);
    assert_eq!(finding.code, FindingCode::LegacyUncommittedChange);
    assert!(finding.message.contains("version 2 of main"));
}

#[test]
fn a_fork_defers_membership_to_the_inherited_commit() {
    let mut rows = main_rows();
    rows.push(Row::Commit(child(commit(5, Some("f"), 5), 3)));
    let case = Case::new(Some("f"), 3, 5, rows.clone());
    let folded = case
        .fold(&[(4, schema(&[a()])), (5, schema(&[a()]))])
        .unwrap();
    assert_eq!((folded.bookkeeping, folded.pre_genesis), (1, 0));
    let [deferred] = &folded.deferred[..] else {
        panic!("one deferred check")
    };
    assert_eq!(
        (deferred.version, deferred.nearest.as_str()),
        (4, ulid(3).as_str())
    );

    let nearest = HistoryRecord {
        commit: folded.records[0].commit.clone(),
        tables: tables_at(&case.head.scan, 3, &[a()]),
    };
    assert!(check_deferred(&case.head, &folded.deferred, |_| Some(&nearest)).is_ok());
    let other = HistoryRecord {
        tables: Vec::new(),
        ..nearest
    };
    let stop = check_deferred(&case.head, &folded.deferred, |_| Some(&other));
    assert!(
        matches!(stop, Err(Stop::Finding(f)) if f.code == FindingCode::LegacyUncommittedChange)
    );
    assert!(matches!(
        check_deferred(&case.head, &folded.deferred, |_| None),
        Err(Stop::Failed(_))
    ));

    rows.push(pin(1, 4));
    let finding = Case::new(Some("f"), 3, 5, rows).finding(&[(4, schema(&[a()]))]);
    assert_eq!(finding.code, FindingCode::LegacyUncommittedChange);
}

#[test]
fn the_first_contract_row_names_earlier_commits_of_the_ref() {
    let rows = vec![
        Row::Commit(commit(1, None, 1)),
        Row::Commit(child(commit(2, None, 2), 1)),
        Row::Commit(child(commit(4, None, 4), 2)),
        Row::Commit(child(commit(5, None, 5), 4)),
    ];
    let case = Case::new(None, 0, 5, rows);
    let folded = case
        .fold(&[
            (1, schema(&[])),
            (2, schema(&[])),
            (3, with_contract(&[], "first")),
            (4, schema(&[])),
            (5, with_contract(&[], "second")),
        ])
        .unwrap();
    let named: Vec<_> = folded
        .records
        .iter()
        .map(|r| r.commit.schema_contract.clone().unwrap().schema_ir_hash)
        .collect();
    assert_eq!(
        named,
        [
            "sha256:first",
            "sha256:first",
            "sha256:second",
            "sha256:second"
        ]
    );
}

#[test]
fn a_commit_without_any_contract_is_unsupported() {
    let mut case = Case::new(None, 0, 1, vec![Row::Commit(commit(1, None, 1))]);
    case.fallback = None;
    let finding = case.finding(&[(1, schema(&[]))]);
    assert_eq!(finding.code, FindingCode::UnsupportedSource);
}

#[test]
fn record_bounds_hold_at_the_limit_and_not_above() {
    let mut case = Case::new(None, 0, 3, main_rows());
    let version = [(1, schema(&[a()]))];
    let record = case.fold(&version).unwrap().records.remove(0);
    case.limits.commit_bytes = commit_bytes(&record.commit);
    case.limits.record_bytes = record_bytes(&record);
    assert!(case.fold(&version).is_ok());
    case.limits.record_bytes -= 1;
    assert_eq!(
        case.finding(&version).code,
        FindingCode::LegacyRecordOverBound
    );
    case.limits.record_bytes += 1;
    case.limits.commit_bytes -= 1;
    let finding = case.finding(&version);
    assert_eq!(finding.code, FindingCode::LegacyRecordOverBound);
    assert!(finding.message.contains(&ulid(1)));
}

#[test]
fn dropped_and_registered_tables_are_part_of_records() {
    let b = table(2, "node:B");
    let rows = vec![
        Row::Table(a()),
        Row::Table(b.clone()),
        pin(1, 1),
        drop(1, "node:A", 2),
        Row::Commit(commit(1, None, 1)),
        Row::Commit(child(commit(2, None, 2), 1)),
    ];
    let case = Case::new(None, 0, 2, rows);
    let tables = schema(&[a(), b]);
    let folded = case.fold(&[(1, tables.clone()), (2, tables)]).unwrap();
    let last = &folded.records[1].tables;
    assert_eq!(last[0].identity, identity(1));
    assert_eq!(
        last[0].state,
        TableState::Dropped {
            dropped_at: 2,
            sealed_version: 200
        }
    );
    assert_eq!(last[1].state, TableState::Registered);
}
