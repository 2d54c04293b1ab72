//! The write path of a stamp-14 graph: publish, genesis, loads and branches.
//!
//! Every write has the same shape: capture a branch once, validate and stage outside of any gate, stage one detached
//! commit a table, publish once. Nothing is visible before the publish, and what an interrupted write leaves is
//! named by nothing.

pub mod branches;
pub mod capture;
pub mod error;
pub mod export;
pub mod gates;
pub mod genesis;
pub mod load;
pub mod publish;
pub mod table;
#[cfg(test)]
mod testing;

pub use error::{Result, WriteError};

/// Microseconds since the Unix epoch, as commits record a time.
pub(crate) fn micros(at: std::time::SystemTime) -> i64 {
    let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
