//! Everything a manifest names, read as the file it is: fragments, indexes, base paths and the properties of the
//! transaction that made it. One request; no dataset is opened.

use std::collections::HashMap;

use bytes::Bytes;
use lance_io::utils::{read_message_from_buf, read_struct_from_buf};
use lance_table::format::{IndexMetadata, Manifest, pb};

use super::manifest_file::{MAX_MANIFEST_BYTES, manifest_offset, section};
use super::{Root, guarded};
use crate::error::{Error, Result};

/// Most bytes of a transaction file: what Lance repeats inside the manifest, with room.
const MAX_TRANSACTION_BYTES: u64 = 256 << 20;

/// One manifest with what stands beside it in its file.
#[derive(Debug, Clone)]
pub struct ManifestParts {
    /// The manifest.
    pub manifest: Manifest,
    /// Its indexes.
    pub indices: Vec<IndexMetadata>,
    /// Properties of the transaction that made it; `None` when neither the manifest nor the transaction file
    /// holds it.
    pub properties: Option<HashMap<String, String>>,
}

impl Root {
    /// Read the manifest stored at `key` below the dataset folder `place`. Its version must be `version` and its
    /// branch `native` (`None` = main); anything else, and bytes that cannot be understood, are
    /// [`Error::Internal`]; an absent object is [`Error::NotFound`].
    pub async fn read_manifest_parts(
        &self,
        place: &str,
        key: &str,
        native: Option<&str>,
        version: u64,
    ) -> Result<ManifestParts> {
        let bytes = self
            .get(key, MAX_MANIFEST_BYTES)
            .await?
            .ok_or_else(|| Error::not_found(format!("{key} does not exist any more")))?;
        let (name, native) = (key.to_string(), native.map(str::to_string));
        let (manifest, indices, inline) = guarded(key, async move {
            decode(&bytes, &name, native.as_deref(), version)
        })
        .await?;
        let properties = match (inline, &manifest.transaction_file) {
            (Some(properties), _) => Some(properties),
            (None, None) => None,
            (None, Some(file)) => {
                let key = format!("{place}/_transactions/{file}");
                match self.get(&key, MAX_TRANSACTION_BYTES).await? {
                    None => None,
                    Some(bytes) => Some(stored_properties(&key, bytes).await?),
                }
            }
        };
        Ok(ManifestParts {
            manifest,
            indices,
            properties,
        })
    }
}

type Decoded = (
    Manifest,
    Vec<IndexMetadata>,
    Option<HashMap<String, String>>,
);

fn decode(bytes: &Bytes, key: &str, native: Option<&str>, version: u64) -> Result<Decoded> {
    let damaged = |why: String| Error::internal(format!("{key} is damaged: {why}"));
    let unread = |e| Error::lance(format!("cannot read {key}"), e);
    let at = manifest_offset(bytes).map_err(damaged)?;
    let manifest: Manifest =
        read_struct_from_buf::<pb::Manifest, Manifest>(&section(bytes, at).map_err(damaged)?)
            .map_err(unread)?;
    if manifest.version != version || manifest.branch.as_deref() != native {
        return Err(Error::internal(format!(
            "{key} holds version {} of branch '{}', expected version {version} of '{}'",
            manifest.version,
            manifest.branch.as_deref().unwrap_or("main"),
            native.unwrap_or("main")
        )));
    }
    let indices = match manifest.index_section {
        None => Vec::new(),
        Some(at) => {
            let stored: pb::IndexSection =
                read_message_from_buf(&section(bytes, at).map_err(damaged)?).map_err(unread)?;
            stored
                .indices
                .into_iter()
                .map(IndexMetadata::try_from)
                .collect::<Result<Vec<_>, _>>()
                .map_err(unread)?
        }
    };
    let properties = match manifest.transaction_section {
        None => None,
        Some(at) => {
            let stored: pb::Transaction =
                read_message_from_buf(&section(bytes, at).map_err(damaged)?).map_err(unread)?;
            Some(stored.transaction_properties)
        }
    };
    Ok((manifest, indices, properties))
}

async fn stored_properties(key: &str, bytes: Bytes) -> Result<HashMap<String, String>> {
    let name = key.to_string();
    guarded(key, async move {
        // The file is the bare message; the reader takes one behind its length.
        let length = u32::try_from(bytes.len())
            .map_err(|_| Error::internal(format!("{name} is larger than a message can be")))?;
        let mut framed = Vec::with_capacity(bytes.len() + 4);
        framed.extend(length.to_le_bytes());
        framed.extend_from_slice(&bytes);
        let stored: pb::Transaction = read_message_from_buf(&Bytes::from(framed))
            .map_err(|e| Error::lance(format!("cannot read {name}"), e))?;
        Ok(stored.transaction_properties)
    })
    .await
}
