//! `LegacyLayout` and `LegacyPlan`: what an upgrade intent binds of the legacy area
//! (`docs/format/history.md` 7.2 and 7.10).

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::error::{Error, Result};
use crate::model::measure::{HISTORY_BLOCK_SLOTS, HISTORY_RELEASE_BYTES, TAIL_BYTES};

/// The only known layout version.
pub const LEGACY_LAYOUT_VERSION: u32 = 1;
/// Record bytes of one data file: an eighth of the handle's cache.
pub const LEGACY_FILE_RECORD_BYTES: u64 = crate::history::lookup::CACHE_BYTES / 8;
/// Entries of one id shard.
pub const LEGACY_SHARD_ENTRIES: u32 = ((TAIL_BYTES - 12) / 24) as u32;

/// How the legacy objects are cut. Serializes in the stored member order; unknown members are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyLayout {
    /// [`LEGACY_LAYOUT_VERSION`].
    pub version: u32,
    /// Commit bytes of one data file.
    pub release_bytes: u64,
    /// Record bytes of one data file.
    pub file_record_bytes: u64,
    /// Records of one data file.
    pub block_slots: u32,
    /// Entries of one id shard.
    pub shard_entries: u32,
}

impl LegacyLayout {
    /// The layout a new plan is made under.
    pub const CURRENT: Self = Self {
        version: LEGACY_LAYOUT_VERSION,
        release_bytes: HISTORY_RELEASE_BYTES,
        file_record_bytes: LEGACY_FILE_RECORD_BYTES,
        block_slots: HISTORY_BLOCK_SLOTS,
        shard_entries: LEGACY_SHARD_ENTRIES,
    };

    /// Require a usable layout ([`Error::Internal`] otherwise). A resumed run plans under the layout of
    /// its intent, which may be any usable one.
    pub fn check(&self) -> Result<()> {
        let usable = self.version == LEGACY_LAYOUT_VERSION
            && (1..=HISTORY_RELEASE_BYTES).contains(&self.release_bytes)
            && (1..=LEGACY_FILE_RECORD_BYTES).contains(&self.file_record_bytes)
            && (1..=HISTORY_BLOCK_SLOTS).contains(&self.block_slots)
            && (1..=LEGACY_SHARD_ENTRIES).contains(&self.shard_entries);
        if usable {
            return Ok(());
        }
        Err(Error::internal(format!(
            "the legacy layout is not usable: {self:?}"
        )))
    }
}

/// The planned legacy objects in numbers, and the digest of the directory that lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyPlan {
    /// How the objects are cut.
    pub layout: LegacyLayout,
    /// Commits of all chains.
    pub commits: u64,
    /// Data files.
    pub data_files: u32,
    /// Id shards.
    pub id_shards: u32,
    /// Writer shards.
    pub writer_shards: u32,
    /// SHA-256 of the whole directory object, 64 hex digits.
    pub directory_sha256: String,
}

impl LegacyPlan {
    /// Require a usable layout and a well-formed digest ([`Error::Internal`] otherwise).
    pub fn check(&self) -> Result<()> {
        self.layout.check()?;
        if !digest::is_sha256_hex(&self.directory_sha256) {
            return Err(Error::internal(format!(
                "the legacy plan's directory digest '{}' is not 64 lower-case hex digits",
                self.directory_sha256
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_json_is_exact_and_strict() {
        let json = r#"{"version":1,"release_bytes":262144,"file_record_bytes":2097152,"block_slots":16384,"shard_entries":21844}"#;
        assert_eq!(serde_json::to_string(&LegacyLayout::CURRENT).unwrap(), json);
        assert_eq!(
            serde_json::from_str::<LegacyLayout>(json).unwrap(),
            LegacyLayout::CURRENT
        );
        let extra = json.replace('}', r#","x":1}"#);
        assert!(serde_json::from_str::<LegacyLayout>(&extra).is_err());
        assert!(serde_json::from_str::<LegacyLayout>(r#"{"version":1}"#).is_err());
    }

    #[test]
    fn only_usable_layouts_pass() {
        let good = LegacyLayout::CURRENT;
        good.check().unwrap();
        for bad in [
            LegacyLayout { version: 2, ..good },
            LegacyLayout {
                release_bytes: 0,
                ..good
            },
            LegacyLayout {
                release_bytes: 262_145,
                ..good
            },
            LegacyLayout {
                file_record_bytes: 0,
                ..good
            },
            LegacyLayout {
                file_record_bytes: 2_097_153,
                ..good
            },
            LegacyLayout {
                block_slots: 0,
                ..good
            },
            LegacyLayout {
                block_slots: 16_385,
                ..good
            },
            LegacyLayout {
                shard_entries: 0,
                ..good
            },
            LegacyLayout {
                shard_entries: 21_845,
                ..good
            },
        ] {
            assert!(matches!(bad.check(), Err(Error::Internal(_))), "{bad:?}");
        }
    }
}
