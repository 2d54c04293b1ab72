//! Verification of roots that are whole, and of roots in which one thing is broken.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod clean;
mod extents;
mod flips;
mod large;
mod semantic;
mod support;
