#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod violations;

use super::*;
use serde_json::{Value, json};

const ROOT: &str = "/srv/g1";

fn identity(n: u64) -> Value {
    json!({"stable_table_id": n, "table_incarnation_id": n + 1})
}

fn path(folder: &str, n: u64) -> String {
    format!("{ROOT}/{folder}/{n:016x}-{:016x}", n + 1)
}

fn transaction(read: u64, uuid: &str) -> Value {
    json!({"read_version": read, "uuid": uuid})
}

fn metadata() -> Value {
    json!({"manifest_path": "/srv/g1/x", "manifest_size": 9, "e_tag": null, "naming_scheme": "V2"})
}

fn authority() -> Value {
    json!({"branch_identifier": {"version_mapping": []}, "graph_head": "01K3HEADA00000000000000000",
        "schema_identity_domain": "01K3D0MA1N0000000000000000", "schema_ir_hash": "sha256:5a",
        "schema_identity_version": 2})
}

fn lineage(branch: Value, merged: Value) -> Value {
    json!({"graph_commit_id": "01K3C0MM1T0000000000000000", "branch": branch, "actor_id": "act",
        "merged_parent_commit_id": merged, "created_at": 5})
}

fn envelope(kind: &str, branch: Value, tables: Value) -> Value {
    json!({"schema_version": 9, "operation_id": "01K3MT000A0000000000000000", "started_at": "17",
        "branch": branch, "actor_id": "act", "writer_kind": kind, "tables": tables,
        "schema_apply_manifest_published": false})
}

/// A confirmed mutation of one table on main.
fn mutation() -> Value {
    let mut v = envelope(
        "Mutation",
        Value::Null,
        json!([{"identity": identity(17), "table_key": "node:A", "table_path": path("nodes", 17),
            "expected_version": 5, "post_commit_pin": 6, "confirmed_version": 6}]),
    );
    v["protocol_v3"] = json!({"authority": authority(), "lineage": lineage(Value::Null, Value::Null),
        "rollback_graph_commit_id": "01K3R0BACK0000000000000000", "effect_phase": "EffectsConfirmed",
        "effects": [{"identity": identity(17), "table_key": "node:A",
            "planned_transaction": transaction(5, "u"), "confirmed_transaction": transaction(5, "u")}],
        "intended_delta": {"table_updates": [{"identity": identity(17), "table_key": "node:A",
            "expected_version": 5, "table_branch": null, "confirmed": {"table_version": 6,
                "table_branch": null, "row_count": 3, "version_metadata": metadata()}}]}});
    v
}

/// A confirmed merge on `target`: a first-touch chain of two, and a pointer.
fn merge() -> Value {
    let id = json!({"version_mapping": [[13, "0a"]]});
    let mut v = envelope(
        "BranchMerge",
        json!("target"),
        json!([{"identity": identity(17), "table_key": "node:A", "table_path": path("nodes", 17),
            "expected_version": 13, "post_commit_pin": 14, "confirmed_version": 15,
            "table_branch": "target"}]),
    );
    v["protocol_v4"] = json!({"authority": authority(), "lineage": lineage(json!("target"), json!("01K3SRC")),
        "rollback_graph_commit_id": "01K3R0BACK0000000000000000", "effect_phase": "EffectsConfirmed",
        "effects": [{"identity": identity(17), "table_key": "node:A", "kind": {"kind": "MultiCommitHead",
            "source_fork_version": 13, "planned_transactions": [transaction(13, "a"), transaction(14, "b")],
            "confirmed_version": 15, "confirmed_branch_identifier": id}}],
        "intended_delta": {"table_updates": [
            {"identity": identity(17), "table_key": "node:A", "expected_version": 13,
                "table_branch": "target", "confirmed": {"table_version": 15, "table_branch": "target",
                    "row_count": 40, "version_metadata": metadata()}},
            {"identity": identity(18), "table_key": "node:B", "expected_version": 3, "table_branch": null,
                "confirmed": {"table_version": 4, "table_branch": null, "row_count": 9,
                    "version_metadata": metadata()}}]}});
    v
}

/// An armed schema apply: adds `node:Tag`, renames `node:A`, drops `edge:Knows`.
fn schema_apply() -> Value {
    let mut v = envelope(
        "SchemaApply",
        Value::Null,
        json!([{"identity": identity(24), "table_key": "node:Tag", "table_path": path("nodes", 24),
            "expected_version": 0, "post_commit_pin": 1}]),
    );
    let relative = |n: u64| format!("nodes/{n:016x}-{:016x}", n + 1);
    v["protocol_v7"] = json!({"authority": authority(), "lineage": lineage(Value::Null, Value::Null),
        "rollback_graph_commit_id": "01K3R0BACK0000000000000000", "target_schema_ir_hash": "sha256:c3",
        "effect_phase": "Armed",
        "effects": [{"identity": identity(24), "table_key": "node:Tag",
            "kind": {"kind": "FirstTouchDataset", "planned_transaction": transaction(0, "s")}}],
        "intended_delta": {"table_updates": [{"identity": identity(24), "table_key": "node:Tag",
                "expected_version": 0, "table_branch": null}],
            "registrations": [{"identity": identity(24), "table_key": "node:Tag", "table_path": relative(24)}],
            "renames": [{"identity": identity(17), "expected_table_key": "node:A", "expected_version": 6,
                "table_key": "node:Human", "table_path": relative(17)}],
            "tombstones": [{"identity": identity(19), "table_key": "edge:Knows", "tombstone_version": 3}]}});
    v
}

