//! Behaviours of the maintenance commands on real graphs. One binary: each links Lance.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod cleanup;
