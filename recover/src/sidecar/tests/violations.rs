//! One member of a valid sidecar is another.

use super::*;

#[test]
fn violations_are_refused() {
    type Make = fn() -> Value;
    for (make, place, value, words) in [
        (
            mutation as Make,
            "/tables/0/table_path",
            json!("/srv/g2/nodes/x"),
            "table_path",
        ),
        (
            mutation,
            "/tables/0/table_path",
            json!(path("nodes", 17) + "/"),
            "table_path",
        ),
        (
            mutation,
            "/tables/0/identity/stable_table_id",
            json!(0),
            "zero part",
        ),
        (mutation, "/tables/0/table_key", json!("A"), "neither node"),
        (mutation, "/started_at", json!("yesterday"), "started_at"),
        (mutation, "/branch", json!("x"), "another branch"),
        (mutation, "/actor_id", json!("x"), "another actor"),
        (
            mutation,
            "/protocol_v3/effects/0/planned_transaction/read_version",
            json!(4),
            "reads",
        ),
        (
            mutation,
            "/protocol_v3/effects/0/confirmed_transaction/uuid",
            json!("x"),
            "another transaction",
        ),
        (
            mutation,
            "/protocol_v3/effects/0/planned_transaction/uuid",
            json!(""),
            "another transaction",
        ),
        (
            mutation,
            "/protocol_v3/effects/0/identity",
            identity(18),
            "lacks its effect",
        ),
        (
            mutation,
            "/protocol_v3/effect_phase",
            json!("Armed"),
            "confirmed_version",
        ),
        (
            mutation,
            "/protocol_v3/intended_delta/table_updates/0/confirmed/table_version",
            json!(7),
            "two confirmed",
        ),
        (
            mutation,
            "/protocol_v3/intended_delta/table_updates/0/confirmed/table_branch",
            json!("x"),
            "another branch",
        ),
        (
            mutation,
            "/protocol_v3/intended_delta/table_updates/0/expected_version",
            json!(4),
            "two expected",
        ),
        (
            mutation,
            "/protocol_v3/rollback_graph_commit_id",
            json!("01K3C0MM1T0000000000000000"),
            "commit ids",
        ),
        (
            mutation,
            "/protocol_v3/authority/schema_identity_version",
            json!(0),
            "names no schema",
        ),
        (
            mutation,
            "/protocol_v3/lineage/merged_parent_commit_id",
            json!("x"),
            "outside of a merge",
        ),
        (mutation, "/writer_kind", json!("Optimize"), "payloads"),
        (
            mutation,
            "/writer_kind",
            json!("Repair"),
            "could not be read",
        ),
        (mutation, "/schema_version", json!(10), "later release"),
        (mutation, "/schema_version", json!("9"), "not valid JSON"),
        (mutation, "/schema_version", json!(2), "payloads"),
        (
            mutation,
            "/schema_apply_manifest_published",
            json!(true),
            "earlier version",
        ),
        (
            merge,
            "/protocol_v4/lineage/merged_parent_commit_id",
            Value::Null,
            "merged parent",
        ),
        (
            merge,
            "/protocol_v4/effects/0/kind/planned_transactions",
            json!([]),
            "chain of 0",
        ),
        (
            merge,
            "/protocol_v4/effects/0/kind/planned_transactions/1/read_version",
            json!(15),
            "contiguous",
        ),
        (
            merge,
            "/protocol_v4/effects/0/kind/planned_transactions/1/uuid",
            json!("a"),
            "uuid",
        ),
        (
            merge,
            "/protocol_v4/effects/0/kind/source_fork_version",
            json!(12),
            "forks at another",
        ),
        (
            merge,
            "/protocol_v4/effects/0/kind/confirmed_version",
            json!(14),
            "contradicting",
        ),
        (
            merge,
            "/protocol_v4/effects/0/kind/confirmed_branch_identifier",
            Value::Null,
            "exactly when",
        ),
        (
            merge,
            "/tables/0/post_commit_pin",
            json!(15),
            "post_commit_pin",
        ),
        (
            merge,
            "/protocol_v4/intended_delta/table_updates/1/table_key",
            json!("node:A"),
            "slot alias",
        ),
        (
            merge,
            "/protocol_v4/intended_delta/table_updates/1/confirmed/table_branch",
            json!("y"),
            "another branch",
        ),
        (schema_apply, "/branch", json!("dev"), "another branch"),
        (
            schema_apply,
            "/protocol_v7/target_schema_ir_hash",
            json!(""),
            "target schema",
        ),
        (
            schema_apply,
            "/tables/0/post_commit_pin",
            json!(2),
            "does not plan",
        ),
        (
            schema_apply,
            "/protocol_v7/effects/0/kind/kind",
            json!("ExistingOverwrite"),
            "new exactly when",
        ),
        (
            schema_apply,
            "/protocol_v7/intended_delta/registrations",
            json!([]),
            "registrations",
        ),
        (
            schema_apply,
            "/protocol_v7/intended_delta/registrations/0/table_path",
            json!("nodes/x"),
            "path",
        ),
        (
            schema_apply,
            "/protocol_v7/intended_delta/renames/0/expected_version",
            json!(0),
            "changes nothing",
        ),
        (
            schema_apply,
            "/protocol_v7/intended_delta/renames/0/table_key",
            json!("node:Tag"),
            "new alias",
        ),
        (
            schema_apply,
            "/protocol_v7/intended_delta/renames/0/table_key",
            json!("edge:Human"),
            "path",
        ),
        (
            schema_apply,
            "/protocol_v7/intended_delta/tombstones/0/identity",
            identity(17),
            "dropped",
        ),
        (
            indices,
            "/tables/0/post_commit_pin",
            json!(9),
            "does not plan",
        ),
        (
            indices,
            "/protocol_v8/effects/0/source_fork_version",
            json!(7),
            "on main",
        ),
        (optimize, "/tables", json!([]), "without tables"),
    ] {
        let mut broken = make();
        match broken.pointer_mut(place) {
            Some(at) => *at = value.clone(),
            None => {
                let (parent, name) = place.rsplit_once('/').unwrap();
                broken.pointer_mut(parent).unwrap()[name] = value.clone();
            }
        }
        let why = read(&broken).expect_err(place);
        let words = if words == "reads" {
            "to read version"
        } else {
            words
        };
        assert!(
            why.contains(words),
            "{place} = {value}: '{why}' does not say '{words}'"
        );
    }
}
