//! Lance datasets of a root: opening a version of a native branch, listing versions.

use std::sync::Arc;

use lance::Dataset;
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::transaction::Operation;

use super::{Root, guarded};
use crate::error::{Error, Result};

/// The catalog dataset, relative to the root.
pub const MANIFEST_DIR: &str = "__manifest";

/// The folder of a dataset, or of a native branch of it, relative to the root.
pub(super) fn place(location: &str, branch: Option<&str>) -> String {
    match branch {
        None => location.to_string(),
        Some(branch) => format!("{location}/tree/{branch}"),
    }
}

/// One opened version of one native branch of `__manifest`.
#[derive(Debug, Clone)]
pub struct ManifestVersion {
    /// The opened dataset, checked out at exactly this version.
    pub dataset: Arc<Dataset>,
    /// Native ref; `None` is main.
    pub native: Option<String>,
    /// Lance version.
    pub version: u64,
}

impl ManifestVersion {
    /// One entry of the schema-level metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.dataset.schema().metadata.get(key).map(String::as_str)
    }

    /// Whether this is the version that creating the ref wrote, with nothing published on it: its
    /// transaction is Lance's `Clone`. An unreadable transaction is an error, one that is not recorded `false`.
    pub async fn is_clone(&self) -> Result<bool> {
        let dataset = self.dataset.clone();
        guarded(&self.describe(), async move {
            let transaction = dataset
                .read_transaction()
                .await
                .map_err(|e| Error::lance("cannot read the transaction of a version", e))?;
            Ok(transaction.is_some_and(|t| matches!(t.operation, Operation::Clone { .. })))
        })
        .await
    }

    /// `version N of ref R`, for messages.
    pub fn describe(&self) -> String {
        format!(
            "__manifest version {} of {}",
            self.version,
            self.native.as_deref().unwrap_or("main")
        )
    }
}

impl Root {
    /// Open a dataset below the root by relative location, on a native branch (`None` = main), at a
    /// version (`None` = latest). The dataset's tree must belong to that branch. Absence of the
    /// dataset, branch or version is [`Error::NotFound`].
    pub async fn open_dataset(
        &self,
        location: &str,
        branch: Option<&str>,
        version: Option<u64>,
    ) -> Result<Arc<Dataset>> {
        let place = place(location, branch);
        let object = match version {
            None => place.clone(),
            Some(v) => format!("{place} at version {v}"),
        };
        let (root, branch, context) = (self.clone(), branch.map(str::to_string), object.clone());
        guarded(&object, async move {
            let uri = root.dataset_uri(&place);
            let mut builder = DatasetBuilder::from_uri(&uri)
                .with_session(root.session().clone())
                .with_store_params(root.store_params().clone())
                .with_commit_handler(root.commit_handler().clone());
            if let Some(v) = version {
                builder = builder.with_version(v);
            }
            let dataset = builder
                .load()
                .await
                .map_err(|e| Error::lance(format!("cannot open {context}"), e))?;
            if dataset.manifest().branch.as_deref() != branch.as_deref() {
                return Err(Error::internal(format!(
                    "{context} holds a manifest of branch '{}'",
                    dataset.manifest().branch.as_deref().unwrap_or("main")
                )));
            }
            // The file name decides what is latest: a stray copy of another version must not pass for it.
            let named = dataset.manifest_location().version;
            if dataset.manifest().version != named {
                return Err(Error::internal(format!(
                    "{context}: the manifest stored as version {named} says version {}",
                    dataset.manifest().version
                )));
            }
            if let Some(v) = version
                && dataset.manifest().version != v
            {
                return Err(Error::internal(format!(
                    "{context} holds a manifest that says version {}",
                    dataset.manifest().version
                )));
            }
            Ok(Arc::new(dataset))
        })
        .await
    }

    /// Open `__manifest` on a native branch (`None` = main) at a version (`None` = latest).
    pub async fn open_manifest(
        &self,
        native: Option<&str>,
        version: Option<u64>,
    ) -> Result<ManifestVersion> {
        let dataset = self.open_dataset(MANIFEST_DIR, native, version).await?;
        Ok(ManifestVersion {
            version: dataset.manifest().version,
            native: native.map(str::to_string),
            dataset,
        })
    }

    /// The linear Lance versions retained in a dataset's own tree, ascending: one listing, no
    /// manifest is read.
    pub async fn linear_versions(&self, location: &str, branch: Option<&str>) -> Result<Vec<u64>> {
        let found = self.manifest_locations(location, branch).await?;
        Ok(found.into_iter().map(|l| l.version).collect())
    }
}
