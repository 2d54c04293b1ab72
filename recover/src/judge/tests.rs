#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::observe::ownership::Ownership::{
    self, None as Nobody, OwnAtHead, OwnBeforeHead, OwnCompensatedAtHead, Unverifiable,
};
use crate::sidecar::{Authority, Delta, EffectPhase, LineageIntent, Payload};

/// A table at pin, newest and expected version.
fn at(pinned: u64, head: u64, expected: u64, ownership: Ownership, class: Class) -> Table {
    Table {
        table_key: "node:A".into(),
        location: "nodes/a".into(),
        table_branch: None,
        pinned_version: pinned,
        head_version: head,
        expected_version: expected,
        post_commit_pin: expected + 1,
        confirmed_version: None,
        planned_transactions: vec![],
        ownership,
        class,
        operations: vec![],
        is_first_touch: false,
        exists: true,
        is_registered: true,
        is_new_dataset: false,
        is_ref_only: false,
        is_complete: class == Class::RolledPastExpected,
        fork_version: expected,
        problem: None,
        children: vec![],
        is_restored: false,
    }
}

fn complete() -> Table {
    at(5, 6, 5, OwnAtHead, Class::RolledPastExpected)
}

fn partial() -> Table {
    at(5, 6, 5, OwnAtHead, Class::IncompletePhaseB)
}

fn still() -> Table {
    at(5, 5, 5, Nobody, Class::NoMovement)
}

fn first_touch(exists: bool) -> Table {
    Table {
        is_first_touch: true,
        exists,
        ..still()
    }
}

fn payload(confirmed: bool, planned: bool) -> Payload {
    Payload {
        authority: Authority {
            branch_identifier: Default::default(),
            graph_head: None,
            schema_identity_domain: "d".into(),
            schema_ir_hash: "h".into(),
            schema_identity_version: 2,
        },
        lineage: LineageIntent {
            graph_commit_id: "c".into(),
            branch: None,
            actor_id: None,
            merged_parent_commit_id: None,
            created_at: 0,
        },
        rollback_graph_commit_id: "r".into(),
        rollback_audit_outcomes: planned.then(Vec::new),
        target_schema_ir_hash: None,
        effect_phase: match confirmed {
            true => EffectPhase::EffectsConfirmed,
            false => EffectPhase::Armed,
        },
        effects: vec![],
        intended_delta: Delta::default(),
        system_column_upgrade: None,
    }
}

const SAME: Differences = Differences {
    identifier: false,
    head: false,
    schema: false,
};
const MOVED: Differences = Differences { head: true, ..SAME };
const RECREATED: Differences = Differences {
    identifier: true,
    ..SAME
};

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Refuse(_) => "refuse",
        Verdict::Discard => "discard",
        Verdict::RollForward => "forward",
        Verdict::RollBack(_) => "back",
        Verdict::Stale => "stale",
    }
}

#[test]
fn mutations() {
    let winner = at(7, 8, 5, OwnAtHead, Class::UnexpectedAtP1);
    let compensated = at(5, 7, 5, OwnCompensatedAtHead, Class::IncompletePhaseB);
    for (tables, differences, want) in [
        (vec![complete(), complete()], SAME, "forward"),
        (vec![complete(), complete()], MOVED, "back"),
        (vec![complete(), complete()], RECREATED, "refuse"),
        (vec![complete(), still()], SAME, "back"),
        (vec![partial(), still()], SAME, "back"),
        (vec![compensated], SAME, "back"),
        (vec![still(), still()], SAME, "discard"),
        (vec![still()], RECREATED, "discard"),
        (vec![first_touch(false), first_touch(true)], SAME, "discard"),
        (
            vec![at(5, 6, 5, Unverifiable, Class::IncompletePhaseB), still()],
            SAME,
            "refuse",
        ),
        (
            vec![at(5, 7, 5, OwnBeforeHead, Class::UnexpectedMultistep)],
            SAME,
            "refuse",
        ),
        // A foreign commit beside an own one, and alone.
        (
            vec![partial(), at(5, 6, 5, Nobody, Class::IncompletePhaseB)],
            SAME,
            "refuse",
        ),
        (
            vec![at(5, 6, 5, Nobody, Class::IncompletePhaseB)],
            SAME,
            "discard",
        ),
        // A later write is published below the own commit; at or above it is another matter.
        (vec![winner.clone()], SAME, "back"),
        (
            vec![Table {
                head_version: 7,
                ..winner.clone()
            }],
            SAME,
            "refuse",
        ),
        (
            vec![Table {
                pinned_version: 4,
                ..winner
            }],
            SAME,
            "refuse",
        ),
        (
            vec![partial(), at(5, 4, 5, Nobody, Class::InvariantViolation)],
            SAME,
            "refuse",
        ),
    ] {
        let verdict = mutation::judge(&tables, differences);
        assert_eq!(
            word(&verdict),
            want,
            "{differences:?} {tables:#?}: {verdict:?}"
        );
    }
}

