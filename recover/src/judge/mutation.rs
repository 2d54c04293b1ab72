//! Mutation and Load (`docs/format/recovery-sidecars.md` 7.2). Pure.

use super::class::{Decided, decide};
use super::{Differences, Table, Verdict, below_pin, unsafe_table, unverifiable};
use crate::observe::ownership::Ownership;

pub(super) fn judge(tables: &[Table], differences: Differences) -> Verdict {
    if let Some(t) = tables
        .iter()
        .find(|t| t.ownership == Ownership::Unverifiable)
    {
        return Verdict::Refuse(unverifiable(t));
    }
    if !tables.iter().any(|t| t.ownership.is_owned()) {
        return Verdict::Discard;
    }
    if differences.identifier {
        return Verdict::Refuse(
            "the branch was deleted and created again, but effects of the write are in its tables"
                .into(),
        );
    }
    if let Some(why) = unsafe_table(tables, |_| true) {
        return Verdict::Refuse(why);
    }
    if let Some(why) = below_pin(tables) {
        return Verdict::Refuse(why);
    }
    if differences.any() {
        return Verdict::RollBack(differences.words());
    }
    match decide(tables.iter().map(|t| t.class)) {
        Decided::Abort => Verdict::Refuse("a table is below its pin".into()),
        Decided::RollForward => Verdict::RollForward,
        Decided::RollBack => Verdict::RollBack("the write was not confirmed in every table".into()),
    }
}
