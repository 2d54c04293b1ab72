#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::observe::ownership::tests::entries;
use graph::model::{Pin, PinMetadata, TableIdentity};
use legacy::Registration;
use serde_json::{Value, json};

fn id(n: u64) -> TableIdentity {
    TableIdentity::new(n, 1).unwrap()
}

fn metadata() -> PinMetadata {
    PinMetadata {
        manifest_path: "/g/x".into(),
        ..PinMetadata::default()
    }
}

/// A confirmed load of `node:A` (table 1), from version 2 to 3.
fn sidecar() -> Value {
    let identity = json!({"stable_table_id": 1, "table_incarnation_id": 1});
    json!({"schema_version": 9, "operation_id": "o", "started_at": "1", "actor_id": "act",
        "writer_kind": "Load", "tables": [{"identity": identity, "table_key": "node:A", "table_path": "/g",
            "expected_version": 2, "post_commit_pin": 3, "confirmed_version": 3}],
        "protocol_v3": {"authority": {"branch_identifier": {"version_mapping": []}, "graph_head": "P",
                "schema_identity_domain": "d", "schema_ir_hash": "h", "schema_identity_version": 2},
            "lineage": {"graph_commit_id": "C", "actor_id": "act", "created_at": 7},
            "rollback_graph_commit_id": "R", "effect_phase": "EffectsConfirmed",
            "effects": [{"identity": identity, "table_key": "node:A",
                "planned_transaction": {"read_version": 2, "uuid": "own"}}],
            "intended_delta": {"table_updates": [{"identity": identity, "table_key": "node:A",
                "expected_version": 2, "confirmed": {"table_version": 3, "row_count": 5,
                    "version_metadata": metadata()}}]}}})
}

fn commit() -> LegacyCommit {
    LegacyCommit {
        id: "C".into(),
        branch: None,
        version: 9,
        parent: Some("P".into()),
        merged_parent: None,
        actor: Some("act".into()),
        created_at: 7,
    }
}

/// `node:A` and `node:B` at these versions.
fn rows(a: u64, b: u64) -> CatalogRows {
    let mut rows = CatalogRows::default();
    for (n, key, version) in [(1, "node:A", a), (2, "node:B", b)] {
        rows.registrations.insert(
            id(n),
            Registration {
                identity: id(n),
                table_key: key.into(),
                table_path: "nodes/x".into(),
            },
        );
        rows.pins.insert(
            (id(n), version),
            Pin {
                table_version: version,
                table_branch: None,
                row_count: 5,
                metadata: metadata(),
                manifest_version: version,
            },
        );
    }
    rows
}

fn reading(spelled: &[&str]) -> Vec<TableReading> {
    vec![TableReading {
        location: "nodes/x".into(),
        branch: None,
        live: None,
        registered: true,
        contradiction: None,
        head: Head::At(2 + spelled.len() as u64),
        fork: None,
        children: vec![],
        entries: entries(3, spelled)
            .into_iter()
            .map(|mut e| {
                if let Some(t) = e.transaction.as_mut() {
                    t.read_version = e.version - 1;
                }
                e
            })
            .collect(),
    }]
}

fn judged(
    value: &Value,
    commit: &LegacyCommit,
    at: &CatalogRows,
    spelled: &[&str],
) -> Result<u64, String> {
    let sidecar = Sidecar::parse(value.to_string().as_bytes()).unwrap();
    let payload = sidecar.payload().unwrap();
    let before = rows(2, 4);
    check_original(
        &sidecar,
        payload,
        commit,
        at,
        Some(&before),
        &reading(spelled),
    )
    .map(|outcomes| outcomes[0].to_version)
}

