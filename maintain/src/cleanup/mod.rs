//! `cleanup`: removes table versions, staging and trees that nothing retained needs (`docs/format/maintenance.md` 5).

pub mod capture;
mod catalog;
pub mod classify;
pub mod facts;
pub mod lineage;
pub mod listing;
pub mod origins;
pub mod plan;
pub mod policy;
pub mod reason;
pub mod report;
pub mod roots;
pub mod staging;
pub mod stop;
pub mod sweep;
pub mod tags;
pub mod trace;
pub mod trees;
mod uproot;

pub use plan::{Plan, plan, validate};
pub use policy::{Policy, PolicyError};
pub use report::{Mode, Report};
pub use stop::Stop;
pub use sweep::{Done, execute};