/// An armed index build.
fn indices() -> Value {
    let mut v = envelope(
        "EnsureIndices",
        Value::Null,
        json!([{"identity": identity(17), "table_key": "node:A", "table_path": path("nodes", 17),
            "expected_version": 7, "post_commit_pin": 8}]),
    );
    v["protocol_v8"] = json!({"authority": authority(), "lineage": lineage(Value::Null, Value::Null),
        "rollback_graph_commit_id": "01K3R0BACK0000000000000000", "effect_phase": "Armed",
        "effects": [{"identity": identity(17), "table_key": "node:A",
            "planned_transaction": transaction(7, "i")}],
        "intended_delta": {"table_updates": [{"identity": identity(17), "table_key": "node:A",
            "expected_version": 7, "table_branch": null}]}});
    v
}

fn optimize() -> Value {
    envelope(
        "Optimize",
        Value::Null,
        json!([{"identity": identity(17), "table_key": "node:A", "table_path": path("nodes", 17),
            "expected_version": 4, "post_commit_pin": 5}]),
    )
}

fn read(value: &Value) -> Result<Sidecar, String> {
    let sidecar = Sidecar::parse(value.to_string().as_bytes())?;
    check(&sidecar, ROOT)?;
    Ok(sidecar)
}

#[test]
fn every_kind_is_read_and_written_alike() {
    for value in [mutation(), merge(), schema_apply(), indices(), optimize()] {
        let sidecar = read(&value).unwrap();
        let again: Value = serde_json::from_str(&sidecar.pretty().unwrap()).unwrap();
        assert_eq!(again, value);
        // Unknown members are ignored; a nullable one that is missing is null.
        let mut more = value.clone();
        more["later"] = json!({"x": 1});
        more.as_object_mut().unwrap().remove("actor_id");
        let error = read(&more).err();
        let alike =
            value["writer_kind"] == "Optimize" || error.is_some_and(|e| e.contains("actor"));
        assert!(alike, "{value}");
    }
}

#[test]
fn members_stand_in_stored_order() {
    let text = read(&mutation()).unwrap().pretty().unwrap();
    let order = [
        "schema_version",
        "operation_id",
        "started_at",
        "\"branch\"",
        "actor_id",
        "writer_kind",
        "tables",
        "expected_version",
        "post_commit_pin",
        "confirmed_version",
        "schema_apply_manifest_published",
        "protocol_v3",
        "authority",
        "lineage",
        "rollback_graph_commit_id",
        "effect_phase",
        "effects",
        "intended_delta",
    ];
    let mut at = 0;
    for name in order {
        at += text[at..]
            .find(name)
            .unwrap_or_else(|| panic!("{name} after {at}: {text}"));
    }
    assert!(text.starts_with("{\n  \"schema_version\": 9,\n") && text.ends_with('}'));
}

#[test]
fn a_rollback_plan_names_aliases_of_before() {
    let with = |key: &str| {
        let mut v = schema_apply();
        v["protocol_v7"]["rollback_audit_outcomes"] =
            json!([{"table_key": key, "from_version": 1, "to_version": 0}]);
        read(&v)
    };
    assert!(with("node:Tag").is_ok());
    assert!(with("node:Nobody").is_err());
    let sidecar = read(&schema_apply()).unwrap();
    assert_eq!(sidecar.alias_before(&sidecar.tables[0]), "node:Tag");
}

#[test]
fn a_fork_owner_is_of_the_writes_branch() {
    let owned = |owner: &str, confirmed: &str| {
        let mut v = merge();
        v["tables"][0]["table_fork_owner"] = owner.into();
        let slot = &mut v["protocol_v4"]["intended_delta"]["table_updates"][0];
        slot["confirmed"]["version_metadata"]["table_fork_owner"] = confirmed.into();
        read(&v)
    };
    let native = "target.01ARZ3NDEKTSV4RRFFQ69G5FAV";
    assert!(owned(native, native).is_ok());
    assert!(owned(native, "target").is_err());
    let other = "other.01ARZ3NDEKTSV4RRFFQ69G5FAV";
    assert!(owned(other, other).unwrap_err().contains("'target'"));
}

proptest::proptest! {
    /// One byte of a sidecar is another: it is read or refused, and never panics.
    #[test]
    fn damaged_bytes_are_answered(at in 0_usize..4000, byte in proptest::prelude::any::<u8>(), kind in 0_usize..5) {
        let value = [mutation(), merge(), schema_apply(), indices(), optimize()][kind].clone();
        let mut bytes = serde_json::to_vec_pretty(&value).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(sidecar) = Sidecar::parse(&bytes) {
            let _ = check(&sidecar, ROOT);
        }
    }
}
