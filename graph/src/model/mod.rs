//! The plain values of the format: tables, pins, commits, contracts and history records.
//!
//! Nothing here touches storage. The structs serialize (serde_json, compact, members in
//! declaration order) to exactly the JSON of `docs/format/history.md` 7.6, which the record digest of
//! a legacy data file covers.

pub mod commit;
pub mod measure;
pub mod names;
pub mod table;

pub use commit::{Commit, ContractHead, HistoryRecord};
pub use table::{Pin, PinMetadata, TableIdentity, TableKind, TableRow, TableState};
