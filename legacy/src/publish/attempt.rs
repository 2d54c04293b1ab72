//! One publish: read, check, stage, commit at the exact next version; the whole attempt again when that version was
//! taken.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::Schema;
use graph::store::{CommitOutcome, Root, guarded};
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::transaction::Transaction;
use lance::dataset::{MergeInsertBuilder, WhenMatched, WhenNotMatched};

use super::catalog::BranchCatalog;
use super::change::{Change, Lineage, Precondition, PublishError, check_precondition, rows_of};
use super::rows::encode;

/// Attempts in total (`docs/format/recovery-sidecars.md` 12).
pub const MAX_ATTEMPTS: u32 = 6;

/// A publish that landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The `__manifest` version it made.
    pub version: u64,
}

/// Publish `changes` and one commit on a branch (`None` = main). Nothing lands on any error but one whose outcome
/// storage does not tell ([`Error::Storage`]): look for the commit id then.
pub async fn publish(
    root: &Root,
    branch: Option<&str>,
    precondition: Option<&Precondition>,
    changes: &[Change],
    lineage: &Lineage,
) -> Result<Published, PublishError> {
    for _ in 0..MAX_ATTEMPTS {
        let catalog = BranchCatalog::read(root, branch).await?;
        if let Some(precondition) = precondition {
            check_precondition(&catalog, precondition)?;
        }
        let next = catalog.version.version.saturating_add(1);
        let logical = catalog.branch.as_deref();
        let rows = rows_of(
            &catalog.rows,
            catalog.stamp,
            next,
            logical,
            changes,
            lineage,
        )?;
        let base = catalog.version.dataset.clone();
        let batch = encode(&rows, Schema::from(base.schema()))?;
        let transaction = stage(base.clone(), batch).await?;
        match root.commit_exact("__manifest", base, transaction).await {
            CommitOutcome::Landed(_) => return Ok(Published { version: next }),
            CommitOutcome::Lost(_) => {}
            CommitOutcome::Unknown(e) => return Err(e.into()),
        }
    }
    Err(PublishError::Contended(MAX_ATTEMPTS))
}

/// Stage the merge insert that releases made: matched rows replaced whole, the others inserted.
async fn stage(base: Arc<Dataset>, batch: RecordBatch) -> Result<Transaction> {
    guarded("__manifest", async move {
        let failed = |e| Error::lance("cannot stage a publish of __manifest", e);
        let schema = batch.schema();
        let mut builder =
            MergeInsertBuilder::try_new(base, vec!["object_id".to_string()]).map_err(failed)?;
        let staged = builder
            .when_matched(WhenMatched::UpdateAll)
            .when_not_matched(WhenNotMatched::InsertAll)
            .conflict_retries(0)
            .use_index(false)
            .skip_auto_cleanup(true)
            .try_build()
            .map_err(failed)?
            .execute_uncommitted(RecordBatchIterator::new([Ok(batch)], schema))
            .await
            .map_err(failed)?;
        Ok(staged.transaction)
    })
    .await
}
