//! The write path on real Lance datasets in local folders.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod branches;
mod converted;
mod exports;
mod faults;
mod genesis;
mod history;
mod loads;
mod overwrites;
mod publishing;
mod races;
mod support;