#[test]
fn every_difference_of_the_lineage_contradicts() {
    let good = commit();
    assert_eq!(judged(&sidecar(), &good, &rows(3, 4), &[]), Ok(3));
    for (changed, words) in [
        (
            LegacyCommit {
                branch: Some("x".into()),
                ..commit()
            },
            "branch",
        ),
        (
            LegacyCommit {
                merged_parent: Some("x".into()),
                ..commit()
            },
            "merged parent",
        ),
        (
            LegacyCommit {
                actor: None,
                ..commit()
            },
            "actor",
        ),
        (
            LegacyCommit {
                created_at: 8,
                ..commit()
            },
            "time",
        ),
        (
            LegacyCommit {
                parent: None,
                ..commit()
            },
            "parent",
        ),
    ] {
        let why = judged(&sidecar(), &changed, &rows(3, 4), &[]).unwrap_err();
        assert!(why.contains(words), "{why}");
    }
    // A branch without a head row of its own says nothing of the parent.
    let mut fresh = sidecar();
    fresh["protocol_v3"]["authority"]["graph_head"] = Value::Null;
    let other = LegacyCommit {
        parent: Some("X".into()),
        ..commit()
    };
    assert!(judged(&fresh, &other, &rows(3, 4), &[]).is_ok());
}

#[test]
fn a_confirmed_slot_is_published_exactly() {
    type Change = fn(&mut Pin);
    for change in [
        (|p| p.table_version = 2) as Change,
        |p| p.row_count = 6,
        |p| p.table_branch = Some("x".into()),
        |p| p.metadata.manifest_path = "/other".into(),
    ] {
        let mut at = rows(3, 4);
        at.pins.values_mut().next().map(change).unwrap();
        assert!(judged(&sidecar(), &commit(), &at, &[]).is_err());
    }
    let mut renamed = rows(3, 4);
    renamed.registrations.get_mut(&id(1)).unwrap().table_key = "node:Z".into();
    assert!(judged(&sidecar(), &commit(), &renamed, &[]).is_err());
    let mut gone = rows(3, 4);
    gone.tombstones.insert((id(1), 4), 4);
    assert!(judged(&sidecar(), &commit(), &gone, &[]).is_err());
}

#[test]
fn without_a_confirmation_the_planned_transactions_decide() {
    let mut armed = sidecar();
    armed["protocol_v3"]["effect_phase"] = "Armed".into();
    let slot = &mut armed["protocol_v3"]["intended_delta"]["table_updates"][0];
    slot.as_object_mut().unwrap().remove("confirmed");
    for (a, b, spelled, want) in [
        (3, 4, &["own"][..], Some(3)),
        (3, 4, &["own", "x"], Some(3)),
        (3, 4, &["x"], None),
        (3, 4, &["-"], None),
        (4, 4, &["own", "x"], None),
        // Unchanged: the planned transaction must not be there, nor possibly be there.
        (2, 4, &[], Some(2)),
        (2, 4, &["x"], Some(2)),
        (2, 4, &["own"], None),
        (2, 4, &["-"], None),
        // Another table changed in the same commit.
        (3, 5, &["own"], None),
    ] {
        let got = judged(&armed, &commit(), &rows(a, b), spelled);
        assert_eq!(got.clone().ok(), want, "{a} {b} {spelled:?}: {got:?}");
    }
}

#[test]
fn both_commits_contradict() {
    let sidecar = Sidecar::parse(sidecar().to_string().as_bytes()).unwrap();
    let payload = sidecar.payload().unwrap();
    let back = LegacyCommit {
        id: "R".into(),
        ..commit()
    };
    let with = |commits: Vec<LegacyCommit>| {
        let mut rows = rows(3, 4);
        rows.commits = commits;
        rows
    };
    assert_eq!(find(payload, &with(vec![])), Ok(Visible::Nothing));
    assert_eq!(
        find(payload, &with(vec![commit()])),
        Ok(Visible::Original(&commit()))
    );
    assert_eq!(
        find(payload, &with(vec![back.clone()])),
        Ok(Visible::RolledBack(&back))
    );
    assert!(find(payload, &with(vec![commit(), back])).is_err());
}
