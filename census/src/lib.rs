//! The census: from a legacy root to one history record per graph commit
//! (`docs/format/legacy-manifest.md` 6 to 9).
//!
//! [`census`] reads every head once, proves the commit graph and the bounds from the head scans alone,
//! and only then reads the retained versions, each for its registrations. It writes nothing. What it
//! decides (commit graph, cells, snapshots, folds, heads) are pure functions over plain data, one file
//! each; what is wrong with a graph comes back as [`Finding`]s, what is wrong with storage as an error.

mod budget;
mod cells;
mod chains;
mod counts;
mod finding;
mod fold;
mod graph;
mod heads;
mod input;
mod live_head;
mod orphans;
mod reading;
mod run;
mod snapshot;
mod survey;
#[cfg(test)]
mod testing;
mod versions;

pub use budget::{BudgetViolation, check_budgets, findings as budget_findings};
pub use chains::{Census, CensusHead};
pub use counts::Counts;
pub use finding::{Finding, FindingCode};
pub use input::{CensusInput, Limits, Progress, RefInput};
pub use run::census;
