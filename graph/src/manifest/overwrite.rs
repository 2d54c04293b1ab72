//! Staging one whole version of a branch (`docs/format/manifest-v14.md` 9.11).
//!
//! Writes one data file and nothing that a reader can see: the version exists only once the returned
//! transaction is committed, which [`crate::store::Root::commit_exact`] does at one exact number.

use std::collections::HashMap;

use lance::dataset::transaction::Transaction;
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use lance_file::version::LanceFileVersion;

use super::batch;
use super::state::BranchState;
use crate::error::{Error, Result};
use crate::store::{ManifestVersion, guarded};

/// The parameters of every Overwrite of a graph dataset: format 2.2, no cleanup. Stable row ids follow the dataset.
pub fn overwrite_params() -> WriteParams {
    WriteParams {
        mode: WriteMode::Overwrite,
        data_storage_version: Some(LanceFileVersion::V2_2),
        auto_cleanup: None,
        skip_auto_cleanup: true,
        ..WriteParams::default()
    }
}

/// Stage `state` on top of `base` with the schema metadata `metadata`. `object` names the version in errors.
pub async fn stage(
    object: &str,
    base: &ManifestVersion,
    state: &BranchState,
    metadata: HashMap<String, String>,
) -> Result<Transaction> {
    let rows = batch::encode(&state.to_rows()?, metadata)?;
    let (dataset, context) = (base.dataset.clone(), format!("{object} cannot be staged"));
    guarded(object, async move {
        InsertBuilder::new(dataset)
            .with_params(&overwrite_params())
            .execute_uncommitted(vec![rows])
            .await
            .map_err(|e| Error::lance(context, e))
    })
    .await
}
