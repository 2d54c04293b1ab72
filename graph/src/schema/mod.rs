//! The schema contract: the `.pg` language, its compiled forms and where they are stored
//! (`docs/format/tables-and-schema.md` 2, 4, 5, 6 and 7).
//!
//! Everything here is a pure function over text already read. The way from source to stored contract:
//!
//! ```text
//! source --[source::compile]--> Compiled { shape, hints } --[ir::resolve]--> SchemaIr --> Contract
//!                                    ^                                          |
//!                                    +-------------- SchemaIr::shape() ---------+
//! ```
//!
//! A stored contract is accepted only when both ways meet: the shape compiled from the stored source
//! equals the shape projected from the stored IR, and the IR hashes to what the head names.

pub mod columns;
pub mod contract;
pub mod ir;
pub mod names;
pub mod shape;
pub mod source;
pub mod text;
pub mod types;
pub mod vintage;

pub use columns::{ColumnDifference, DeclaredTable, compare_columns, tables};
pub use contract::{
    Contract, ContractObject, RootContractError, RootObjects, SchemaState, read_root_contract,
};
pub use ir::{SchemaIr, resolve};
pub use shape::SchemaShape;
pub use source::{Compiled, ParseMode, SourceError, compile};
pub use vintage::{SystemRole, Vintage};

/// Bound of every schema object and of a compiled schema: 64 MiB
/// (`docs/format/tables-and-schema.md` 6.2, `MAX_METADATA_BYTES`).
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024 * 1024;
