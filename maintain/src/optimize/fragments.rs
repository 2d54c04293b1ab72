//! The compaction of one table version: plan, tasks, one Rewrite (`docs/format/lance-notes.md` 10).
//!
//! Lance's own commit of a compaction reserves fragment ids by a linear commit, so the Rewrite is put together here.
//! Its new fragments are numbered above every id the table ever had before it is committed: index bitmaps follow
//! the ids of the groups, and Lance fills in an id of 0 only after that.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::optimize::{
    CompactionOptions, CompactionTask, RewriteResult, TaskData, plan_compaction,
};
use lance::dataset::transaction::{Operation, RewriteGroup, Transaction, TransactionBuilder};
use lance_table::format::Fragment;
use serde::Serialize;
use tokio::sync::Semaphore;

/// Bytes that the tasks of a run may hold at once, in all tables together.
pub const MEMORY_BYTES: u64 = 512 << 20;
/// Bytes Lance may read ahead for one task. Its default of 2 GiB would be the bound of the process.
const TASK_READ_BYTES: u64 = 128 << 20;
/// Rows of a batch of a table with blobs: Lance holds the blobs of a whole batch.
const BLOB_BATCH_ROWS: usize = 128;
/// One permit of the memory bound.
const PERMIT_BYTES: u64 = 1 << 20;

/// The memory that compaction tasks share.
#[derive(Debug, Clone)]
pub struct Memory {
    permits: Arc<Semaphore>,
    total: u32,
}

impl Memory {
    /// A bound of `bytes`; below one mebibyte it is one.
    pub fn new(bytes: u64) -> Self {
        let total = permits(bytes);
        Self {
            permits: Arc::new(Semaphore::new(total as usize)),
            total,
        }
    }

    /// Permits of a task: what it reads, but never more than it may read ahead plus as much to write, nor more
    /// than there is, or it would wait for ever.
    fn share(&self, source_bytes: Option<u64>) -> u32 {
        let most = 2 * TASK_READ_BYTES;
        permits(source_bytes.map_or(most, |b| b.min(most))).min(self.total)
    }
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX >> 4)
}

/// One task of a plan: neighbouring fragments that become fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TaskSize {
    /// Fragments it replaces.
    pub fragments: usize,
    /// Live rows in them, as far as the manifest tells.
    pub rows: Option<u64>,
    /// Bytes of their data files, without blob side files; `None` when a manifest does not say.
    pub bytes: Option<u64>,
}

/// The compaction that a version needs.
#[derive(Debug, Clone)]
pub struct Compaction {
    tasks: Vec<CompactionTask>,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Fragments replaced.
    pub removed: usize,
    /// Fragments written.
    pub added: usize,
}

fn options(dataset: &Dataset) -> CompactionOptions {
    let blobs = dataset.schema().fields_pre_order().any(|f| f.is_blob());
    // Neither setting changes the plan or what is written.
    CompactionOptions {
        io_buffer_size: Some(TASK_READ_BYTES),
        batch_size: blobs.then_some(BLOB_BATCH_ROWS),
        ..CompactionOptions::default()
    }
}

impl Compaction {
    /// Plan with Lance's defaults at exactly this version.
    pub async fn plan(dataset: &Arc<Dataset>) -> Result<Self> {
        let object = dataset.uri().to_string();
        let (read, context) = (
            dataset.clone(),
            format!("cannot plan a compaction of {object}"),
        );
        let plan = guarded(&object, async move {
            plan_compaction(&read, &options(&read))
                .await
                .map_err(|e| Error::lance(context, e))
        })
        .await?;
        Ok(Self {
            tasks: plan.compaction_tasks().collect(),
        })
    }

    /// Whether nothing is to do.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Its tasks, in the order of the table.
    pub fn sizes(&self) -> Vec<TaskSize> {
        self.tasks.iter().map(|t| size(&t.task)).collect()
    }

