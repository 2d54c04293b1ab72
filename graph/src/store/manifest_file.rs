//! A Lance manifest read as the file it is: one request, no dataset is opened
//! (`docs/format/lance-notes.md` 1).
//!
//! Enough for what a version says about itself: its schema and metadata, its fragments with their row
//! ids, and what kind of transaction made it. Layout of the file: protobuf sections, each behind a u32 length,
//! then 16 bytes: offset of the manifest section (i64), two u16 of the format's version, `LANC`.

use bytes::Bytes;
use futures::TryStreamExt as _;
use lance_io::utils::{read_message_from_buf, read_struct_from_buf};
use lance_table::format::{Manifest, pb};
use lance_table::io::commit::ManifestLocation;

use super::dataset::place;
use super::{Root, guarded};
use crate::error::{Error, Result};

/// Most bytes of one manifest. A fragment takes a few hundred, so this is beyond any root that opens.
pub(super) const MAX_MANIFEST_BYTES: u64 = 1 << 30;
const FOOTER: usize = 16;
const MAGIC: &[u8] = b"LANC";

/// What the transaction of a version did to the rows, as far as a proof about rows needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEffect {
    /// No row was touched: metadata, configuration, reserved fragment ids, an index, a clone.
    None,
    /// Rows moved to other fragments as they were (compaction).
    Moved,
    /// Rows were added, removed, or rewritten whole into new fragments; rewritten ones keep their ids.
    Written,
    /// Anything else, or not recorded in the manifest.
    Unknown,
}

/// One manifest of a dataset's own tree.
#[derive(Debug, Clone)]
pub struct ManifestFile {
    /// Native ref; `None` is main.
    pub native: Option<String>,
    /// Lance version.
    pub version: u64,
    /// The manifest.
    pub manifest: Manifest,
    /// What its transaction did.
    pub effect: RowEffect,
}

impl ManifestFile {
    /// Live rows; `None` when a fragment does not say how many it has.
    pub fn rows(&self) -> Option<u64> {
        let fragments = self.manifest.fragments.iter();
        fragments
            .map(|f| {
                let physical = f.physical_rows?;
                let deleted = match &f.deletion_file {
                    Some(file) => file.num_deleted_rows?,
                    None => 0,
                };
                physical.checked_sub(deleted).map(|rows| rows as u64)
            })
            .try_fold(0_u64, |sum, rows| sum.checked_add(rows?))
    }
}

impl Root {
    /// Where the manifests of a dataset's own tree are, by version ascending: one listing.
    pub async fn manifest_locations(
        &self,
        location: &str,
        branch: Option<&str>,
    ) -> Result<Vec<ManifestLocation>> {
        let place = place(location, branch);
        let base = self.path(&place)?;
        let mut found: Vec<ManifestLocation> = self
            .commit_handler()
            .list_manifest_locations(&base, self.store(), false)
            .try_collect()
            .await
            .map_err(|e| Error::lance(format!("cannot list the versions of {place}"), e))?;
        found.sort_unstable_by_key(|l| l.version);
        Ok(found)
    }

    /// Read the manifest at `found` of native branch `native` (`None` = main). Its branch and version must
    /// be the ones its place says, as for [`Root::open_dataset`].
    pub async fn read_manifest_file(
        &self,
        native: Option<&str>,
        found: &ManifestLocation,
    ) -> Result<ManifestFile> {
        let key = self
            .key_of(&found.path)
            .ok_or_else(|| Error::internal(format!("{} is not below the root", found.path)))?;
        let bytes = self
            .get(&key, MAX_MANIFEST_BYTES)
            .await?
            .ok_or_else(|| Error::not_found(format!("{key} does not exist any more")))?;
        let (native, version) = (native.map(str::to_string), found.version);
        let of = native.as_deref().unwrap_or("main");
        let key = format!("{key} (version {version} of {of})");
        let object = key.clone();
        guarded(&object, async move {
            let damaged = |why: String| Error::internal(format!("{key} is damaged: {why}"));
            let manifest: Manifest = read_struct_from_buf::<pb::Manifest, Manifest>(
                &section(&bytes, manifest_offset(&bytes).map_err(damaged)?).map_err(damaged)?,
            )
            .map_err(|e| Error::lance(format!("cannot read {key}"), e))?;
            if manifest.branch != native {
                return Err(Error::internal(format!(
                    "{key} holds a manifest of branch '{}'",
                    manifest.branch.as_deref().unwrap_or("main")
                )));
            }
            if manifest.version != version {
                return Err(Error::internal(format!(
                    "{key}: the manifest says version {}",
                    manifest.version
                )));
            }
            let effect = match manifest.transaction_section {
                None => RowEffect::Unknown,
                Some(at) => {
                    let section = section(&bytes, at).map_err(damaged)?;
                    let transaction: pb::Transaction = read_message_from_buf(&section)
                        .map_err(|e| Error::lance(format!("cannot read {key}"), e))?;
                    effect_of(transaction.operation.as_ref())
                }
            };
            Ok(ManifestFile {
                native,
                version,
                manifest,
                effect,
            })
        })
        .await
    }
}

