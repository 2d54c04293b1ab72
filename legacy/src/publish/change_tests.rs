#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use graph::model::PinMetadata;

fn id(n: u64) -> TableIdentity {
    TableIdentity::new(n, 1).unwrap()
}

fn pin(version: u64, rows: u64) -> Pin {
    Pin {
        table_version: version,
        table_branch: None,
        row_count: rows,
        metadata: PinMetadata {
            manifest_path: format!("/g/{version}"),
            ..PinMetadata::default()
        },
        manifest_version: version,
    }
}

fn commit(id: &str, version: u64, created_at: i64) -> LegacyCommit {
    LegacyCommit {
        id: id.into(),
        branch: None,
        version,
        parent: None,
        merged_parent: None,
        actor: None,
        created_at,
    }
}

/// Table 1 `node:A` at version 2 (clock 2), table 2 `node:B` dropped.
fn held() -> CatalogRows {
    let mut rows = CatalogRows::default();
    for (n, key) in [(1, "node:A"), (2, "node:B")] {
        let registration = Registration {
            identity: id(n),
            table_key: key.into(),
            table_path: canonical_path(key, id(n)).unwrap(),
        };
        rows.registrations.insert(id(n), registration);
        rows.pins.insert((id(n), 2), pin(2, 5));
    }
    rows.tombstones.insert((id(2), 3), 3);
    rows.commits = vec![commit("C1", 1, 1), commit("C2", 2, 2)];
    rows.heads.insert("main".into(), "C1".into());
    rows
}

fn lineage() -> Lineage {
    Lineage {
        id: "C3".into(),
        actor: Some("act".into()),
        merged_parent: None,
        created_at: 9,
    }
}

fn update(n: u64, key: &str, expected: u64, version: u64) -> Change {
    Change::Update {
        identity: id(n),
        table_key: key.into(),
        expected_version: expected,
        pin: pin(version, 7),
    }
}

fn build(stamp: u32, changes: &[Change]) -> Result<Vec<NewRow>, PublishError> {
    let stamp = Stamp::of(stamp).unwrap();
    rows_of(&held(), stamp, 11, Some("dev"), changes, &lineage())
}

#[test]
fn the_key_clock_is_the_stamps_own() {
    for (stamp, suffix) in [(6, 3), (8, 11), (9, 11)] {
        let rows = build(stamp, &[update(1, "node:A", 2, 3)]).unwrap();
        let keys: Vec<&str> = rows.iter().map(|r| r.object_id.as_str()).collect();
        let key = format!("table_version:{}:{suffix:020}", id(1));
        assert_eq!(keys, [key.as_str(), "C3", "graph_head:dev"], "{stamp}");
    }
    assert!(Stamp::of(7).is_none() && Stamp::of(14).is_none());
}

#[test]
fn the_parent_is_the_greatest_commit_and_not_the_head_row() {
    let rows = build(6, &[]).unwrap();
    assert_eq!(
        rows[0].metadata.as_deref(),
        Some(r#"{"parent_commit_id":"C2","actor_id":"act","created_at":9}"#)
    );
    assert_eq!(
        (rows[0].table_version, rows[0].table_branch.as_deref()),
        (Some(11), Some("dev"))
    );
    assert_eq!(
        rows[1].metadata.as_deref(),
        Some(r#"{"head_commit_id":"C3","parent_commit_id":"C2"}"#)
    );
}

#[test]
fn expectations_are_checked() {
    let tomb = |n, key: &str, version| Change::Tombstone {
        identity: id(n),
        table_key: key.into(),
        version,
    };
    let rename = |key: &str, version| Change::Rename {
        identity: id(1),
        expected_key: key.into(),
        expected_version: version,
        table_key: "node:Z".into(),
    };
    let register = |n, key: &str| Change::Register {
        identity: id(n),
        table_key: key.into(),
    };
    for (change, fault) in [
        (update(1, "node:A", 2, 3), None),
        (update(1, "node:A", 1, 3), Some("VersionMismatch")),
        // A dropped table shows the number of its tombstone.
        (update(2, "node:B", 2, 4), Some("VersionMismatch")),
        (tomb(1, "node:A", 3), None),
        (tomb(1, "node:A", 4), Some("VersionMismatch")),
        (rename("node:A", 2), None),
        (rename("node:A", 3), Some("VersionMismatch")),
        (rename("node:B", 2), Some("ReadSetChanged")),
        (register(3, "node:C"), None),
        (register(1, "node:A"), Some("VersionMismatch")),
        (update(3, "node:C", 0, 1), Some("Invalid")),
    ] {
        let got = build(6, std::slice::from_ref(&change)).err();
        let got = got.map(|e| format!("{e:?}"));
        match fault {
            None => assert_eq!(got, None, "{change:?}"),
            Some(name) => assert!(got.as_deref().is_some_and(|g| g.contains(name)), "{got:?}"),
        }
    }
}

#[test]
fn two_live_tables_never_share_an_alias() {
    let changes = [
        Change::Register {
            identity: id(3),
            table_key: "node:A".into(),
        },
        update(3, "node:A", 0, 1),
    ];
    let why = build(6, &changes).unwrap_err().to_string();
    assert!(why.contains("node:A"), "{why}");
    // The alias of a dropped table is free.
    let changes = [
        Change::Register {
            identity: id(3),
            table_key: "node:B".into(),
        },
        update(3, "node:B", 0, 1),
    ];
    assert_eq!(build(6, &changes).unwrap().len(), 4);
}

#[test]
fn a_version_is_replaced_only_by_a_hand_off_or_by_itself() {
    let at = |branch: Option<&str>, rows, path: &str| Change::Update {
        identity: id(1),
        table_key: "node:A".into(),
        expected_version: 2,
        pin: Pin {
            table_branch: branch.map(str::to_string),
            metadata: PinMetadata {
                manifest_path: path.into(),
                ..PinMetadata::default()
            },
            ..pin(2, rows)
        },
    };
    assert!(build(6, &[at(None, 5, "/g/2")]).is_ok());
    assert!(build(6, &[at(Some("dev"), 5, "/other")]).is_ok());
    assert!(build(6, &[at(Some("dev"), 6, "/other")]).is_err());
    assert!(build(6, &[at(None, 5, "/other")]).is_err());
    // From stamp 8 on every publish has a clock of its own.
    assert!(build(8, &[at(None, 6, "/other")]).is_ok());
}

#[test]
fn a_commit_is_written_once() {
    let mut again = lineage();
    again.id = "C2".into();
    let stamp = Stamp::of(6).unwrap();
    assert!(rows_of(&held(), stamp, 11, None, &[], &again).is_err());
}

#[test]
fn what_a_table_shows() {
    let rows = held();
    assert_eq!(rows.live_pin(id(1)).map(|p| p.table_version), Some(2));
    assert_eq!(rows.live_pin(id(2)), None);
    let shown: Vec<u64> = [1, 2, 3].map(|n| rows.published_version(id(n))).to_vec();
    assert_eq!(shown, [2, 3, 0]);
    assert_eq!(rows.live_named("node:B"), None);
}

#[test]
fn stamp_6_keys_say_the_version_of_their_row() {
    use crate::row::Row;
    let row = || Row::Pin {
        identity: id(1),
        pin: Pin {
            manifest_version: 4,
            ..pin(3, 1)
        },
    };
    let mut rows = CatalogRows::default();
    assert!(rows.add(Stamp::of(6).unwrap(), row()).is_err());
    assert!(rows.add(Stamp::of(8).unwrap(), row()).is_ok());
    assert!(rows.add(Stamp::of(8).unwrap(), row()).is_err(), "twice");
}
