//! Finishing interrupted writes and drift of stamps 6, 8 and 9 (`docs/format/recovery-sidecars.md`,
//! `docs/format/maintenance.md` 7).
//!
//! [`recover`] lists the sidecars ([`listing`]), reads what each names ([`observe`]), decides ([`judge`], [`plan`]) and
//! performs the plan ([`apply`]). Plans are values computed from reads alone, so a check and a confirmed run cannot
//! disagree; every effect is idempotent, so a stopped run is finished by the next one; the sidecar goes last.

pub mod apply;
pub mod audit;
pub mod judge;
pub mod leftover;
pub mod listing;
pub mod observe;
pub mod plan;
pub mod repair;
pub mod report;
mod run;
pub mod sidecar;
pub mod staging;
pub mod visible;

pub use report::{Report, render};
pub use run::{RecoverOptions, recover};
