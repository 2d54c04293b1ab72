//! Commits that land at one exact version or not at all.
//!
//! Zero retries make only an Overwrite exact in Lance 11; every other operation is rebased above
//! whatever landed meanwhile (`docs/format/lance-notes.md` 2). [`ExactVersion`] refuses to create any
//! other version number, so an UpdateConfig behind it lands at `expected` or nowhere.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use lance::Dataset;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::Transaction;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction as StoredTransaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter,
};
use object_store::ObjectStore as OsObjectStore;
use object_store::path::Path;

use super::object::CREATE_ATTEMPTS;
use super::{Root, guarded};
use crate::error::{Error, Result};

/// A commit handler that forwards everything and commits one version number only.
#[derive(Debug)]
pub struct ExactVersion {
    inner: Arc<dyn CommitHandler>,
    expected: u64,
}

impl ExactVersion {
    /// Allow `inner` to create version `expected` and no other.
    pub fn new(inner: Arc<dyn CommitHandler>, expected: u64) -> Self {
        Self { inner, expected }
    }
}

#[async_trait]
impl CommitHandler for ExactVersion {
    fn is_version_not_found_definitive(&self) -> bool {
        self.inner.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        self.inner.propagate_commit_error_after_success()
    }

    async fn resolve_latest_location(
        &self,
        base_path: &Path,
        object_store: &ObjectStore,
    ) -> lance_core::Result<ManifestLocation> {
        self.inner
            .resolve_latest_location(base_path, object_store)
            .await
    }

    async fn resolve_version_location(
        &self,
        base_path: &Path,
        version: u64,
        object_store: &dyn OsObjectStore,
    ) -> lance_core::Result<ManifestLocation> {
        self.inner
            .resolve_version_location(base_path, version, object_store)
            .await
    }

    async fn version_exists(
        &self,
        base_path: &Path,
        version: u64,
        object_store: &dyn OsObjectStore,
        naming_scheme: ManifestNamingScheme,
    ) -> lance_core::Result<bool> {
        self.inner
            .version_exists(base_path, version, object_store, naming_scheme)
            .await
    }

    fn list_detached_manifest_locations<'a>(
        &self,
        base_path: &Path,
        object_store: &'a ObjectStore,
    ) -> BoxStream<'a, lance_core::Result<ManifestLocation>> {
        self.inner
            .list_detached_manifest_locations(base_path, object_store)
    }

    fn list_manifest_locations<'a>(
        &self,
        base_path: &Path,
        object_store: &'a ObjectStore,
        sorted_descending: bool,
    ) -> BoxStream<'a, lance_core::Result<ManifestLocation>> {
        self.inner
            .list_manifest_locations(base_path, object_store, sorted_descending)
    }

    fn list_manifest_locations_since<'a>(
        &self,
        base_path: &Path,
        object_store: &'a ObjectStore,
        since_version: u64,
    ) -> BoxStream<'a, lance_core::Result<ManifestLocation>> {
        self.inner
            .list_manifest_locations_since(base_path, object_store, since_version)
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<StoredTransaction>,
    ) -> Result<ManifestLocation, CommitError> {
        if manifest.version != self.expected {
            return Err(CommitError::CommitConflict);
        }
        self.inner
            .commit(
                manifest,
                indices,
                base_path,
                object_store,
                manifest_writer,
                naming_scheme,
                transaction,
            )
            .await
    }

    async fn delete(&self, base_path: &Path) -> lance_core::Result<()> {
        self.inner.delete(base_path).await
    }
}

/// How an exact commit ended.
#[derive(Debug)]
pub enum CommitOutcome {
    /// The version exists and is ours.
    Landed(Arc<Dataset>),
    /// A typed conflict: nothing of the attempt landed.
    Lost(Error),
    /// The commit failed and it is not known whether it landed.
    Unknown(Error),
}

impl Root {
    /// Commit `transaction`, staged on `base`, as exactly `base.version + 1`. `object` names the
    /// target in errors. Auto-cleanup is skipped. A conflict over a version that nobody wrote is tried again, a
    /// bounded number of times: S3 answers 409 while another conditional request for the key is in flight.
    pub async fn commit_exact(
        &self,
        object: &str,
        base: Arc<Dataset>,
        transaction: Transaction,
    ) -> CommitOutcome {
        let mut attempt = 1;
        loop {
            let outcome = self
                .commit_once(object, base.clone(), transaction.clone())
                .await;
            let again = matches!(outcome, CommitOutcome::Lost(_)) && attempt < CREATE_ATTEMPTS;
            if !again || !next_is_absent(object, &base).await {
                return outcome;
            }
            attempt += 1;
            tokio::time::sleep(std::time::Duration::from_millis(50 << attempt)).await;
        }
    }

    async fn commit_once(
        &self,
        object: &str,
        base: Arc<Dataset>,
        transaction: Transaction,
    ) -> CommitOutcome {
        let expected = base.manifest().version.saturating_add(1);
        let handler = Arc::new(ExactVersion::new(self.commit_handler().clone(), expected));
        let session = self.session().clone();
        let result = guarded(object, async move {
            let committed = CommitBuilder::new(base)
                .with_session(session)
                .with_commit_handler(handler)
                .with_max_retries(0)
                .with_skip_auto_cleanup(true)
                .execute(transaction)
                .await;
            Ok(committed)
        })
        .await;
        match result {
            Err(panicked) => CommitOutcome::Unknown(panicked),
            Ok(Ok(dataset)) if dataset.manifest().version == expected => {
                CommitOutcome::Landed(Arc::new(dataset))
            }
            Ok(Ok(dataset)) => CommitOutcome::Unknown(Error::internal(format!(
                "{object}: the commit landed as version {}, expected exactly {expected}",
                dataset.manifest().version
            ))),
            Ok(Err(e)) => {
                match Error::lance(format!("{object}: commit of version {expected}"), e) {
                    lost @ Error::Conflict(_) => CommitOutcome::Lost(lost),
                    other => CommitOutcome::Unknown(other),
                }
            }
        }
    }
}

/// Whether the version after `base` does not exist. Anything but a clear absence is `false`.
async fn next_is_absent(object: &str, base: &Arc<Dataset>) -> bool {
    let base = base.clone();
    let next = base.manifest().version.saturating_add(1);
    let opened = guarded(object, async move {
        base.checkout_version(next)
            .await
            .map_err(|e| Error::lance("cannot look for the version of a lost commit", e))
    })
    .await;
    opened.is_err_and(|e| e.is_not_found())
}
