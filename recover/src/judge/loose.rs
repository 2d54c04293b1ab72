//! Optimize and the files of earlier schema versions (`docs/format/recovery-sidecars.md` 7.6, 10). Pure.

use super::class::{Decided, decide};
use super::{Class, Table, Verdict, below_pin, foreign_drift};
use crate::sidecar::{Sidecar, WriterKind};

pub(super) fn judge(sidecar: &Sidecar, tables: &[Table]) -> Verdict {
    match decide(tables.iter().map(|t| t.class)) {
        Decided::Abort => Verdict::Refuse(
            below_pin(tables).unwrap_or_else(|| "a table is below its pin".to_string()),
        ),
        Decided::RollForward => Verdict::RollForward,
        Decided::RollBack => {
            let still = tables.iter().all(|t| t.class == Class::NoMovement);
            let past = tables.iter().any(|t| t.pinned_version > t.expected_version);
            let stale = sidecar.writer_kind == WriterKind::Optimize || sidecar.schema_version < 3;
            if still && past && stale {
                return Verdict::Stale;
            }
            // The reference restores whatever moved. A restore would bury rows that no release's maintenance wrote,
            // so those are left to the operator.
            let upkeep = matches!(
                sidecar.writer_kind,
                WriterKind::Optimize | WriterKind::EnsureIndices
            );
            let foreign = |t: &&Table| t.operations.iter().any(|o| !is_upkeep(o));
            if upkeep && let Some(t) = tables.iter().find(foreign) {
                return Verdict::Refuse(foreign_drift(t));
            }
            Verdict::RollBack("not every table was written".into())
        }
    }
}

/// Operations of compaction, of index builds, of their settings and of an earlier rollback.
fn is_upkeep(operation: &str) -> bool {
    matches!(
        operation,
        "Rewrite" | "ReserveFragments" | "CreateIndex" | "UpdateConfig" | "Restore"
    )
}
