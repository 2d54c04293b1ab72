//! A Lance reader over bytes already held: the whole object, or its end with the rest fetched by range.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use lance_core::deepsize::{Context, DeepSizeOf};
use lance_io::traits::Reader;
use object_store::path::Path;

use crate::error::{Error, Result};
use crate::store::Root;

/// What Lance reads at the end of a file at once.
const BLOCK_BYTES: usize = 64 * 1024;

#[derive(Debug)]
struct Fetches {
    bytes: u64,
    failure: Option<Error>,
}

/// Serves the end of an object from memory and the bytes before it by ranged reads.
#[derive(Debug, Clone)]
pub(super) struct HeldReader {
    path: Path,
    key: String,
    root: Option<Root>,
    held: Bytes,
    /// Position in the object of the first held byte.
    start: u64,
    size: u64,
    fetches: Arc<Mutex<Fetches>>,
}

impl HeldReader {
    /// A reader over the last bytes of an object of `size` bytes. Without `root` nothing is fetched and
    /// a read outside the held bytes fails.
    pub(super) fn new(key: &str, held: Bytes, size: u64, root: Option<Root>) -> Result<Self> {
        let start = size
            .checked_sub(held.len() as u64)
            .ok_or_else(|| Error::internal(format!("{key}: read more bytes than it has")))?;
        Ok(Self {
            path: Path::from("extent.lance"),
            key: key.to_string(),
            root,
            held,
            start,
            size,
            fetches: Arc::new(Mutex::new(Fetches {
                bytes: 0,
                failure: None,
            })),
        })
    }

    /// The held bytes.
    pub(super) fn held(&self) -> &Bytes {
        &self.held
    }

    /// Size of the whole object.
    pub(super) fn object_size(&self) -> u64 {
        self.size
    }

    /// Bytes fetched beside the held ones.
    pub(super) fn fetched(&self) -> u64 {
        self.fetches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes
    }

    /// The first failed fetch: it tells an outage from damaged bytes, which Lance's errors do not.
    pub(super) fn take_failure(&self) -> Option<Error> {
        self.fetches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failure
            .take()
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.size {
            return Err(Error::internal(format!(
                "{}: its pages point at bytes {}..{} of {}",
                self.key, range.start, range.end, self.size
            )));
        }
        let held = |from: u64, to: u64| -> Bytes {
            // Both lie inside the held bytes, whose length is a usize.
            self.held
                .slice((from - self.start) as usize..(to - self.start) as usize)
        };
        if range.start >= self.start {
            return Ok(held(range.start, range.end));
        }
        let Some(root) = &self.root else {
            return Err(Error::internal(format!("{}: bytes are missing", self.key)));
        };
        let outside = range.start..range.end.min(self.start);
        let fetched = root.get_range(&self.key, outside.clone()).await?;
        if fetched.len() as u64 != outside.end - outside.start {
            return Err(Error::internal(format!(
                "{}: asked for {} bytes, the store answered {}",
                self.key,
                outside.end - outside.start,
                fetched.len()
            )));
        }
        self.fetches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes += fetched.len() as u64;
        if range.end <= self.start {
            return Ok(fetched);
        }
        let rest = held(self.start, range.end);
        let mut joined = BytesMut::with_capacity(fetched.len() + rest.len());
        joined.extend_from_slice(&fetched);
        joined.extend_from_slice(&rest);
        Ok(joined.freeze())
    }

    async fn read_for_lance(self, range: Range<u64>) -> object_store::Result<Bytes> {
        self.read(range).await.map_err(|e| {
            let text = e.to_string();
            let mut fetches = self.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            fetches.failure.get_or_insert(e);
            object_store::Error::Generic {
                store: "history",
                source: text.into(),
            }
        })
    }
}

impl DeepSizeOf for HeldReader {
    fn deep_size_of_children(&self, _context: &mut Context) -> usize {
        self.held.len()
    }
}

impl Reader for HeldReader {
    fn path(&self) -> &Path {
        &self.path
    }

    fn block_size(&self) -> usize {
        BLOCK_BYTES
    }

    fn io_parallelism(&self) -> usize {
        1
    }

    fn size(&self) -> BoxFuture<'_, object_store::Result<usize>> {
        // At most 64 MiB.
        Box::pin(async move { Ok(self.size as usize) })
    }

    fn get_range(&self, range: Range<usize>) -> BoxFuture<'static, object_store::Result<Bytes>> {
        let range = range.start as u64..range.end as u64;
        Box::pin(self.clone().read_for_lance(range))
    }

    fn get_all(&self) -> BoxFuture<'_, object_store::Result<Bytes>> {
        Box::pin(self.clone().read_for_lance(0..self.size))
    }
}
