//! `build-indexes` and `rebuild-full-text-indexes` (`docs/format/maintenance.md` 3), and what `optimize` shares with
//! them: which indexes a schema declares, which a version has, what they need.
//!
//! Each table gets at most one detached CreateIndex link on its pin, and all of them one graph commit on the branch.

pub mod build;
pub mod declared;
mod full_text;
pub mod held;
mod human;
mod missing;
pub mod needs;
mod report;
mod table;

use std::collections::BTreeMap;

use graph::model::{Pin, TableRow};
use graph::store::Root;
use graph::table::open_pin;
use lance_table::format::IndexMetadata;
use write::capture::Capture;
use write::publish::Update;
use write::table::{Witness, commit_detached, next_pin};
use write::{Result, gates};

use crate::stop::Stop;
use declared::DeclaredIndex;

pub use full_text::{plan_full_text, rebuild_full_text};
pub use missing::{build_missing, plan_missing};
pub use report::{
    BuildPlan, BuildReport, BuiltIndex, PendingIndex, RebuildPlan, RebuildReport, RebuiltIndex,
};
pub use table::TableIndexes;

/// Which branch, who, and when to stop.
#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// Author of the commit.
    pub actor: Option<String>,
    /// Asked before every effect.
    pub stop: Stop,
}

/// A table of the accepted schema that the branch pins.
pub(crate) struct Pinned<'a> {
    pub(crate) row: &'a TableRow,
    pub(crate) pin: &'a Pin,
    pub(crate) declared: &'a [DeclaredIndex],
}

/// The tables of the accepted schema that have a pin, by table key.
pub(crate) fn pinned<'a>(
    capture: &'a Capture,
    declared: &'a BTreeMap<String, Vec<DeclaredIndex>>,
) -> Vec<Pinned<'a>> {
    declared
        .iter()
        .filter_map(|(key, declared)| {
            let (row, pin) = capture.state.tables.iter().find_map(|row| {
                let pin = row.state.pin().filter(|_| row.table_key == *key)?;
                Some((row, pin))
            })?;
            Some(Pinned { row, pin, declared })
        })
        .collect()
}

/// Pass the gates of the tables, then make sure that nothing moved while that took.
pub(crate) async fn pass(
    root: &Root,
    capture: &Capture,
    tables: &[Pinned<'_>],
) -> Result<gates::Held> {
    let branch = capture.branch.as_deref();
    let paths: Vec<&str> = tables.iter().map(|t| t.row.table_path.as_str()).collect();
    let held = gates::pass(root, branch, &paths).await;
    let again = Capture::of(root, branch).await?;
    capture
        .precondition()
        .check(&again.identifier, &again.state)?;
    Ok(held)
}

/// Commit `new` in place of `removed` as one link on the pin of `table`.
async fn stage_link(
    root: &Root,
    table: &Pinned<'_>,
    new: Vec<IndexMetadata>,
    removed: Vec<IndexMetadata>,
    witness: &Witness,
) -> Result<Update> {
    let base = open_pin(root, table.row, table.pin).await?.dataset;
    let link = build::link(&base, new, removed);
    let staged = commit_detached(root, base, link, witness).await?;
    Ok(Update::Pin {
        identity: table.row.identity,
        table_key: table.row.table_key.clone(),
        pin: Box::new(next_pin(root, table.pin, &staged, 1)),
    })
}
