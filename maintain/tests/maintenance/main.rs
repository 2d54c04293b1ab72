//! The behaviours of `docs/format/maintenance.md` 8 at library level, on real Lance datasets. Each test names the
//! numbers of its behaviours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod bed;
mod cleanup;
mod indexes;
mod lease;
mod optimize;
mod optimize_faults;
mod optimize_values;
mod repair;
mod samples;
mod vectors;
