//! Recovery and repair of stopped roots.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod carried;
mod fabricated;
mod kills;
mod raced;
mod refusals;
mod repair;
mod reports;
mod shapes;
mod staged;
mod support;
mod twins;