    /// Run every task, as many at once as `memory` and the processors allow, and put the Rewrite together.
    /// `before_each` is asked before each task; its error ends the run. Files of tasks that ran are named by
    /// nothing.
    pub async fn run<E: From<Error>>(
        &self,
        dataset: &Arc<Dataset>,
        memory: &Memory,
        before_each: &(dyn Fn() -> Result<(), E> + Send + Sync),
    ) -> Result<(Transaction, Compacted), E> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut results: Vec<RewriteResult> = futures::stream::iter(&self.tasks)
            .map(|task| async move {
                let share = memory.share(size(&task.task).bytes);
                let _held = memory
                    .permits
                    .acquire_many(share)
                    .await
                    .map_err(|_| Error::internal("the memory bound of compaction is closed"))?;
                before_each()?;
                execute(dataset, task).await.map_err(E::from)
            })
            .buffered(threads)
            .try_collect()
            .await?;
        let first = dataset.manifest().max_fragment_id().map_or(0, |id| id + 1);
        number(&mut results, first)?;
        let mut done = Compacted::default();
        let mut groups = Vec::with_capacity(results.len());
        for result in results {
            done.removed += result.metrics.fragments_removed;
            done.added += result.metrics.fragments_added;
            groups.push(RewriteGroup {
                old_fragments: result.original_fragments,
                new_fragments: result.new_fragments,
            });
        }
        let operation = Operation::Rewrite {
            groups,
            rewritten_indices: Vec::new(),
            frag_reuse_index: None,
        };
        let rewrite = TransactionBuilder::new(dataset.manifest().version, operation).build();
        Ok((rewrite, done))
    }
}

async fn execute(dataset: &Arc<Dataset>, task: &CompactionTask) -> Result<RewriteResult> {
    let object = dataset.uri().to_string();
    let context = format!("cannot compact {object}");
    let (dataset, task) = (dataset.clone(), task.clone());
    guarded(&object, async move {
        let result = task
            .execute(&dataset)
            .await
            .map_err(|e| Error::lance(context.clone(), e))?;
        // Row addresses would mean that indexes have to be remapped, which a detached chain cannot do.
        if result.row_addrs.is_some() {
            return Err(Error::refused(format!(
                "{context}: the table has no stable row ids, which every table of a graph has; nothing was changed. \
                 Look at the root with: omnigraph verify --deep"
            )));
        }
        Ok(result)
    })
    .await
}

/// Number the new fragments from `first` on, in the order of the groups.
fn number(results: &mut [RewriteResult], first: u64) -> Result<()> {
    let new = results.iter_mut().flat_map(|r| r.new_fragments.iter_mut());
    for (id, fragment) in (first..).zip(new) {
        if u32::try_from(id).is_err() {
            return Err(Error::limit(
                "the number of a new fragment",
                u64::from(u32::MAX),
                id,
            ));
        }
        fragment.id = id;
    }
    Ok(())
}

fn size(task: &TaskData) -> TaskSize {
    let files = task.fragments.iter().flat_map(|f| &f.files);
    TaskSize {
        fragments: task.fragments.len(),
        rows: task.fragments.iter().map(live_rows).sum(),
        bytes: files.map(|f| f.file_size_bytes.get().map(u64::from)).sum(),
    }
}

fn live_rows(fragment: &Fragment) -> Option<u64> {
    fragment.num_rows().map(|rows| rows as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn result(fragments: usize) -> RewriteResult {
        RewriteResult {
            metrics: Default::default(),
            new_fragments: (0..fragments).map(|_| Fragment::new(0)).collect(),
            read_version: 1,
            original_fragments: vec![Fragment::new(0)],
            row_addrs: None,
        }
    }

    #[test]
    fn new_fragments_are_numbered_across_groups() {
        let mut results = [result(2), result(0), result(1)];
        number(&mut results, 7).unwrap();
        let ids: Vec<u64> = results
            .iter()
            .flat_map(|r| r.new_fragments.iter().map(|f| f.id))
            .collect();
        assert_eq!(ids, [7, 8, 9]);
        assert_eq!(results[0].original_fragments[0].id, 0);
        assert!(number(&mut results, u64::from(u32::MAX)).is_err());
    }

    #[test]
    fn no_task_asks_for_more_than_there_is() {
        let memory = Memory::new(64 << 20);
        for (bytes, share) in [
            (Some(0), 1),
            (Some(1), 1),
            (Some(3 << 20), 3),
            (Some(1 << 40), 64),
            (None, 64),
        ] {
            assert_eq!(memory.share(bytes), share, "{bytes:?}");
        }
        assert_eq!(Memory::new(MEMORY_BYTES).share(None), 256);
        assert_eq!(Memory::new(0).share(Some(9 << 20)), 1);
    }
}
