//! Table datasets as a write changes them: created empty, then detached commits on the pinned image
//! (`docs/format/tables-and-schema.md` 2.6 and 3).
//!
//! Writes below `nodes/` and `edges/` only. A staged version is named by nothing until a publish pins it; what a
//! failed attempt leaves carries the staging witness that lets `cleanup` judge it.

mod fold;
mod rewrite;
mod stage;
mod witness;

pub use fold::{FAN, LARGE_ROWS, fold};
pub use rewrite::{Rewritten, rewrite, run_task};
pub use stage::{Staged, append, commit_detached, discard, next_pin, overwrite, upsert};
pub use witness::Witness;
