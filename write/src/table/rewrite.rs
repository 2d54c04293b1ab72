//! One Rewrite out of compaction tasks (`docs/format/lance-notes.md` 10).
//!
//! Lance's own commit of a compaction reserves fragment ids by a linear commit, so the Rewrite is put together here.
//! Its new fragments are numbered above every id the table ever had before it is committed: index bitmaps follow
//! the ids of the groups, and Lance fills in an id of 0 only after that.

use std::sync::Arc;

use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::optimize::{CompactionTask, RewriteResult};
use lance::dataset::transaction::{Operation, RewriteGroup, Transaction, TransactionBuilder};

/// What a Rewrite replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Fragments replaced.
    pub removed: usize,
    /// Fragments written.
    pub added: usize,
}

/// Write the new fragments of one task. Its files are named by nothing yet.
pub async fn run_task(dataset: &Arc<Dataset>, task: &CompactionTask) -> Result<RewriteResult> {
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

/// The transaction that puts the results of tasks on `dataset` in place of what they read.
pub fn rewrite(
    dataset: &Dataset,
    mut results: Vec<RewriteResult>,
) -> Result<(Transaction, Rewritten)> {
    let first = dataset.manifest().max_fragment_id().map_or(0, |id| id + 1);
    number(&mut results, first)?;
    let mut done = Rewritten::default();
    let mut groups = Vec::with_capacity(results.len());
    for result in results {
        done.removed += result.original_fragments.len();
        done.added += result.new_fragments.len();
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
    let transaction = TransactionBuilder::new(dataset.manifest().version, operation).build();
    Ok((transaction, done))
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use lance_table::format::Fragment;

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
}
