//! The budget of a lineage read (`docs/format/history.md` 9.1).

use crate::error::{Error, Result};
use crate::model::measure::TAIL_BYTES;

/// Charged for each object addressed, cached or not.
pub const KEY_BYTES: u64 = 512;
/// Charged for each row handed back.
pub const ROW_CHARGE: u64 = 512;
/// Budget of a selective lineage read.
pub const DEFAULT_LINEAGE_BYTES: u64 = 33_554_432;

/// What a read may still spend; unlimited without a limit.
#[derive(Debug)]
pub(in crate::history) struct Budget {
    limit: Option<u64>,
    left: u64,
}

impl Budget {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            left: limit.unwrap_or(u64::MAX),
        }
    }

    fn spent(&self) -> Error {
        Error::internal(format!(
            "the history read exceeds its budget of {} bytes",
            self.limit.unwrap_or(u64::MAX)
        ))
    }

    pub(super) fn charge(&mut self, bytes: u64) -> Result<()> {
        if self.limit.is_none() {
            return Ok(());
        }
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(self.spent())
            }
        }
    }

    /// An extent is fetched only while one whole suffix read is still allowed.
    pub(super) fn admit_extent(&self) -> Result<()> {
        if self.left < TAIL_BYTES {
            return Err(self.spent());
        }
        Ok(())
    }

    /// A request of more ids than could be handed back is refused at once.
    pub(super) fn admit_ids(&self, ids: usize) -> Result<()> {
        if ids as u64 > self.left / ROW_CHARGE {
            return Err(self.spent());
        }
        Ok(())
    }
}
