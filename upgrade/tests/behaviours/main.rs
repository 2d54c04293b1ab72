//! The behaviours of `docs/format/upgrade-protocol.md` 11 at library level.
//!
//! Each test is named after the number of its behaviour. "Refused" means the same report in check and
//! execute, zero work, and not one byte of the root changed.
//!
//! Not here:
//!
//! * 29, 30, 31, 37: cleanup, merge, tags and publishing come with the later milestones;
//! * 32: the change feed does; commit lists and lookup by id across the upgrade are in 34 and 35;
//! * 50, 51, 52: the command line, tested on the built binary in the root package;
//! * 53, 54: they need the predecessor's binary; the sample roots stand in, see `samples`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;
mod trees;

mod admission;
mod bounds;
mod changed;
mod conditional;
mod faults;
mod guards;
mod histories;
mod interrupted;
mod objects;
mod reading;
mod resumed;
mod samples;
mod source;
mod stamp13;
mod writers;
