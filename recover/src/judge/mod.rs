//! What is to be done with one sidecar (`docs/format/recovery-sidecars.md` 6 and 7). Pure functions over what was
//! read; the first rule that holds decides, in the order of the reference.

mod class;
mod indices;
mod loose;
mod merge;
mod mutation;
mod schema;
mod table;

pub use class::Class;
pub use table::{Table, table};

use crate::sidecar::{Sidecar, WriterKind};

/// How the branch differs from what the write was decided on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Differences {
    /// The branch is another incarnation.
    pub identifier: bool,
    /// Its head is another commit.
    pub head: bool,
    /// The accepted schema is another one.
    pub schema: bool,
}

impl Differences {
    /// Whether anything differs.
    pub fn any(self) -> bool {
        self.identifier || self.head || self.schema
    }

    /// The differences in words; empty when there are none.
    pub fn words(self) -> String {
        [
            (self.identifier, "the branch was deleted and created again"),
            (self.head, "the branch has another head commit"),
            (self.schema, "the graph has another schema"),
        ]
        .iter()
        .filter_map(|(there, words)| there.then_some(*words))
        .collect::<Vec<_>>()
        .join(", ")
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing; the file stays.
    Refuse(String),
    /// Nothing of the write is there: clean its refs and drop the file, without a commit.
    Discard,
    /// Publish what the write made.
    RollForward,
    /// Take back what the write made.
    RollBack(String),
    /// Others have published past it: only record it.
    Stale,
}

/// Judge a sidecar whose commit and rollback are not visible on its branch.
pub fn judge(sidecar: &Sidecar, tables: &[Table], differences: Differences) -> Verdict {
    if let Some(why) = tables.iter().find_map(|t| t.problem.as_ref()) {
        return Verdict::Refuse(why.clone());
    }
    let Some(payload) = sidecar.payload() else {
        return match sidecar.writer_kind {
            WriterKind::SchemaApply => Verdict::Refuse(format!(
                "a SchemaApply of schema_version {} carries no plan that this build can finish",
                sidecar.schema_version
            )),
            WriterKind::EnsureIndices if sidecar.ensure_indices_rollback_v6.is_some() => {
                Verdict::Refuse("an EnsureIndices of schema_version 6 with a rollback plan".into())
            }
            _ => loose::judge(sidecar, tables),
        };
    };
    match sidecar.writer_kind {
        WriterKind::Mutation | WriterKind::Load => mutation::judge(tables, differences),
        WriterKind::BranchMerge => merge::judge(payload, tables, differences),
        WriterKind::SchemaApply => schema::judge(payload, tables, differences),
        WriterKind::EnsureIndices => indices::judge(payload, tables, differences),
        WriterKind::Optimize => Verdict::Refuse("an Optimize with a payload".into()),
    }
}

fn unverifiable(table: &Table) -> String {
    format!(
        "table {}: the transactions above version {} do not prove whose they are (operations: {})",
        table.table_key,
        table.pinned_version,
        table.operations.join(", ")
    )
}

fn foreign_above_own(table: &Table) -> String {
    format!(
        "table {}: a foreign commit stands above the write's own (newest version {}, operations: {})",
        table.table_key,
        table.head_version,
        table.operations.join(", ")
    )
}

fn moved_pin(table: &Table) -> String {
    format!(
        "table {}: the branch shows version {}, the write expected {}",
        table.table_key, table.pinned_version, table.expected_version
    )
}

fn foreign_drift(table: &Table) -> String {
    format!(
        "table {}: versions {} to {} are not the write's own (operations: {})",
        table.table_key,
        table.pinned_version.saturating_add(1),
        table.head_version,
        table.operations.join(", ")
    )
}

/// A later write was published over the table while this one's commit stands above it: it can still be taken back.
fn is_lower_winner(table: &Table) -> bool {
    table.pinned_version > table.expected_version
        && table.pinned_version < table.head_version
        && table.ownership.is_at_head()
}

/// The refusals that Mutation, Load, SchemaApply and EnsureIndices share. `counts` says which tables that are not
/// owned must not have moved.
fn unsafe_table(tables: &[Table], counts: impl Fn(&Table) -> bool) -> Option<String> {
    use crate::observe::ownership::Ownership;
    tables.iter().find_map(|t| match t.ownership {
        Ownership::Unverifiable => Some(unverifiable(t)),
        Ownership::OwnBeforeHead => Some(foreign_above_own(t)),
        o if o.is_owned() && t.pinned_version != t.expected_version && !is_lower_winner(t) => {
            Some(moved_pin(t))
        }
        Ownership::None if t.head_version > t.pinned_version && counts(t) => Some(foreign_drift(t)),
        _ => None,
    })
}

fn below_pin(tables: &[Table]) -> Option<String> {
    let table = tables.iter().find(|t| t.head_version < t.pinned_version)?;
    Some(format!(
        "table {}: its newest version is {}, below the published version {}; versions were lost. Restore the whole root \
         from a backup",
        table.table_key, table.head_version, table.pinned_version
    ))
}

#[cfg(test)]
mod tests;
