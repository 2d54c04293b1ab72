//! Creating an empty table dataset: the only linear commit a table ever gets.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, Schema};
use graph::store::{Root, guarded};
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::{CommitBuilder, InsertBuilder, WriteMode, WriteParams};
use lance_file::version::LanceFileVersion;

/// The parameters a dataset of this root is born with.
pub(crate) fn create_params(root: &Root) -> WriteParams {
    WriteParams {
        mode: WriteMode::Create,
        store_params: Some(root.store_params().clone()),
        commit_handler: Some(root.commit_handler().clone()),
        session: Some(root.session().clone()),
        data_storage_version: Some(LanceFileVersion::V2_2),
        enable_stable_row_ids: true,
        enable_v2_manifest_paths: true,
        allow_external_blob_outside_bases: true,
        auto_cleanup: None,
        skip_auto_cleanup: true,
        ..WriteParams::default()
    }
}

/// Create the dataset `location` with these batches as version 1, or fail: a dataset that is there already is
/// [`Error::Conflict`], never overwritten. Lance's Create mode alone would overwrite one that appears meanwhile
/// (`docs/format/lance-notes.md` 2).
pub(crate) async fn create_dataset(
    root: &Root,
    location: &str,
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
) -> Result<Arc<Dataset>> {
    let (handle, place) = (root.clone(), location.to_string());
    guarded(location, async move {
        let uri = handle.dataset_uri(&place);
        let rows = batches.into_iter().map(Ok::<_, ArrowError>);
        let staged = InsertBuilder::new(uri.as_str())
            .with_params(&create_params(&handle))
            .execute_uncommitted_stream(RecordBatchIterator::new(rows, schema))
            .await
            .map_err(|e| Error::lance(format!("cannot create {place}"), e))?;
        let created = CommitBuilder::new(uri.as_str())
            .with_session(handle.session().clone())
            .with_store_params(handle.store_params().clone())
            .with_commit_handler(handle.commit_handler().clone())
            .use_stable_row_ids(true)
            .with_storage_format(LanceFileVersion::V2_2)
            .enable_v2_manifest_paths(true)
            .with_max_retries(0)
            .with_skip_auto_cleanup(true)
            .execute(staged)
            .await;
        match created {
            Ok(dataset) => Ok(Arc::new(dataset)),
            // A create that lost reads version 0 of the winner, which does not exist.
            Err(e @ (lance::Error::VersionNotFound { .. } | lance::Error::NotFound { .. })) => {
                Err(Error::Conflict(format!("{place} exists already ({e})")))
            }
            Err(e) => Err(Error::lance(format!("cannot create {place}"), e)),
        }
    })
    .await
}

/// Create an empty table at version 1.
pub async fn create_empty(root: &Root, location: &str, schema: &Schema) -> Result<Arc<Dataset>> {
    create_dataset(root, location, Arc::new(schema.clone()), Vec::new()).await
}