#[test]
fn merges() {
    let compensated = at(5, 7, 5, OwnCompensatedAtHead, Class::IncompletePhaseB);
    let fork = |exists, head, complete| Table {
        is_ref_only: true,
        is_first_touch: true,
        exists,
        head_version: head,
        fork_version: 9,
        is_complete: complete,
        ..still()
    };
    for (confirmed, tables, differences, want) in [
        (true, vec![complete(), complete()], SAME, "forward"),
        (true, vec![complete()], MOVED, "back"),
        (true, vec![complete()], RECREATED, "refuse"),
        (true, vec![complete(), still()], SAME, "refuse"),
        (true, vec![complete(), compensated.clone()], SAME, "back"),
        (false, vec![partial(), still()], SAME, "back"),
        (false, vec![still()], SAME, "discard"),
        (false, vec![first_touch(true)], SAME, "discard"),
        (false, vec![first_touch(true)], RECREATED, "refuse"),
        (false, vec![first_touch(false)], RECREATED, "discard"),
        (true, vec![fork(true, 9, true)], SAME, "forward"),
        (true, vec![fork(true, 9, false)], SAME, "refuse"),
        (false, vec![fork(true, 9, false)], SAME, "discard"),
        (false, vec![fork(true, 10, false)], SAME, "refuse"),
        (false, vec![fork(false, 5, false)], SAME, "discard"),
        (
            false,
            vec![at(6, 7, 5, OwnAtHead, Class::IncompletePhaseB)],
            SAME,
            "refuse",
        ),
        (
            false,
            vec![at(5, 6, 5, Unverifiable, Class::IncompletePhaseB)],
            SAME,
            "refuse",
        ),
        (
            false,
            vec![at(5, 4, 5, Nobody, Class::NoMovement)],
            SAME,
            "refuse",
        ),
    ] {
        let verdict = merge::judge(&payload(confirmed, false), &tables, differences);
        assert_eq!(
            word(&verdict),
            want,
            "{confirmed} {differences:?} {tables:#?}: {verdict:?}"
        );
    }
}

#[test]
fn schema_applies_and_index_builds() {
    let unregistered = Table {
        is_registered: false,
        is_new_dataset: true,
        ..at(0, 1, 0, Nobody, Class::IncompletePhaseB)
    };
    // (confirmed, plan begun, tables, differences, schema apply, index build)
    for (confirmed, planned, tables, differences, schema_want, index_want) in [
        (true, false, vec![complete()], SAME, "forward", "forward"),
        (true, true, vec![complete()], SAME, "back", "back"),
        (true, false, vec![complete()], MOVED, "back", "back"),
        (true, false, vec![complete(), still()], SAME, "back", "back"),
        (true, false, vec![], SAME, "forward", "forward"),
        (false, false, vec![], SAME, "back", "back"),
        (false, false, vec![still()], SAME, "back", "back"),
        (false, false, vec![partial()], RECREATED, "back", "refuse"),
        (false, false, vec![still()], RECREATED, "back", "discard"),
        (
            false,
            false,
            vec![first_touch(true)],
            RECREATED,
            "back",
            "refuse",
        ),
        (
            false,
            false,
            vec![at(5, 6, 5, Nobody, Class::IncompletePhaseB)],
            SAME,
            "refuse",
            "refuse",
        ),
        (false, false, vec![unregistered], SAME, "back", "refuse"),
        (
            false,
            false,
            vec![at(5, 7, 5, OwnBeforeHead, Class::IncompletePhaseB)],
            SAME,
            "refuse",
            "refuse",
        ),
        (
            false,
            false,
            vec![at(5, 4, 5, Nobody, Class::InvariantViolation)],
            SAME,
            "refuse",
            "refuse",
        ),
    ] {
        let payload = payload(confirmed, planned);
        let verdict = schema::judge(&payload, &tables, differences);
        assert_eq!(
            word(&verdict),
            schema_want,
            "schema {differences:?} {tables:#?}: {verdict:?}"
        );
        let verdict = indices::judge(&payload, &tables, differences);
        assert_eq!(
            word(&verdict),
            index_want,
            "index {differences:?} {tables:#?}: {verdict:?}"
        );
    }
    let mut respelling = payload(true, false);
    respelling.system_column_upgrade = Some(crate::sidecar::SystemColumnUpgrade {
        from_stamp: 8,
        to_stamp: 9,
        manifest_version_after_stamp: None,
    });
    assert_eq!(word(&schema::judge(&respelling, &[], SAME)), "refuse");
}

#[test]
fn optimizes() {
    let sidecar = |kind: &str| -> Sidecar {
        let text = format!(
            r#"{{"schema_version":9,"operation_id":"o","started_at":"1","writer_kind":"{kind}","tables":[]}}"#
        );
        Sidecar::parse(text.as_bytes()).unwrap()
    };
    let moved = |operation: &str| Table {
        operations: vec![operation.into()],
        ..complete()
    };
    let past = at(6, 6, 5, Nobody, Class::NoMovement);
    for (tables, want) in [
        (vec![moved("Rewrite"), moved("CreateIndex")], "forward"),
        (vec![moved("Rewrite"), still()], "back"),
        (vec![moved("Append"), still()], "refuse"),
        (vec![still(), still()], "back"),
        (vec![past.clone(), still()], "stale"),
        (vec![past, moved("Rewrite")], "back"),
        (
            vec![at(5, 4, 5, Nobody, Class::InvariantViolation)],
            "refuse",
        ),
    ] {
        let verdict = judge(&sidecar("Optimize"), &tables, SAME);
        assert_eq!(word(&verdict), want, "{tables:#?}: {verdict:?}");
    }
    // Without a plan a schema apply is not finished.
    assert_eq!(word(&judge(&sidecar("SchemaApply"), &[], SAME)), "refuse");
}

#[test]
fn a_problem_refuses_whatever_the_classes() {
    let broken = Table {
        problem: Some("the ref is gone".into()),
        ..complete()
    };
    let text = r#"{"schema_version":9,"operation_id":"o","started_at":"1","writer_kind":"Optimize","tables":[]}"#;
    let sidecar = Sidecar::parse(text.as_bytes()).unwrap();
    let verdict = judge(&sidecar, &[complete(), broken], SAME);
    assert_eq!(verdict, Verdict::Refuse("the ref is gone".into()));
}
