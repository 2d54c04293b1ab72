//! What a tree of `__manifest` holds that neither a ref object nor a retirement archive names. Reads only.

use crate::error::Result;
use crate::stamp::StampReading;
use crate::store::{MANIFEST_DIR, Root};

/// First stamp whose releases retire a ref instead of deleting its tree.
const FIRST_RETIRING: u32 = 8;

/// An unclaimed tree, by what it holds (`docs/format/upgrade-protocol.md` 6.2 step 17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    /// Left by a deletion before retirement existed: its newest version has a stamp below 8, or none.
    Deleted,
    /// A single version, written by Lance's `Clone`: an interrupted creation, or a branch that never published
    /// and lost its ref. It holds nothing of its own.
    Cloned,
    /// Something was published on it, or that cannot be told; what it holds, in words.
    Published(String),
}

/// Look at an unclaimed tree. A listing that fails is an error; a tree that does not open is
/// [`Unclaimed::Published`], since unknown means keep.
pub async fn unclaimed(root: &Root, native: &str) -> Result<Unclaimed> {
    let versions = root.linear_versions(MANIFEST_DIR, Some(native)).await?;
    let count = versions.len();
    let head = match root.open_manifest(Some(native), None).await {
        Ok(head) => head,
        // Gone since the trees were listed.
        Err(e) if e.is_not_found() && count == 0 => return Ok(Unclaimed::Deleted),
        Err(e) => {
            let plural = if count == 1 { "" } else { "s" };
            return Ok(Unclaimed::Published(format!(
                "holds {count} version{plural} and cannot be opened ({e})"
            )));
        }
    };
    let stamp = match StampReading::of(&head) {
        StampReading::Absent => return Ok(Unclaimed::Deleted),
        StampReading::Number(n) if n < FIRST_RETIRING => return Ok(Unclaimed::Deleted),
        StampReading::Number(n) => n.to_string(),
        StampReading::NotANumber(text) => format!("'{text}'"),
    };
    if count == 1 && head.is_clone().await.unwrap_or(false) {
        return Ok(Unclaimed::Cloned);
    }
    Ok(Unclaimed::Published(format!(
        "holds versions up to {} of stamp {stamp}",
        head.version
    )))
}
