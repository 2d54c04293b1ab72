//! The keys of `__history/`, both ways (`docs/format/history.md` 2).
//!
//! Nothing below the folder is ever overwritten or deleted; a key that is not one of these is an
//! inconsistency for every reader that lists.

use std::fmt;

use ulid::Ulid;

use super::commit_id::parse_slot;
use crate::digest;
use crate::error::{Error, Result};
use crate::ulids;

/// The folder below the root.
pub const HISTORY_DIR: &str = "__history";
/// Most legacy data files, and one above the greatest number eight digits write.
pub const LEGACY_MAX_FILES: u32 = 100_000_000;
/// Most leftover create-temporaries one listing tolerates.
pub const MAX_BLOCK_EXTENTS: usize = 1_024;
/// Digits of a legacy file or shard number.
const LEGACY_FILE_DIGITS: usize = 8;

/// Where an extent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtentKey {
    /// `blocks/<block>/all.lance`: every commit of a block the writer knew complete.
    Whole(Ulid),
    /// `blocks/<block>/<start>-<end>.lance`: the slots `start..=end`.
    Range {
        /// The block.
        block: Ulid,
        /// First slot.
        start: u16,
        /// Last slot.
        end: u16,
    },
    /// `singletons/<sha256hex>.lance`: one commit whose id has no block address.
    Singleton([u8; 32]),
    /// `legacy/data/<nnnnnnnn>.lance`: commits from before the upgrade.
    LegacyData(u32),
}

impl ExtentKey {
    /// The singleton object of an opaque commit id: named by the SHA-256 of the id's bytes.
    pub fn singleton(id: &str) -> Self {
        Self::Singleton(digest::sha256(id.as_bytes()))
    }

    /// The key relative to the root.
    pub fn key(&self) -> String {
        format!("{HISTORY_DIR}/{self}")
    }

    /// The prefix, relative to the root, below which the extents of a block stand.
    pub fn block_prefix(block: Ulid) -> String {
        format!("{HISTORY_DIR}/blocks/{block}")
    }
}

impl fmt::Display for ExtentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(block) => write!(f, "blocks/{block}/all.lance"),
            Self::Range { block, start, end } => write!(f, "blocks/{block}/{start}-{end}.lance"),
            Self::Singleton(name) => write!(f, "singletons/{}.lance", hex::encode(name)),
            Self::LegacyData(n) => write!(f, "legacy/data/{n:08}.lance"),
        }
    }
}

/// One object of the key grammar. Displays as its key relative to `__history/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// An extent.
    Extent(ExtentKey),
    /// `schemas/<sha256hex>.schema`.
    Schema([u8; 32]),
    /// `legacy/locator/ids/<nnnnnnnn>.oglx`.
    IdShard(u32),
    /// `legacy/locator/writers/<nnnnnnnn>.oglx`.
    WriterShard(u32),
    /// `legacy/locator/directory.oglx`.
    Directory,
}

impl ObjectKey {
    /// Parse a key relative to `__history/`. A key that does not come back unchanged from its parts is
    /// [`Error::Internal`].
    pub fn parse(key: &str) -> Result<Self> {
        match Self::parts(key) {
            Some(parsed) if parsed.to_string() == key => Ok(parsed),
            _ => Err(Error::internal(format!(
                "{HISTORY_DIR}/{key} is not an object of this format"
            ))),
        }
    }

    fn parts(key: &str) -> Option<Self> {
        if key == "legacy/locator/directory.oglx" {
            return Some(Self::Directory);
        }
        if let Some(rest) = key.strip_prefix("blocks/") {
            let (block, name) = rest.split_once('/')?;
            let block = ulids::parse_canonical(block)?;
            let stem = name.strip_suffix(".lance")?;
            if stem == "all" {
                return Some(Self::Extent(ExtentKey::Whole(block)));
            }
            let (start, end) = stem.split_once('-')?;
            let (start, end) = (parse_slot(start)?, parse_slot(end)?);
            return (start <= end).then_some(Self::Extent(ExtentKey::Range { block, start, end }));
        }
        if let Some(rest) = key.strip_prefix("singletons/") {
            return Some(Self::Extent(ExtentKey::Singleton(hex_name(
                rest, ".lance",
            )?)));
        }
        if let Some(rest) = key.strip_prefix("schemas/") {
            return Some(Self::Schema(hex_name(rest, ".schema")?));
        }
        if let Some(rest) = key.strip_prefix("legacy/data/") {
            return Some(Self::Extent(ExtentKey::LegacyData(number(rest, ".lance")?)));
        }
        if let Some(rest) = key.strip_prefix("legacy/locator/ids/") {
            return Some(Self::IdShard(number(rest, ".oglx")?));
        }
        if let Some(rest) = key.strip_prefix("legacy/locator/writers/") {
            return Some(Self::WriterShard(number(rest, ".oglx")?));
        }
        None
    }