pub(super) fn manifest_offset(bytes: &Bytes) -> std::result::Result<usize, String> {
    let Some(footer) = bytes.len().checked_sub(FOOTER).map(|at| &bytes[at..]) else {
        return Err(format!("it has {} bytes, fewer than a footer", bytes.len()));
    };
    let (offset, rest) = footer.split_at(8);
    if &rest[4..] != MAGIC {
        return Err("it does not end in LANC".to_string());
    }
    let offset: [u8; 8] = offset.try_into().unwrap_or_default();
    usize::try_from(i64::from_le_bytes(offset)).map_err(|_| "a negative offset".to_string())
}

/// The section at `at`, its length first, checked to lie inside the file: Lance slices without looking.
pub(super) fn section(bytes: &Bytes, at: usize) -> std::result::Result<Bytes, String> {
    let outside = || {
        format!(
            "a section at {at} of {} bytes reaches beyond it",
            bytes.len()
        )
    };
    let start = at.checked_add(4).filter(|s| *s <= bytes.len());
    let start = start.ok_or_else(outside)?;
    let length: [u8; 4] = bytes[at..start].try_into().unwrap_or_default();
    let end = start.checked_add(u32::from_le_bytes(length) as usize);
    let end = end.filter(|e| *e <= bytes.len()).ok_or_else(outside)?;
    Ok(bytes.slice(at..end))
}

fn effect_of(operation: Option<&pb::transaction::Operation>) -> RowEffect {
    use pb::transaction::{Operation, UpdateMode};
    match operation {
        Some(
            Operation::ReserveFragments(_)
            | Operation::UpdateConfig(_)
            | Operation::CreateIndex(_)
            | Operation::Clone(_),
        ) => RowEffect::None,
        Some(Operation::Rewrite(_)) => RowEffect::Moved,
        Some(Operation::Append(_)) => RowEffect::Written,
        // The other mode rewrites columns in place.
        Some(Operation::Update(update))
            if update.update_mode == UpdateMode::RewriteRows as i32
                && update.fields_modified.is_empty() =>
        {
            RowEffect::Written
        }
        _ => RowEffect::Unknown,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(sections: &[&[u8]], offset: i64) -> Bytes {
        let mut bytes = Vec::new();
        for section in sections {
            bytes.extend((section.len() as u32).to_le_bytes());
            bytes.extend(*section);
        }
        bytes.extend(offset.to_le_bytes());
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(MAGIC);
        bytes.into()
    }

    #[test]
    fn sections_are_found_and_must_lie_inside() {
        let good = file(&[b"first", b"second"], 9);
        assert_eq!(manifest_offset(&good), Ok(9));
        assert_eq!(&section(&good, 9).unwrap()[4..], b"second");
        assert_eq!(&section(&good, 0).unwrap()[4..], b"first");
        for (bytes, words) in [
            (Bytes::from_static(b"LANC"), "fewer than a footer"),
            (file(&[], -1), "negative"),
            (good.slice(..good.len() - 1), "LANC"),
        ] {
            assert!(manifest_offset(&bytes).unwrap_err().contains(words));
        }
        for at in [good.len(), good.len() - 4, usize::MAX, 1 << 40] {
            assert!(section(&good, at).unwrap_err().contains("reaches beyond"));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), at in any::<usize>()) {
            let bytes = Bytes::from(bytes);
            let _ = manifest_offset(&bytes);
            let _ = section(&bytes, at);
        }
    }
}
