//! The census of fixtures, generated histories and genuine roots.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod common;

mod fixture_s;
mod proof;
mod retained;
mod sample_roots;
