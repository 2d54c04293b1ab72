//! Recovery and repair of stopped roots.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod kills;
mod support;
mod twins;
