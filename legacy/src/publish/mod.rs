//! Publishing into `__manifest` of stamps 6, 8 and 9 (`docs/format/recovery-sidecars.md` 12).
//!
//! `omnigraph recover` and the `repair` of those stamps finish what a release left, so they write rows exactly as
//! that release would have; nothing else in the workspace may. One publish is one Lance merge insert on
//! `object_id`, committed at exactly the version its rows carry: a merge insert is rebased over other commits even
//! with zero retries, and a `graph_commit` row that names another version than the one it lands in is corruption.

mod attempt;
mod catalog;
mod change;
mod rows;

pub use attempt::{MAX_ATTEMPTS, Published, publish};
pub use catalog::{BranchCatalog, CatalogRows, SERVED_STAMPS, live_branches};
pub use change::{Change, Lineage, Precondition, PublishError, Stamp, rows_of};
pub use rows::NewRow;
