//! Maintenance of a stamp-14 graph: cleanup, optimize, repair (`docs/format/maintenance.md`).
//!
//! Nothing but `cleanup` deletes. Nothing here moves a linear Lance version of a table, and nothing is visible before the
//! one publish of a run: what an interrupted run leaves is named by nothing and carries the staging witness that lets
//! `cleanup` judge it.

pub mod cleanup;
mod entry;
pub mod indexes;
pub mod lease;
pub mod optimize;
mod publish;
pub mod repair;
mod stop;

pub use stop::Stop;
