//! Creating a dataset as version 1, or not at all.
//!
//! Lance's own Create mode reads version 0 and, with retries, overwrites a dataset that appeared meanwhile
//! (`docs/format/lance-notes.md` 2). Staged first and committed with zero retries it lands once.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, Schema};
use lance::Dataset;
use lance::dataset::{CommitBuilder, InsertBuilder, WriteMode, WriteParams};
use lance_file::version::LanceFileVersion;

use super::{Root, guarded};
use crate::error::{Error, Result};

impl Root {
    /// The parameters of every write of a dataset of this root: format 2.2, stable row ids, V2 manifest paths, no
    /// cleanup.
    pub fn write_params(&self, mode: WriteMode) -> WriteParams {
        WriteParams {
            mode,
            store_params: Some(self.store_params().clone()),
            commit_handler: Some(self.commit_handler().clone()),
            session: Some(self.session().clone()),
            data_storage_version: Some(LanceFileVersion::V2_2),
            enable_stable_row_ids: true,
            enable_v2_manifest_paths: true,
            allow_external_blob_outside_bases: true,
            auto_cleanup: None,
            skip_auto_cleanup: true,
            ..WriteParams::default()
        }
    }

    /// Create the dataset `location` with these batches as version 1. No batch makes no fragment. A dataset that is
    /// there already is [`Error::Conflict`], never overwritten.
    pub async fn create_dataset(
        &self,
        location: &str,
        schema: Arc<Schema>,
        batches: Vec<RecordBatch>,
    ) -> Result<Arc<Dataset>> {
        let (root, place) = (self.clone(), location.to_string());
        guarded(location, async move {
            let uri = root.dataset_uri(&place);
            let rows = batches.into_iter().map(Ok::<_, ArrowError>);
            let staged = InsertBuilder::new(uri.as_str())
                .with_params(&root.write_params(WriteMode::Create))
                .execute_uncommitted_stream(RecordBatchIterator::new(rows, schema))
                .await
                .map_err(|e| Error::lance(format!("cannot create {place}"), e))?;
            let created = CommitBuilder::new(uri.as_str())
                .with_session(root.session().clone())
                .with_store_params(root.store_params().clone())
                .with_commit_handler(root.commit_handler().clone())
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
}
