//! Staging one detached commit on the image a pin names.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use graph::model::{Pin, PinMetadata};
use graph::store::{Root, guarded};
use graph::table::manifest_metadata;
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::transaction::{Operation, Transaction};
use lance::dataset::{
    CommitBuilder, InsertBuilder, MergeInsertBuilder, WhenMatched, WhenNotMatched, WriteMode,
    WriteParams,
};
use lance_table::format::Fragment;

use super::witness::Witness;
use crate::publish::NewPin;

/// A detached version that was committed and that nothing names yet.
#[derive(Debug, Clone)]
pub struct Staged {
    /// The dataset at that version.
    pub dataset: Arc<Dataset>,
    /// Uuid of its transaction.
    pub transaction_uuid: String,
    /// Live rows.
    pub row_count: u64,
}

fn params(mode: WriteMode) -> WriteParams {
    WriteParams {
        mode,
        allow_external_blob_outside_bases: true,
        ..graph::manifest::overwrite::overwrite_params()
    }
}

/// Stage rows behind those of `base`. Whether their ids are new is the caller's to check.
pub async fn append(base: Arc<Dataset>, batches: Vec<RecordBatch>) -> Result<Transaction> {
    let object = base.uri().to_string();
    let context = format!("cannot stage rows of {object}");
    guarded(&object, async move {
        InsertBuilder::new(base)
            .with_params(&params(WriteMode::Append))
            .execute_uncommitted(batches)
            .await
            .map_err(|e| Error::lance(context, e))
    })
    .await
}

/// Stage rows over those of `base` with the same value in `id_column`, the others behind them.
pub async fn upsert(
    base: Arc<Dataset>,
    id_column: &str,
    batch: RecordBatch,
) -> Result<Transaction> {
    let object = base.uri().to_string();
    let (context, key) = (
        format!("cannot stage rows of {object}"),
        id_column.to_string(),
    );
    guarded(&object, async move {
        let schema = batch.schema();
        let staged = async {
            MergeInsertBuilder::try_new(base, vec![key])?
                .when_matched(WhenMatched::UpdateAll)
                .when_not_matched(WhenNotMatched::InsertAll)
                .conflict_retries(0)
                .use_index(false)
                .skip_auto_cleanup(true)
                .try_build()?
                .execute_uncommitted(RecordBatchIterator::new([Ok(batch)], schema))
                .await
        };
        Ok(staged
            .await
            .map_err(|e| Error::lance(context, e))?
            .transaction)
    })
    .await
}

/// Stage the rows of `reader` in place of all rows of `base`. The reader is drained once, batch by batch.
pub async fn overwrite(
    base: Arc<Dataset>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> Result<Transaction> {
    let object = base.uri().to_string();
    let context = format!("cannot stage rows of {object}");
    guarded(&object, async move {
        InsertBuilder::new(base)
            .with_params(&params(WriteMode::Overwrite))
            .execute_uncommitted_stream(reader)
            .await
            .map_err(|e| Error::lance(context, e))
    })
    .await
}

/// Commit a staged transaction as a detached version of `base`, which must be the image it was staged on.
pub async fn commit_detached(
    root: &Root,
    base: Arc<Dataset>,
    transaction: Transaction,
    witness: &Witness,
) -> Result<Staged> {
    let object = base.uri().to_string();
    let context = format!("cannot commit a staged version of {object}");
    let transaction_uuid = transaction.uuid.clone();
    let mut properties = transaction
        .transaction_properties
        .as_deref()
        .cloned()
        .unwrap_or_default();
    properties.extend(witness.properties());
    let transaction = Transaction {
        transaction_properties: Some(Arc::new(properties)),
        ..transaction
    };
    let (session, handler) = (root.session().clone(), root.commit_handler().clone());
    guarded(&object, async move {
        let dataset = CommitBuilder::new(base)
            .with_session(session)
            .with_commit_handler(handler)
            .with_detached(true)
            .with_max_retries(1)
            .with_skip_auto_cleanup(true)
            .execute(transaction)
            .await
            .map_err(|e| Error::lance(context.clone(), e))?;
        let rows = dataset
            .count_rows(None)
            .await
            .map_err(|e| Error::lance(context, e))?;
        Ok(Staged {
            dataset: Arc::new(dataset),
            transaction_uuid,
            row_count: rows as u64,
        })
    })
    .await
}

/// The pin of a staged version that is `links` commits past `before`.
pub fn next_pin(root: &Root, before: &Pin, staged: &Staged, links: u64) -> NewPin {
    NewPin {
        table_version: before.table_version.saturating_add(links),
        table_branch: before.table_branch.clone(),
        row_count: staged.row_count,
        metadata: PinMetadata {
            table_fork_owner: before.metadata.table_fork_owner.clone(),
            staged_version: Some(staged.dataset.manifest().version),
            transaction_uuid: Some(staged.transaction_uuid.clone()),
            last_linear_version: before.metadata.last_linear_version,
            ..manifest_metadata(root, &staged.dataset)
        },
    }
}

/// Delete the files of a transaction that was never committed. Best effort: what stays is named by nothing.
pub async fn discard(root: &Root, location: &str, transaction: &Transaction) {
    let fragments: &[Fragment] = match &transaction.operation {
        Operation::Overwrite { fragments, .. } | Operation::Append { fragments } => fragments,
        Operation::Update { new_fragments, .. } => new_fragments,
        _ => return,
    };
    for file in fragments.iter().flat_map(|f| &f.files) {
        if file.base_id.is_some() {
            continue;
        }
        let key = format!("{location}/data/{}", file.path);
        // Blob side files lie in a folder named like the data file.
        if let Some(stem) = key.strip_suffix(".lance")
            && let Ok(sides) = root.list_names(stem).await
        {
            for side in sides {
                let _ = root.delete(&format!("{stem}/{side}")).await;
            }
        }
        let _ = root.delete(&key).await;
    }
}
