//! Small immutable objects of `__manifest` are fetched whole, once.
//!
//! A publish of stamps 6 to 9 leaves a data file of a few kilobytes and a deletion file; Lance asks for each
//! in three or four ranges, and a run scans a head several times. Both kinds are named by chance and never
//! written again, so what was read stays true. Manifests, refs and tables are not kept.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use moka::future::Cache;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, Result,
};

/// Objects above this size are read in the ranges that were asked for.
const MOST_BYTES: u64 = 256 << 10;
/// Bytes kept of all objects of a root together.
const KEPT_BYTES: u64 = 32 << 20;
/// What an entry takes beside its bytes.
const ENTRY_BYTES: u32 = 256;

/// Wraps the store of a root, outside the wrapper that its options name.
#[derive(Debug)]
pub(super) struct SmallObjects {
    inner: Option<Arc<dyn WrappingObjectStore>>,
    /// Path of `__manifest`, known once the store is open.
    manifest: Arc<OnceLock<Path>>,
    kept: Cache<Path, Kept>,
}

impl SmallObjects {
    pub(super) fn new(inner: Option<Arc<dyn WrappingObjectStore>>) -> Self {
        let weigh = |path: &Path, kept: &Kept| {
            let bytes = kept.as_ref().map_or(0, |object| object.bytes.len());
            let all = bytes.saturating_add(path.as_ref().len());
            u32::try_from(all)
                .unwrap_or(u32::MAX)
                .saturating_add(ENTRY_BYTES)
        };
        Self {
            inner,
            manifest: Arc::default(),
            kept: Cache::builder()
                .weigher(weigh)
                .max_capacity(KEPT_BYTES)
                .build(),
        }
    }

    /// Say where `__manifest` is; nothing is kept before.
    pub(super) fn keep_below(&self, manifest: Path) {
        self.manifest.get_or_init(|| manifest);
    }
}

impl WrappingObjectStore for SmallObjects {
    fn wrap(&self, prefix: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        let inner = match &self.inner {
            Some(wrapper) => wrapper.wrap(prefix, original),
            None => original,
        };
        Arc::new(Wrapped {
            inner,
            manifest: self.manifest.clone(),
            kept: self.kept.clone(),
        })
    }
}

/// An object held whole; `None` for one that is too large.
type Kept = Option<Arc<Whole>>;

#[derive(Debug)]
struct Whole {
    meta: ObjectMeta,
    bytes: Bytes,
}

impl Whole {
    fn answer(&self, options: &GetOptions) -> Result<GetResult> {
        let size = self.bytes.len() as u64;
        let range = match &options.range {
            None => 0..size,
            Some(range) => range.as_range(size).map_err(|e| Error::Generic {
                store: "small objects",
                source: Box::new(e),
            })?,
        };
        let bytes = self.bytes.slice(range.start as usize..range.end as usize);
        let payload = futures::stream::once(async move { Ok(bytes) });
        Ok(GetResult {
            payload: GetResultPayload::Stream(Box::pin(payload)),
            meta: self.meta.clone(),
            range,
            attributes: Attributes::default(),
        })
    }
}

#[derive(Debug)]
struct Wrapped {
    inner: Arc<dyn ObjectStore>,
    manifest: Arc<OnceLock<Path>>,
    kept: Cache<Path, Kept>,
}

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Wrapped {
    /// Whether a path is a data or deletion file of `__manifest` or of one of its branches.
    fn is_kept(&self, location: &Path) -> bool {
        let Some(rest) = self
            .manifest
            .get()
            .and_then(|m| location.as_ref().strip_prefix(m.as_ref()))
        else {
            return false;
        };
        // By folder and ending: a branch may be called `data`, and its tree holds other files too.
        let mut parts = rest.rsplit('/');
        let (file, folder) = (parts.next().unwrap_or_default(), parts.next());
        let ends = |endings: &[&str]| endings.iter().any(|ending| file.ends_with(ending));
        rest.starts_with('/')
            && match folder {
                Some("data") => ends(&[".lance"]),
                Some("_deletions") => ends(&[".arrow", ".bin"]),
                _ => false,
            }
    }

    async fn whole(&self, location: &Path) -> Result<Kept> {
        let inner = self.inner.clone();
        let fetch = async {
            let options = GetOptions {
                range: Some(GetRange::Bounded(0..MOST_BYTES)),
                ..GetOptions::default()
            };
            let found = inner.get_opts(location, options).await?;
            if found.meta.size > MOST_BYTES {
                return Ok(None);
            }
            let (meta, range) = (found.meta.clone(), found.range.clone());
            let bytes = found.bytes().await?;
            // An answer that is not the whole is not kept.
            let whole = range.start == 0 && bytes.len() as u64 == meta.size;
            Ok(whole.then(|| Arc::new(Whole { meta, bytes })))
        };
        self.kept
            .try_get_with_by_ref(location, fetch)
            .await
            .map_err(|e: Arc<Error>| again(&e, location))
    }
}

