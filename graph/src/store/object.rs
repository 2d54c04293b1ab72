//! Plain objects of a root: bounded reads, listings, conditional creates, deletes.

use std::collections::HashMap;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutPayload,
};

use super::Root;
use crate::error::{Error, Result};

/// Most attempts of a create that was answered "already exists" while the object is absent: S3
/// answers 409 while another conditional request for the key is in flight.
pub(super) const CREATE_ATTEMPTS: u32 = 5;

/// What a conditional create found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The object is new.
    New,
    /// An object stood there; its bytes are handed back for comparison.
    Existing(Bytes),
}

/// The end of an object and its whole size.
#[derive(Debug, Clone)]
pub struct Tail {
    /// The last bytes, at most as many as were asked for.
    pub bytes: Bytes,
    /// Size of the whole object.
    pub size: u64,
}

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Relative to the root.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Microseconds since the Unix epoch, by the clock of the store.
    pub modified: i64,
}

impl Root {
    /// Read a whole object of at most `max` bytes. `None` when it does not exist; a larger object is
    /// [`Error::Limit`] and its body is not read.
    pub async fn get(&self, key: &str, max: u64) -> Result<Option<Bytes>> {
        let path = self.path(key)?;
        let result = match self.store().inner.get(&path).await {
            Ok(result) => result,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(Error::object(format!("cannot read {key}"), e)),
        };
        let size = result.meta.size;
        if size > max {
            return Err(Error::limit(
                format!("the size of {key} in bytes"),
                max,
                size,
            ));
        }
        let bytes = result
            .bytes()
            .await
            .map_err(|e| Error::object(format!("cannot read {key}"), e))?;
        if bytes.len() as u64 != size {
            return Err(Error::internal(format!(
                "{key}: read {} bytes of an object of {size}",
                bytes.len()
            )));
        }
        Ok(Some(bytes))
    }

    /// Read the last `count` bytes of an object in one request where the store serves suffix ranges,
    /// in two where it does not. `None` when it does not exist.
    pub async fn get_tail(&self, key: &str, count: u64) -> Result<Option<Tail>> {
        let path = self.path(key)?;
        let read = |range: GetRange| {
            let path = path.clone();
            let store = self.store().inner.clone();
            async move {
                let options = GetOptions {
                    range: Some(range),
                    ..GetOptions::default()
                };
                let result = store.get_opts(&path, options).await?;
                let (range, size) = (result.range.clone(), result.meta.size);
                Ok::<_, object_store::Error>((result.bytes().await?, range, size))
            }
        };
        match read(GetRange::Suffix(count)).await {
            Ok((bytes, range, size)) => {
                let expected = size.min(count);
                if range.end != size || bytes.len() as u64 != expected {
                    return Err(Error::internal(format!(
                        "{key}: asked for the last {expected} of {size} bytes, the store answered \
                         bytes {}..{}",
                        range.start, range.end
                    )));
                }
                Ok(Some(Tail { bytes, size }))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(object_store::Error::NotSupported { .. }) => {
                let (bytes, _, size) = match read(GetRange::Bounded(0..count)).await {
                    Ok(first) => first,
                    Err(object_store::Error::NotFound { .. }) => return Ok(None),
                    Err(e) => return Err(Error::object(format!("cannot read {key}"), e)),
                };
                if size <= count {
                    return Ok(Some(Tail { bytes, size }));
                }
                let (bytes, _, again) = read(GetRange::Bounded(size - count..size))
                    .await
                    .map_err(|e| Error::object(format!("cannot read {key}"), e))?;
                if again != size {
                    return Err(Error::internal(format!("{key} changed while it was read")));
                }
                Ok(Some(Tail { bytes, size }))
            }
            Err(e) => Err(Error::object(format!("cannot read {key}"), e)),
        }
    }

    /// Read `range` of an object that is known to exist.
    pub async fn get_range(&self, key: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
        let path = self.path(key)?;
        self.store()
            .inner
            .get_range(&path, range)
            .await
            .map_err(|e| Error::object(format!("cannot read {key}"), e))
    }

    /// Whether an object exists.
    pub async fn exists(&self, key: &str) -> Result<bool> {
        let path = self.path(key)?;
        match self.store().inner.head(&path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(Error::object(format!("cannot look for {key}"), e)),
        }
    }

    /// Stream the objects below `prefix`, recursively: key relative to the root and size in bytes. A
    /// prefix that does not exist is empty.
    pub fn list(&self, prefix: &str) -> Result<BoxStream<'static, Result<(String, u64)>>> {
        Ok(self
            .list_objects(prefix)?
            .map_ok(|o| (o.key, o.size))
            .boxed())
    }

