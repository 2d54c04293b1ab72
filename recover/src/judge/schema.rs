//! SchemaApply (`docs/format/recovery-sidecars.md` 7.4). Pure.

use super::{Class, Differences, Table, Verdict, below_pin, unsafe_table};
use crate::sidecar::Payload;

pub(super) fn judge(payload: &Payload, tables: &[Table], differences: Differences) -> Verdict {
    if payload.system_column_upgrade.is_some() {
        return Verdict::Refuse(
            "it respells the system columns of a stamp-8 graph, which only release 0.11 finishes"
                .into(),
        );
    }
    // A foreign dataset at the path of a new table is neither adopted nor deleted.
    if let Some(why) = unsafe_table(tables, |t| t.is_registered) {
        return Verdict::Refuse(why);
    }
    if let Some(why) = below_pin(tables) {
        return Verdict::Refuse(why);
    }
    let back = |why: &str| Verdict::RollBack(why.into());
    if payload.rollback_audit_outcomes.is_some() {
        return back("a rollback was already begun");
    }
    if !payload.is_confirmed() {
        return back("the schema apply was not confirmed");
    }
    if differences.any() {
        return Verdict::RollBack(differences.words());
    }
    match tables.iter().all(|t| t.class == Class::RolledPastExpected) {
        true => Verdict::RollForward,
        false => back("a table is not at its confirmed version"),
    }
}
