//! EnsureIndices (`docs/format/recovery-sidecars.md` 7.5). Pure.

use super::{Class, Differences, Table, Verdict, below_pin, unsafe_table};
use crate::sidecar::Payload;

pub(super) fn judge(payload: &Payload, tables: &[Table], differences: Differences) -> Verdict {
    if let Some(why) = unsafe_table(tables, |_| true) {
        return Verdict::Refuse(why);
    }
    if let Some(why) = below_pin(tables) {
        return Verdict::Refuse(why);
    }
    if differences.identifier {
        let touched = |t: &Table| t.ownership.is_owned() || (t.is_first_touch && t.exists);
        return match tables.iter().any(touched) {
            true => Verdict::Refuse(
                "the branch was deleted and created again, but effects of the index build are in its tables".into(),
            ),
            false => Verdict::Discard,
        };
    }
    let back = |why: &str| Verdict::RollBack(why.into());
    if payload.rollback_audit_outcomes.is_some() {
        return back("a rollback was already begun");
    }
    if !payload.is_confirmed() {
        return back("the index build was not confirmed");
    }
    if differences.any() {
        return Verdict::RollBack(differences.words());
    }
    match tables.iter().all(|t| t.class == Class::RolledPastExpected) {
        true => Verdict::RollForward,
        false => back("a table is not at its confirmed version"),
    }
}
