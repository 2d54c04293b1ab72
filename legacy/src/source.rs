//! How the kinds of source differ (`docs/format/legacy-manifest.md` 5, 6.2, 6.3).

use std::sync::Arc;

use graph::Result;
use graph::store::{ManifestFile, ManifestVersion};

use crate::admission::{AdmittedStamp, Candidate, RefusalReason, Role, admit};
use crate::contract::SourceContract;
use crate::head_scan::{self, HeadScan};

/// A source that can be converted. Readers ask it instead of comparing stamps.
#[derive(Debug, Clone)]
pub enum LegacySource {
    /// Stamps 8 and 9: one contract in the root objects, valid for every version of every ref.
    RootContract {
        /// Stamp of every live head, 8 or 9.
        stamp: u32,
        /// The contract read from the root objects, or from its archive on a resumed run.
        contract: Arc<SourceContract>,
    },
    /// Stamp 13: every version stores its own contract row, and the rows are taken as they stand.
    Stamp13,
}

impl LegacySource {
    /// The stamp every live head carries.
    pub fn live_stamp(&self) -> u32 {
        match self {
            Self::RootContract { stamp, .. } => *stamp,
            Self::Stamp13 => 13,
        }
    }

    /// Decide whether a version is admitted (section 5).
    pub fn admit(
        &self,
        version: &ManifestVersion,
        role: Role,
    ) -> std::result::Result<AdmittedStamp, RefusalReason> {
        admit(&Candidate::of(version), role, self.live_stamp())
    }

    /// Decide whether a version whose manifest was read by itself is admitted as a retained one.
    pub fn admit_retained(
        &self,
        file: &ManifestFile,
    ) -> std::result::Result<AdmittedStamp, RefusalReason> {
        let candidate = Candidate::of_manifest(&file.manifest);
        admit(&candidate, Role::Retained, self.live_stamp())
    }

    /// Whether the rows of retained versions can be proved from manifests. At stamp 13 every publish replaces
    /// all rows, and every version stores its own contract.
    pub fn has_provable_versions(&self) -> bool {
        matches!(self, Self::RootContract { .. })
    }

    /// Scan a head (6.2) and complete it: at stamps 8 and 9 every pin's last linear version is its own
    /// table version, and the contract is the root's. Rows of stamp 13 are complete.
    pub async fn scan_head(
        &self,
        version: &ManifestVersion,
        stamp: AdmittedStamp,
    ) -> Result<HeadScan> {
        let mut scan = head_scan::scan(version, stamp).await?;
        self.complete(&mut scan);
        Ok(scan)
    }

    /// What [`LegacySource::scan_head`] adds to the stored rows.
    pub fn complete(&self, scan: &mut HeadScan) {
        match self {
            Self::RootContract { contract, .. } => {
                for pin in scan.pins.values_mut() {
                    pin.metadata.last_linear_version = Some(pin.table_version);
                }
                scan.contract = Some(contract.clone());
            }
            Self::Stamp13 => {}
        }
    }
}
