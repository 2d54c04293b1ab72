//! Maintenance of a stamp-14 graph (`docs/format/maintenance.md`).

pub mod cleanup;
