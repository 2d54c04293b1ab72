//! BranchMerge (`docs/format/recovery-sidecars.md` 7.3). Pure.

use super::{Differences, Table, Verdict, foreign_drift, moved_pin, unverifiable};
use crate::observe::ownership::Ownership;
use crate::sidecar::Payload;

pub(super) fn judge(payload: &Payload, tables: &[Table], differences: Differences) -> Verdict {
    for t in tables {
        if t.pinned_version != t.expected_version {
            return Verdict::Refuse(moved_pin(t));
        }
        if t.is_ref_only {
            if t.exists && t.head_version != t.fork_version {
                return Verdict::Refuse(foreign_drift(t));
            }
        } else if t.head_version < t.expected_version {
            return Verdict::Refuse(format!(
                "table {}: its newest version is {}, below the expected {}",
                t.table_key, t.head_version, t.expected_version
            ));
        }
        if t.ownership == Ownership::Unverifiable {
            return Verdict::Refuse(unverifiable(t));
        }
    }
    let compensated = |t: &Table| t.ownership == Ownership::OwnCompensatedAtHead;
    if payload.is_confirmed()
        && let Some(t) = tables.iter().find(|t| !t.is_complete && !compensated(t))
    {
        return Verdict::Refuse(format!(
            "table {}: the merge was confirmed, but the table is not at its confirmed version {} (newest version {})",
            t.table_key,
            t.confirmed_version.unwrap_or_default(),
            t.head_version
        ));
    }
    let moved = |t: &Table| t.ownership.is_owned();
    let made_ref = |t: &Table| t.is_first_touch && t.exists;
    if differences.identifier && tables.iter().any(|t| moved(t) || made_ref(t)) {
        return Verdict::Refuse(
            "the branch was deleted and created again, but effects of the merge are in its tables"
                .into(),
        );
    }
    if !differences.any() && tables.iter().all(|t| t.is_complete) {
        return Verdict::RollForward;
    }
    if !tables.iter().any(moved) {
        return Verdict::Discard;
    }
    Verdict::RollBack(match differences.any() {
        true => differences.words(),
        false => "the merge was not confirmed in every table".into(),
    })
}
