//! The compaction of one table version: plan, tasks, one Rewrite (`docs/format/lance-notes.md` 10).

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::optimize::{
    CompactionOptions, CompactionTask, RewriteResult, TaskData, plan_compaction,
};
use lance::dataset::transaction::Transaction;
use lance_table::format::Fragment;
use serde::Serialize;
use tokio::sync::Semaphore;
use write::table::{Rewritten, rewrite, run_task};

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
    ) -> Result<(Transaction, Rewritten), E> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let results: Vec<RewriteResult> = futures::stream::iter(&self.tasks)
            .map(|task| async move {
                let share = memory.share(size(&task.task).bytes);
                let _held = memory
                    .permits
                    .acquire_many(share)
                    .await
                    .map_err(|_| Error::internal("the memory bound of compaction is closed"))?;
                before_each()?;
                run_task(dataset, task).await.map_err(E::from)
            })
            .buffered(threads)
            .try_collect()
            .await?;
        Ok(rewrite(dataset, results)?)
    }
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
mod tests {
    use super::*;

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