    /// The key relative to the root.
    pub fn key(&self) -> String {
        format!("{HISTORY_DIR}/{self}")
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extent(extent) => extent.fmt(f),
            Self::Schema(name) => write!(f, "schemas/{}.schema", hex::encode(name)),
            Self::IdShard(n) => write!(f, "legacy/locator/ids/{n:08}.oglx"),
            Self::WriterShard(n) => write!(f, "legacy/locator/writers/{n:08}.oglx"),
            Self::Directory => f.write_str("legacy/locator/directory.oglx"),
        }
    }
}

fn hex_name(name: &str, suffix: &str) -> Option<[u8; 32]> {
    let stem = name.strip_suffix(suffix)?;
    if !digest::is_sha256_hex(stem) {
        return None;
    }
    let mut out = [0; 32];
    hex::decode_to_slice(stem, &mut out).ok()?;
    Some(out)
}

fn number(name: &str, suffix: &str) -> Option<u32> {
    let stem = name.strip_suffix(suffix)?;
    if stem.len() != LEGACY_FILE_DIGITS || !stem.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    stem.parse().ok()
}

/// Whether the text after the last `marker` of a key is exactly 32 hex digits of either case.
fn ends_as_temporary(key: &str, marker: &str) -> bool {
    key.rfind(marker).is_some_and(|at| {
        let tail = &key[at + marker.len()..];
        tail.len() == 32 && tail.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// True for the create-temporary of an extent: `….lance.tmp.` and 32 hex digits at the end.
pub fn is_extent_temporary(key: &str) -> bool {
    ends_as_temporary(key, ".lance.tmp.")
}

/// True for a schema archive or the create-temporary of one, directly under `schemas/`; `key` is
/// relative to `__history/`. These alone may stand there before an upgrade fences its source
/// (`docs/format/history.md` 7.11 step 1).
pub fn is_schema_archive_or_temporary(key: &str) -> bool {
    if matches!(ObjectKey::parse(key), Ok(ObjectKey::Schema(_))) {
        return true;
    }
    let marker = ".schema.tmp.";
    ends_as_temporary(key, marker)
        && key.rfind(marker).is_some_and(|at| {
            matches!(
                ObjectKey::parse(&format!("{}.schema", &key[..at])),
                Ok(ObjectKey::Schema(_))
            )
        })
}

/// What one key of an extent listing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// An extent to read.
    Extent(ExtentKey),
    /// Skipped without being parsed: below `schemas/` or `legacy/locator/`.
    Skipped,
    /// The create-temporary of an extent.
    Temporary,
}

/// Classifies the keys of one listing and counts its temporaries.
#[derive(Debug, Default)]
pub struct Listing {
    temporaries: usize,
}

impl Listing {
    /// Classify a key relative to the root. A key outside the grammar, and more than
    /// [`MAX_BLOCK_EXTENTS`] temporaries in one listing, are [`Error::Internal`].
    pub fn classify(&mut self, key: &str) -> Result<Listed> {
        let relative = key
            .strip_prefix(HISTORY_DIR)
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| Error::internal(format!("{key} lies outside {HISTORY_DIR}/")))?;
        if relative.starts_with("schemas/") || relative.starts_with("legacy/locator/") {
            return Ok(Listed::Skipped);
        }
        if is_extent_temporary(relative) {
            self.temporaries += 1;
            if self.temporaries > MAX_BLOCK_EXTENTS {
                return Err(Error::internal(format!(
                    "{HISTORY_DIR} holds more than {MAX_BLOCK_EXTENTS} leftover create-temporaries \
                     (*.lance.tmp.<32 hex>); they can be removed while no writer runs"
                )));
            }
            return Ok(Listed::Temporary);
        }
        match ObjectKey::parse(relative)? {
            ObjectKey::Extent(extent) => Ok(Listed::Extent(extent)),
            // Only extents are left outside the two skipped folders.
            _ => Ok(Listed::Skipped),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    const BLOCK: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    #[test]
    fn keys_round_trip() {
        let hex = "aeebad4a796fcc2e15dc4c6061b45ed9b373f26adfc798ca7d2d8cc58182718e";
        for key in [
            format!("blocks/{BLOCK}/all.lance"),
            format!("blocks/{BLOCK}/0-0.lance"),
            format!("blocks/{BLOCK}/4-16383.lance"),
            format!("singletons/{hex}.lance"),
            format!("schemas/{hex}.schema"),
            "legacy/data/00000000.lance".into(),
            "legacy/locator/ids/99999999.oglx".into(),
            "legacy/locator/writers/00000012.oglx".into(),
            "legacy/locator/directory.oglx".into(),
        ] {
            assert_eq!(ObjectKey::parse(&key).unwrap().to_string(), key);
        }
        assert_eq!(
            ExtentKey::singleton("genesis").to_string(),
            format!("singletons/{hex}.lance")
        );
        assert_eq!(
            ExtentKey::singleton("01K6R2Q0S0AAAAAAAAAAAAAAA1").to_string(),
            "singletons/f2d71947729e470005094eab28c496cd0b89730a7cb9839f19b7b8c0eeb406a1.lance"
        );
    }

    #[test]
    fn other_keys_are_refused() {
        let upper = "AEEBAD4A796FCC2E15DC4C6061B45ED9B373F26ADFC798CA7D2D8CC58182718E";
        for key in [
            "",
            "blocks",
            "blocks/",
            "readme.txt",
            &format!("blocks/{BLOCK}/5-4.lance"),
            &format!("blocks/{BLOCK}/05-7.lance"),
            &format!("blocks/{BLOCK}/+5-7.lance"),
            &format!("blocks/{BLOCK}/0-16384.lance"),
            &format!("blocks/{BLOCK}/0-7.lance.tmp"),
            &format!("blocks/{BLOCK}/x/all.lance"),
            &format!("blocks/{}/all.lance", BLOCK.to_lowercase()),
            &format!("singletons/{upper}.lance"),
            "legacy/data/0.lance",
            "legacy/data/000000000.lance",
            "legacy/data/+0000001.lance",
            "legacy/locator/ids/0000000a.oglx",
            "legacy/locator/directory",
        ] {
            assert!(
                matches!(ObjectKey::parse(key), Err(Error::Internal(_))),
                "{key}"
            );
        }
    }

    #[test]
    fn listings_skip_temporaries_up_to_a_bound() {
        let mut listing = Listing::default();
        let tmp = format!("__history/blocks/{BLOCK}/all.lance.tmp.{}", "aB".repeat(16));
        for _ in 0..MAX_BLOCK_EXTENTS {
            assert_eq!(listing.classify(&tmp).unwrap(), Listed::Temporary);
        }
        assert!(listing.classify(&tmp).is_err());
        let mut listing = Listing::default();
        assert_eq!(
            listing.classify("__history/schemas/what.ever").unwrap(),
            Listed::Skipped
        );
        assert_eq!(
            listing.classify("__history/legacy/locator/x").unwrap(),
            Listed::Skipped
        );
        assert!(listing.classify("__history/legacy/data/x").is_err());
        assert!(listing.classify("__history/a.lance.tmp.0123").is_err());
        assert!(listing.classify("__other/a").is_err());
    }

    #[test]
    fn archives_and_their_temporaries_are_told_apart() {
        let archive = format!("schemas/{}.schema", "0a".repeat(32));
        assert!(is_schema_archive_or_temporary(&archive));
        assert!(is_schema_archive_or_temporary(&format!(
            "{archive}.tmp.{}",
            "0a".repeat(16)
        )));
        assert!(!is_schema_archive_or_temporary(&format!(
            "{archive}.tmp.{}",
            "0a".repeat(15)
        )));
        assert!(!is_schema_archive_or_temporary("schemas/x.schema"));
        assert!(!is_schema_archive_or_temporary(&format!(
            "blocks/{BLOCK}/all.lance"
        )));
    }

    proptest! {
        #[test]
        fn parsing_any_text_never_panics(key in ".{0,120}") {
            let _ = ObjectKey::parse(&key);
            let _ = is_schema_archive_or_temporary(&key);
            let _ = Listing::default().classify(&format!("__history/{key}"));
        }
    }
}
