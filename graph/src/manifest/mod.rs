//! The rows of the stamp-14 `__manifest` dataset (`docs/format/manifest-v14.md` 2 to 6 and 12).
//!
//! Reads one version of one branch with a single scan and turns it into a [`BranchState`]; encodes a
//! state back into the one batch a commit writes. Decoding refuses whatever the reference refuses, so a
//! state in memory always satisfies it.

pub mod accounting;
pub mod batch;
pub mod buffer;
pub mod delta;
mod kept;
pub mod overwrite;
pub mod packed;
pub mod row;
pub mod scan;
pub mod state;

pub use kept::KeptStates;
pub use state::{BranchState, Replaced};
