//! Extents: Lance files whose rows are history records (`docs/format/history.md` 3). Blocks, singletons and
//! legacy data files share the layout.

mod address;
mod columns;
mod create;
mod decode;
mod encode;
mod footer;
mod held;
#[cfg(test)]
mod tests;

pub use address::check_address;
pub(in crate::history) use create::create_within;
pub use create::{Stored, create_extent};
pub use decode::{Lineage, decode_lineage, decode_records};
pub use encode::{Encoded, encode};