/// The error once more, for each that waited for it.
fn again(error: &Error, location: &Path) -> Error {
    match error {
        Error::NotFound { .. } => Error::NotFound {
            path: location.to_string(),
            source: error.to_string().into(),
        },
        other => Error::Generic {
            store: "small objects",
            source: other.to_string().into(),
        },
    }
}

/// Whether nothing but a range is asked for.
fn is_plain(options: &GetOptions) -> bool {
    options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none()
        && options.version.is_none()
}

#[async_trait]
impl ObjectStore for Wrapped {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.is_kept(location)
            && is_plain(&options)
            && let Some(whole) = self.whole(location).await?
        {
            return whole.answer(&options);
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Vec<Bytes>> {
        if self.is_kept(location)
            && let Some(whole) = self.whole(location).await?
        {
            let size = whole.bytes.len() as u64;
            if ranges.iter().all(|r| r.start <= r.end && r.end <= size) {
                let slice =
                    |r: &std::ops::Range<u64>| whole.bytes.slice(r.start as usize..r.end as usize);
                return Ok(ranges.iter().map(slice).collect());
            }
        }
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt as _;
    use object_store::memory::InMemory;

    async fn store(objects: &[(&str, usize)]) -> (Arc<InMemory>, Arc<dyn ObjectStore>) {
        let memory = Arc::new(InMemory::new());
        for (key, size) in objects {
            let bytes: Vec<u8> = (0..*size).map(|n| n as u8).collect();
            memory.put(&Path::from(*key), bytes.into()).await.unwrap();
        }
        let small = SmallObjects::new(None);
        small.keep_below(Path::from("g/__manifest"));
        let wrapped = small.wrap("", memory.clone());
        (memory, wrapped)
    }

    #[tokio::test]
    async fn small_objects_are_read_once_and_answered_like_the_store() {
        let key = Path::from("g/__manifest/tree/b/data/x.lance");
        let (memory, wrapped) = store(&[(key.as_ref(), 100)]).await;
        for range in [
            None,
            Some(GetRange::Bounded(3..7)),
            Some(GetRange::Bounded(90..200)),
            Some(GetRange::Suffix(10)),
            Some(GetRange::Suffix(1000)),
            Some(GetRange::Offset(99)),
            Some(GetRange::Offset(100)),
            Some(GetRange::Bounded(100..101)),
        ] {
            let options = || GetOptions {
                range: range.clone(),
                ..GetOptions::default()
            };
            let (got, want) = (
                wrapped.get_opts(&key, options()).await,
                memory.get_opts(&key, options()).await,
            );
            match (got, want) {
                (Ok(got), Ok(want)) => {
                    assert_eq!((&got.meta, &got.range), (&want.meta, &want.range));
                    assert_eq!(got.bytes().await.unwrap(), want.bytes().await.unwrap());
                }
                (Err(_), Err(_)) => {}
                (got, want) => panic!("{range:?}: {got:?}, the store says {want:?}"),
            }
        }
        memory.delete(&key).await.unwrap();
        assert_eq!(wrapped.get_range(&key, 3..5).await.unwrap(), [3, 4][..]);
        let both = wrapped.get_ranges(&key, &[0..1, 9..11]).await.unwrap();
        assert_eq!(
            both,
            [Bytes::from_static(&[0]), Bytes::from_static(&[9, 10])]
        );
        assert_eq!(wrapped.head(&key).await.unwrap().size, 100);
    }

    #[tokio::test]
    async fn everything_else_is_asked_for_again() {
        let large = MOST_BYTES as usize + 1;
        let objects = [
            ("g/__manifest/data/large.lance", large),
            ("g/__manifest/_versions/1.manifest", 10),
            ("g/__manifest/tree/data/_omnigraph_retired_branch.json", 10),
            ("g/__manifest/tree/_deletions/_versions/1.manifest", 10),
            ("g/__manifest2/data/x.lance", 10),
            ("g/nodes/a/data/x.lance", 10),
            ("__manifest/data/x.lance", 10),
        ];
        let (memory, wrapped) = store(&objects).await;
        for (key, size) in objects {
            let key = Path::from(key);
            assert_eq!(wrapped.get(&key).await.unwrap().meta.size, size as u64);
            memory.delete(&key).await.unwrap();
            let gone = wrapped.get(&key).await.unwrap_err();
            assert!(matches!(gone, Error::NotFound { .. }), "{key}");
        }
        let missing = Path::from("g/__manifest/data/missing.lance");
        let gone = wrapped.get_range(&missing, 0..1).await.unwrap_err();
        assert!(matches!(gone, Error::NotFound { .. }));
        memory.put(&missing, vec![7].into()).await.unwrap();
        assert_eq!(wrapped.get_range(&missing, 0..1).await.unwrap(), [7][..]);
    }
}