    /// [`Root::list`] with the time each object was written last.
    pub fn list_objects(&self, prefix: &str) -> Result<BoxStream<'static, Result<ListedObject>>> {
        let path = self.path(prefix)?;
        let (root, prefix) = (self.clone(), prefix.to_string());
        let stream = self.store().inner.list(Some(&path));
        Ok(stream
            .filter_map(move |item| {
                let entry = match item {
                    Ok(ObjectMeta {
                        location,
                        size,
                        last_modified,
                        ..
                    }) => match root.key_of(&location) {
                        Some(key) => Some(Ok(ListedObject {
                            key,
                            size,
                            modified: last_modified.timestamp_micros(),
                        })),
                        None => Some(Err(Error::internal(format!(
                            "the listing of {prefix} answered the foreign key {location}"
                        )))),
                    },
                    // A local listing races with deletes.
                    Err(object_store::Error::NotFound { .. }) => None,
                    Err(e) => Some(Err(Error::object(format!("cannot list {prefix}"), e))),
                };
                std::future::ready(entry)
            })
            .boxed())
    }

    /// [`Root::list`] collected and sorted by key.
    pub async fn list_sorted(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let mut all: Vec<_> = self.list(prefix)?.try_collect().await?;
        all.sort();
        Ok(all)
    }

    /// The names (not keys) of the objects directly below `prefix`, sorted. A prefix that does not
    /// exist is empty.
    pub async fn list_names(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(self.list_level(prefix).await?.0)
    }

    /// The names of the objects and of the folders directly below `prefix`, each sorted. A prefix that
    /// does not exist is empty.
    pub async fn list_level(&self, prefix: &str) -> Result<(Vec<String>, Vec<String>)> {
        let path = self.path(prefix)?;
        let listed = match self.store().inner.list_with_delimiter(Some(&path)).await {
            Ok(listed) => listed,
            Err(object_store::Error::NotFound { .. }) => return Ok((Vec::new(), Vec::new())),
            Err(e) => return Err(Error::object(format!("cannot list {prefix}"), e)),
        };
        let name = |path: &object_store::path::Path| path.filename().map(str::to_string);
        let mut names: Vec<String> = listed
            .objects
            .iter()
            .filter_map(|o| name(&o.location))
            .collect();
        let mut folders: Vec<String> = listed.common_prefixes.iter().filter_map(name).collect();
        names.sort();
        folders.sort();
        Ok((names, folders))
    }

    /// Create an object only if it is absent (`docs/format/history.md` 8). On any error of the create
    /// the target is read: present, its bytes are handed back (so a lost acknowledgement compares
    /// equal); absent, the original error is returned, after repeats when it said "already exists".
    /// `max` bounds the read of an existing object.
    pub async fn create(&self, key: &str, bytes: Bytes, max: u64) -> Result<Created> {
        let path = self.path(key)?;
        let mut attempt = 1;
        loop {
            let payload = PutPayload::from_bytes(bytes.clone());
            let error = match self.store().put_if_absent(&path, payload).await {
                Ok(()) => return Ok(Created::New),
                Err(e) => e,
            };
            match self.get(key, max).await {
                Ok(Some(found)) => return Ok(Created::Existing(found)),
                Ok(None) => {
                    let repeat = matches!(error, object_store::Error::AlreadyExists { .. });
                    if !repeat || attempt >= CREATE_ATTEMPTS {
                        return Err(Error::object(format!("cannot create {key}"), error));
                    }
                }
                Err(read) => {
                    return Err(read.within(format!("cannot create {key} ({error})")));
                }
            }
            attempt += 1;
            tokio::time::sleep(std::time::Duration::from_millis(50 << attempt)).await;
        }
    }

    /// [`Root::create`] of content whose bytes are fixed: an existing object must hold the same bytes
    /// ([`Error::Internal`] otherwise).
    pub async fn create_equal(&self, key: &str, bytes: Bytes, max: u64) -> Result<()> {
        match self.create(key, bytes.clone(), max).await? {
            Created::New => Ok(()),
            Created::Existing(found) if found == bytes => Ok(()),
            Created::Existing(found) => Err(Error::internal(format!(
                "{key} exists with other content: {} bytes stored, {} bytes expected",
                found.len(),
                bytes.len()
            ))),
        }
    }

    /// Replace an object unconditionally. Only ref metadata is ever rewritten in place.
    pub async fn overwrite(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(key)?;
        self.store()
            .inner
            .put(&path, PutPayload::from_bytes(bytes))
            .await
            .map(|_| ())
            .map_err(|e| Error::object(format!("cannot write {key}"), e))
    }

    /// Delete one object; an absent one is success.
    pub async fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match self.store().inner.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(Error::object(format!("cannot delete {key}"), e)),
        }
    }

    /// Delete many objects, in no order: a thousand a request where the store can. `gone` is told the index of each
    /// that was removed; an absent one is success and not told where the store says so. All are tried; then the first
    /// failure is returned.
    pub async fn delete_many(&self, keys: &[String], mut gone: impl FnMut(usize)) -> Result<()> {
        let paths = keys.iter().map(|key| self.path(key));
        let paths: Vec<Path> = paths.collect::<Result<_>>()?;
        let index: HashMap<Path, usize> = paths.iter().cloned().zip(0..).collect();
        let asked = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut answers = self.store().inner.delete_stream(asked);
        let mut failed = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(path) => index.get(&path).copied().into_iter().for_each(&mut gone),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(e) if failed.is_none() => failed = Some(e),
                Err(_) => {}
            }
        }
        match failed {
            None => Ok(()),
            Some(e) => {
                let what = match keys {
                    [one] => format!("cannot delete {one}"),
                    _ => format!("cannot delete some of {} objects", keys.len()),
                };
                Err(Error::object(what, e))
            }
        }
    }
}
