//! The built binary, run as an operator runs it: exit codes, the one document on stdout, the roots it
//! leaves behind. What a run must give is read from the source roots by plain Lance scans
//! ([`support::source`]), never through the libraries under test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod bad_input;
mod cleanup;
mod cli;
mod cluster;
mod completeness;
mod damage;
mod fuzz;
mod kills;
mod loading;
mod maintenance;
mod rebuild;
mod recover;
mod s3;
mod samples;
mod support;
mod verify;
mod writers;
