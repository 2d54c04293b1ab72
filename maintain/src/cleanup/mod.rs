//! `cleanup`: removes table versions, staging and trees that nothing retained needs (`docs/format/maintenance.md` 5).

pub mod capture;
pub mod classify;
pub mod facts;
pub mod lineage;
pub mod listing;
pub mod policy;
pub mod reason;
pub mod roots;
pub mod staging;
pub mod tags;
