//! `cleanup`: removes table versions, staging and trees that nothing retained needs (`docs/format/maintenance.md` 5).

pub mod capture;
mod catalog;
pub mod classify;
pub mod facts;
pub mod human;
pub mod lineage;
pub mod listing;
pub mod location_plan;
pub mod origins;
pub mod plan;
pub mod policy;
pub mod reason;
pub mod report;
pub mod roots;
mod rows;
pub mod staging;
pub mod sweep;
pub mod tags;
pub mod trace;
pub mod trees;
mod uproot;

pub use plan::{Plan, plan, validate};
pub use policy::{Policy, PolicyError};
pub use report::{Mode, Report};
pub use sweep::{Done, execute};

use graph::store::Root;
use graph::{Error, Result};

/// Tables worked on at once, by default.
pub const DEFAULT_CONCURRENCY: usize = 8;
/// The variable that sets how many tables are worked on at once.
pub const CONCURRENCY_VARIABLE: &str = "OMNIGRAPH_MAINTENANCE_CONCURRENCY";

/// The number of tables at once that `setting` asks for; absent, zero or no number is [`DEFAULT_CONCURRENCY`].
pub fn concurrency(setting: Option<&str>) -> usize {
    setting
        .and_then(|text| text.trim().parse().ok())
        .filter(|n| *n > 0)
        .unwrap_or(DEFAULT_CONCURRENCY)
}

/// Refuse a root that holds a recovery sidecar: a write was interrupted there, and what it staged is not told apart from
/// garbage.
pub async fn require_no_sidecar(root: &Root) -> Result<()> {
    match root.list_names("__recovery").await?.first() {
        None => Ok(()),
        Some(name) => Err(Error::refused(format!(
            "__recovery/{name}: a write was interrupted and not recovered, expected an empty __recovery; nothing was \
             deleted. Recover the graph with the release that wrote it, then run the command again"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_at_once() {
        for (setting, want) in [
            (None, 8),
            (Some(""), 8),
            (Some("0"), 8),
            (Some("-1"), 8),
            (Some("x"), 8),
            (Some("3"), 3),
            (Some(" 64 "), 64),
        ] {
            assert_eq!(concurrency(setting), want, "{setting:?}");
        }
    }
}
