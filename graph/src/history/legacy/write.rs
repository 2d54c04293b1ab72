//! Writing the planned legacy objects (`docs/format/history.md` 7.11 steps 3 to 6).
//!
//! Data files, id shards, writer shards, and the directory last: a stop before the directory leaves
//! objects nobody reads, and the next run creates the same ones again.

use async_trait::async_trait;

use super::plan::PlannedObjects;
use crate::error::{Error, Result};
use crate::history::extent::{Stored, create_extent};
use crate::history::limit_as_internal;
use crate::history::path::{ExtentKey, ObjectKey};
use crate::model::measure::{MAX_OBJECT_BYTES, TAIL_BYTES};
use crate::store::Root;

/// Which side of the creation of an object is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing was sent yet.
    Before,
    /// The object exists with the planned content.
    After,
}

/// Sees every object before and after its creation. An error stops the write there.
#[async_trait]
pub trait ObjectObserver: Send {
    /// `key` is relative to the root.
    async fn on_object(&mut self, key: &str, moment: Moment) -> Result<()>;
}

/// Observes nothing.
#[async_trait]
impl ObjectObserver for () {
    async fn on_object(&mut self, _key: &str, _moment: Moment) -> Result<()> {
        Ok(())
    }
}

/// Create every planned object that is absent, one at a time, the directory last. An existing data file
/// must hold equal records, any other existing object equal bytes ([`Error::Internal`] otherwise).
pub async fn write(
    root: &Root,
    objects: &PlannedObjects,
    observer: &mut dyn ObjectObserver,
) -> Result<()> {
    for (n, records) in objects.data_files.iter().enumerate() {
        let extent = ExtentKey::LegacyData(n as u32);
        let key = extent.key();
        observer.on_object(&key, Moment::Before).await?;
        match create_extent(root, &extent, records).await? {
            Stored::New | Stored::Equal => {}
            Stored::TooLarge => {
                return Err(Error::internal(format!(
                    "{key}: {} records do not fit {MAX_OBJECT_BYTES} bytes",
                    records.len()
                )));
            }
        }
        observer.on_object(&key, Moment::After).await?;
    }
    let ids = (0u32..).map(ObjectKey::IdShard).zip(&objects.id_shards);
    let writers = (0u32..)
        .map(ObjectKey::WriterShard)
        .zip(&objects.writer_shards);
    let directory = std::iter::once((ObjectKey::Directory, &objects.directory));
    for (object, bytes) in ids.chain(writers).chain(directory) {
        let key = object.key();
        observer.on_object(&key, Moment::Before).await?;
        root.create_equal(&key, bytes.clone(), TAIL_BYTES)
            .await
            .map_err(limit_as_internal)?;
        observer.on_object(&key, Moment::After).await?;
    }
    Ok(())
}
