//! `docs/format/maintenance.md` 5 and 8.

mod converted;
mod faults;
mod foreign;
mod forks;
mod kept;
mod model;
mod orphans;
mod samples;
mod shape;
mod staging;
mod support;
mod trees;
