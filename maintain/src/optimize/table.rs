//! One table of a run: planned at its pin, staged as a chain of detached links
//! (`docs/format/maintenance.md` 2.1 steps 5 and 6).

use std::sync::Arc;

use graph::store::Root;
use graph::table::open_pin;
use graph::{Error, Result as GraphResult};
use lance::Dataset;
use lance::dataset::transaction::Transaction;
use write::Result;
use write::publish::Update;
use write::table::{Rewritten, Staged, Witness, commit_detached, next_pin};

use super::fragments::{Compaction, Memory};
use super::report::PlannedTable;
use crate::indexes::build::{Build, Recipe, build, link};
use crate::indexes::needs::{Needs, Pending};
use crate::indexes::{Pinned, TableIndexes};

/// What a table needs.
pub(super) struct TablePlan {
    type_key: String,
    dataset: Arc<Dataset>,
    compaction: Compaction,
    indexes: TableIndexes,
    needs: Needs,
}

impl TablePlan {
    /// Plan at the pin.
    pub(super) async fn read(root: &Root, table: &Pinned<'_>) -> Result<Self> {
        let dataset = open_pin(root, table.row, table.pin).await?.dataset;
        let compaction = Compaction::plan(&dataset).await?;
        let indexes = TableIndexes::read(&dataset, table.declared).await?;
        Ok(Self {
            type_key: table.row.table_key.clone(),
            needs: indexes.needs(table.declared),
            dataset,
            compaction,
            indexes,
        })
    }

    /// Whether a link would be staged.
    pub(super) fn has_work(&self) -> bool {
        !self.compaction.is_empty() || !self.needs.fold.is_empty() || !self.needs.create.is_empty()
    }

    /// As `--check` prints it.
    pub(super) fn shown(self) -> PlannedTable {
        let tasks = self.compaction.sizes();
        PlannedTable {
            type_key: self.type_key,
            fragments: self.indexes.fragments.len(),
            rows: self.indexes.rows,
            bytes_to_rewrite: tasks.iter().map(|t| t.bytes).sum(),
            compaction_tasks: tasks,
            rebuild_indexes: self.needs.fold,
            missing_indexes: self.needs.create,
            pending_indexes: pending(self.needs.unbuildable, self.needs.lagging),
        }
    }
}

fn pending(unbuildable: Vec<Pending>, lagging: Vec<Pending>) -> Vec<Pending> {
    unbuildable.into_iter().chain(lagging).collect()
}

/// What became of a table.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) type_key: String,
    pub(super) compacted: Rewritten,
    /// The pin of the tip; `None` when nothing was staged.
    pub(super) update: Option<Update>,
    pub(super) pending: Vec<Pending>,
}

/// The newest link of a chain.
struct Tip {
    dataset: Arc<Dataset>,
    staged: Option<Staged>,
    links: u64,
}

impl Tip {
    async fn extend(&mut self, root: &Root, link: Transaction, witness: &Witness) -> Result<()> {
        let staged = commit_detached(root, self.dataset.clone(), link, witness).await?;
        self.dataset = staged.dataset.clone();
        self.staged = Some(staged);
        self.links += 1;
        Ok(())
    }
}

/// Stage the links of a table. `guard` is asked before each effect.
pub(super) async fn stage(
    root: &Root,
    table: &Pinned<'_>,
    plan: &TablePlan,
    witness: &Witness,
    memory: &Memory,
    guard: &(dyn Fn() -> Result<()> + Send + Sync),
) -> Result<Chain> {
    let mut tip = Tip {
        dataset: plan.dataset.clone(),
        staged: None,
        links: 0,
    };
    let mut compacted = Rewritten::default();
    let (mut indexes, mut needs) = (plan.indexes.clone(), plan.needs.clone());
    if !plan.compaction.is_empty() {
        let (rewrite, done) = plan.compaction.run(&plan.dataset, memory, guard).await?;
        guard()?;
        tip.extend(root, rewrite, witness).await?;
        compacted = done;
        indexes = TableIndexes::read(&tip.dataset, table.declared).await?;
        same_rows(table, plan.indexes.rows, indexes.rows)?;
        needs = indexes.needs(table.declared);
    }
    let (mut new, mut removed) = (Vec::new(), Vec::new());
    for fold in &needs.fold {
        guard()?;
        let held = indexes.held.iter().find(|h| h.name == fold.name);
        let vectors = indexes.vectors(&fold.column);
        let Some((held, recipe)) = held.and_then(|h| Some((h, Recipe::of_held(&h.kind, vectors)?)))
        else {
            continue;
        };
        let what = Build {
            column: fold.column.clone(),
            recipe,
            replaces: Some(fold.name.clone()),
        };
        new.push(build(&tip.dataset, &what).await?);
        removed.extend(held.segments.iter().cloned());
    }
    if !new.is_empty() {
        guard()?;
        let fold = link(&tip.dataset, new, removed);
        tip.extend(root, fold, witness).await?;
    }
    let mut new = Vec::new();
    for index in &needs.create {
        guard()?;
        let what = Build {
            column: index.column.clone(),
            recipe: Recipe::of_new(index.kind, indexes.vectors(&index.column)),
            replaces: None,
        };
        new.push(build(&tip.dataset, &what).await?);
    }
    if !new.is_empty() {
        guard()?;
        let create = link(&tip.dataset, new, Vec::new());
        tip.extend(root, create, witness).await?;
    }
    let update = match &tip.staged {
        None => None,
        Some(staged) => {
            same_rows(table, plan.indexes.rows, staged.row_count)?;
            Some(Update::Pin {
                identity: table.row.identity,
                table_key: table.row.table_key.clone(),
                // A table that a merge left on a native fork stays there, as every other write leaves it: a pin of
                // the root lineage would name a version that is not in it.
                pin: Box::new(next_pin(root, table.pin, staged, tip.links)),
            })
        }
    };
    Ok(Chain {
        type_key: plan.type_key.clone(),
        compacted,
        update,
        pending: pending(needs.unbuildable, needs.lagging),
    })
}

/// No link may change the rows.
fn same_rows(table: &Pinned<'_>, before: u64, after: u64) -> GraphResult<()> {
    if before == after {
        return Ok(());
    }
    Err(Error::internal(format!(
        "{}: the image has {before} rows and its optimized copy {after}; nothing was published. Look at the root \
         with: omnigraph verify --deep",
        table.row.table_key
    )))
}
