//! `optimize`: compaction and index upkeep of main (`docs/format/maintenance.md` 2).
//!
//! Every table is planned at its pin, never at the linear HEAD. A table with work gets at most three detached links,
//! each on the one before: the compaction, the rebuild of indexes that lag, the declared indexes that are missing.
//! All tables are published in one graph commit; nothing is visible before, and nothing is deleted. `__manifest`
//! is left alone: a publish of stamp 14 writes its rows as one fragment, so there is nothing to compact.

mod fragments;
pub(crate) mod report;
mod table;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt as _, TryStreamExt as _};
use graph::store::Root;
use write::capture::Capture;
use write::{Result, gates};

use crate::entry::admit;
use crate::indexes::declared::declared;
use crate::indexes::{Pinned, pass, pinned};
use crate::publish::publish_tables;
use crate::stop::Stop;

use fragments::Memory;
pub use fragments::{MEMORY_BYTES, TaskSize};
pub use report::{MANIFEST_KEY, OptimizePlan, OptimizeReport, OptimizedTable, PlannedTable};
use table::{Chain, TablePlan};

/// The variable that bounds how many tables are processed at once.
pub const CONCURRENCY_VARIABLE: &str = "OMNIGRAPH_MAINTENANCE_CONCURRENCY";
/// Tables at once when nothing else is asked for.
const DEFAULT_CONCURRENCY: usize = 8;

/// Tables at once for the value of [`CONCURRENCY_VARIABLE`]: a positive integer, anything else is the default of 8
/// (`docs/format/maintenance.md` 1.2).
pub fn concurrency(setting: Option<&str>) -> usize {
    setting
        .and_then(|text| text.trim().parse().ok())
        .filter(|n| *n > 0)
        .unwrap_or(DEFAULT_CONCURRENCY)
}

/// How to run.
#[derive(Debug, Clone)]
pub struct OptimizeOptions {
    /// Tables at once ([`concurrency`]).
    pub concurrency: usize,
    /// Bytes that the compaction tasks of all tables may hold at once.
    pub memory_bytes: u64,
    /// Asked before every effect.
    pub stop: Stop,
}

impl Default for OptimizeOptions {
    fn default() -> Self {
        Self {
            concurrency: DEFAULT_CONCURRENCY,
            memory_bytes: MEMORY_BYTES,
            stop: Stop::new(),
        }
    }
}

/// Say what [`optimize`] would do. Changes nothing.
pub async fn plan(root: &Root, options: &OptimizeOptions) -> Result<OptimizePlan> {
    let capture = admit(root, None).await?;
    let all = declared(&capture.ir);
    let tables = pinned(&capture, &all);
    let planned: Vec<PlannedTable> =
        futures::stream::iter(&tables)
            .map(|table| async move {
                Ok::<_, write::WriteError>(plan_table(root, table).await?.shown())
            })
            .buffered(options.concurrency.max(1))
            .try_collect()
            .await?;
    Ok(OptimizePlan {
        uri: root.uri().to_string(),
        datasets: planned,
    })
}

/// Optimize main: [`stage`], then [`Staged::publish`].
pub async fn optimize(root: &Root, options: &OptimizeOptions) -> Result<OptimizeReport> {
    stage(root, options).await?.publish().await
}

/// A run whose links are committed and named by nothing yet. It holds the gates of its tables.
#[derive(Debug)]
pub struct Staged {
    root: Root,
    capture: Capture,
    chains: Vec<Chain>,
    stop: Stop,
    _held: gates::Held,
}

/// Plan every table and stage the links of those that need work. A failure of one table is that of the run; what was
/// staged stays unpublished.
pub async fn stage(root: &Root, options: &OptimizeOptions) -> Result<Staged> {
    let capture = admit(root, None).await?;
    let all = declared(&capture.ir);
    let tables = pinned(&capture, &all);
    let held = pass(root, &capture, &tables).await?;
    let memory = Memory::new(options.memory_bytes);
    let witness = capture.witness()?;
    let planned: Vec<TablePlan> = futures::stream::iter(&tables)
        .map(|table| plan_table(root, table))
        .buffered(options.concurrency.max(1))
        .try_collect()
        .await?;
    let with_work = planned.iter().filter(|p| p.has_work()).count();
    let staged = AtomicUsize::new(0);
    let guard = || {
        let staged = staged.load(Ordering::Relaxed);
        Ok(options.stop.check(|| how_far(staged, with_work))?)
    };
    let (guard, memory, witness, staged) = (&guard, &memory, &witness, &staged);
    let chains: Vec<Chain> = futures::stream::iter(tables.iter().zip(&planned))
        .map(|(table, plan)| async move {
            let chain = table::stage(root, table, plan, witness, memory, guard).await?;
            if chain.update.is_some() {
                staged.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, write::WriteError>(chain)
        })
        .buffered(options.concurrency.max(1))
        .try_collect()
        .await?;
    Ok(Staged {
        root: root.clone(),
        chains,
        stop: options.stop.clone(),
        _held: held,
        capture,
    })
}

impl Staged {
    /// Publish every staged table in one graph commit without an actor, or none when no table needed work. A write
    /// that landed since the tables were planned is a read-set conflict: the graph is unchanged and what was staged
    /// is named by nothing (`docs/format/maintenance.md` 2.3).
    pub async fn publish(self) -> Result<OptimizeReport> {
        let updates: Vec<_> = self
            .chains
            .iter()
            .filter_map(|c| c.update.clone())
            .collect();
        let mut graph_commit_id = None;
        if !updates.is_empty() {
            let staged = updates.len();
            self.stop.check(|| how_far(staged, staged))?;
            let published = publish_tables(&self.root, &self.capture, updates, None).await?;
            graph_commit_id = Some(published.state.head.graph_commit_id.clone());
        }
        Ok(OptimizeReport::new(
            self.root.uri(),
            self.chains,
            graph_commit_id,
        ))
    }
}

fn how_far(staged: usize, with_work: usize) -> String {
    format!(
        "{staged} of {with_work} tables with work were staged and none is published, the graph is unchanged; run the \
         command again"
    )
}

async fn plan_table(root: &Root, table: &Pinned<'_>) -> Result<TablePlan> {
    TablePlan::read(root, table).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_a_positive_integer_or_the_default() {
        let cases = [
            (None, 8),
            (Some(""), 8),
            (Some("0"), 8),
            (Some("-1"), 8),
            (Some("many"), 8),
            (Some(" 3 "), 3),
        ];
        for (setting, expected) in cases {
            assert_eq!(concurrency(setting), expected, "{setting:?}");
        }
    }
}
