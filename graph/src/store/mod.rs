//! The one store handle of a root: every read and write of a graph goes through it, whatever the
//! URL scheme, so that tests can count requests, fail any of them, or stop before or after an effect.

mod commit;
mod conditional;
mod create;
mod dataset;
mod guarded;
mod latest;
pub mod location;
mod manifest_file;
mod manifest_parts;
mod object;
mod small_objects;

pub use commit::{CommitOutcome, ExactVersion};
pub use conditional::PROBE_DIR;
pub use dataset::{MANIFEST_DIR, ManifestVersion};
pub use guarded::guarded;
pub use manifest_file::{ManifestFile, RowEffect};
pub use manifest_parts::ManifestParts;
pub use object::{Created, ListedObject, Tail};

use std::sync::Arc;

use lance::session::Session;
use lance_io::object_store::{
    ObjectStore, ObjectStoreParams, ObjectStoreRegistry, WrappingObjectStore,
};
use lance_table::io::commit::{CommitHandler, commit_handler_from_url};
use object_store::path::Path;

use crate::error::{Error, Result};
use crate::manifest::KeptStates;
use small_objects::SmallObjects;

/// How a root is opened.
#[derive(Debug, Clone, Default)]
pub struct RootOptions {
    /// Sees every request of the root. On plain local paths Lance goes round it for most of its own
    /// reads and writes (`docs/format/lance-notes.md` 7); `file-object-store:///path` sends all
    /// through.
    pub wrapper: Option<Arc<dyn WrappingObjectStore>>,
}

/// A graph root: its normalised URI and the store that serves it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Root {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    uri: String,
    base: Path,
    store: Arc<ObjectStore>,
    params: ObjectStoreParams,
    session: Arc<Session>,
    handler: Arc<dyn CommitHandler>,
    states: KeptStates,
}

/// Schemes whose stores create an object only if it is absent. With any other, a commit could
/// overwrite another writer's version.
const CONDITIONAL_SCHEMES: [&str; 6] = ["file", "file-object-store", "memory", "s3", "gs", "az"];

impl Root {
    /// Open the store of `uri` (already resolved by [`location::resolve`]). Nothing is read or
    /// created. A scheme without conditional creation is [`Error::Refused`].
    pub async fn open(uri: &str, options: RootOptions) -> Result<Self> {
        let scheme = location::scheme(uri);
        if !CONDITIONAL_SCHEMES.contains(&scheme) && scheme != "abfss" {
            return Err(Error::refused(format!(
                "{uri}: storage scheme '{scheme}' is not supported: it cannot create an object only \
                 if it is absent, so two writers could overwrite each other; supported are local \
                 paths, s3://, gs://, az:// and abfss://"
            )));
        }
        let registry = Arc::new(ObjectStoreRegistry::default());
        let small = Arc::new(SmallObjects::new(options.wrapper));
        let params = ObjectStoreParams {
            object_store_wrapper: Some(small.clone()),
            ..ObjectStoreParams::default()
        };
        let (store, base) = ObjectStore::from_uri_and_params(registry.clone(), uri, &params)
            .await
            .map_err(|e| Error::lance(format!("cannot open the store of {uri}"), e))?;
        small.keep_below(base.clone().join(MANIFEST_DIR));
        let handler = commit_handler_from_url(uri, &Some(params.clone()))
            .await
            .map_err(|e| Error::lance(format!("cannot open the store of {uri}"), e))?;
        // No caches: keys of Lance's caches do not tell a recreated branch from the old one
        // (docs/format/lance-notes.md 1).
        let session = Arc::new(Session::new(0, 0, registry));
        Ok(Self {
            inner: Arc::new(Inner {
                uri: uri.to_string(),
                base,
                store,
                params,
                session,
                handler,
                states: KeptStates::default(),
            }),
        })
    }

    /// The normalised URI, without trailing slash.
    pub fn uri(&self) -> &str {
        &self.inner.uri
    }

    /// Whether the root is a plain local path.
    pub fn is_local(&self) -> bool {
        location::scheme(&self.inner.uri) == "file"
    }

    /// Lance's store handle.
    pub fn store(&self) -> &Arc<ObjectStore> {
        &self.inner.store
    }

    /// The cacheless session every dataset of this root is opened with.
    pub fn session(&self) -> &Arc<Session> {
        &self.inner.session
    }

    /// The parameters datasets of this root are opened with.
    pub fn store_params(&self) -> &ObjectStoreParams {
        &self.inner.params
    }

    /// The commit handler of the root's scheme.
    pub fn commit_handler(&self) -> &Arc<dyn CommitHandler> {
        &self.inner.handler
    }

    /// The states of its branches that this process read or published last.
    pub fn states(&self) -> &KeptStates {
        &self.inner.states
    }

    /// The object-store path of the root joined with the relative key `key` (segments taken as they
    /// stand, so `%2F` stays `%2F`).
    pub fn path(&self, key: &str) -> Result<Path> {
        let text = if self.inner.base.as_ref().is_empty() {
            key.to_string()
        } else {
            format!("{}/{key}", self.inner.base)
        };
        Path::parse(&text)
            .map_err(|e| Error::internal(format!("'{key}' is not a valid object key: {e}")))
    }

    /// An object-store path as pins record it: absolute for a root on this file system, else without bucket
    /// and leading slash (`docs/format/manifest-v14.md` 4.1).
    pub fn shown_path(&self, path: &Path) -> String {
        match location::scheme(&self.inner.uri) {
            "file" | "file-object-store" => format!("/{path}"),
            _ => path.to_string(),
        }
    }

    /// The URI of a dataset below the root, for example `__manifest` or `nodes/…`.
    pub fn dataset_uri(&self, location: &str) -> String {
        format!("{}/{location}", self.inner.uri)
    }

    /// The key relative to the root of an object-store path below it.
    fn key_of(&self, path: &Path) -> Option<String> {
        let (path, base) = (path.as_ref(), self.inner.base.as_ref());
        if base.is_empty() {
            return Some(path.to_string());
        }
        path.strip_prefix(base)?
            .strip_prefix('/')
            .map(str::to_string)
    }
}
