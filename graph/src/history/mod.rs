//! The objects under `__history/` (`docs/format/history.md`): where they stand, what they hold, how they are
//! created and how commits are found in them.
//!
//! Every object is created with put-if-absent and never overwritten or deleted; creating one that exists
//! succeeds exactly when the content agrees. A reader checks whatever it reads against its address, its
//! listed digest and its other copies, and calls every disagreement [`Error::Internal`].

pub mod block;
pub mod commit_id;
pub mod extent;
pub mod legacy;
mod lineage;
pub mod lookup;
pub mod numeric;
pub mod path;
pub mod schema_archive;
#[cfg(test)]
pub(crate) mod testing;
mod writers;

pub use commit_id::BlockAddress;
pub use lineage::first_parent_chain;
pub use lookup::HistoryReader;

use crate::error::Error;

/// An object above its cap is an inconsistency of the root, not a limit the caller ran into
/// (`docs/format/history.md` 9.1).
fn limit_as_internal(error: Error) -> Error {
    match error {
        limit @ Error::Limit { .. } => Error::internal(limit.to_string()),
        other => other,
    }
}
