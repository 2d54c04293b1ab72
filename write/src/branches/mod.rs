//! Branches of a graph: native refs under logical names (`docs/format/manifest-v14.md` 11).

mod create;
mod delete;
mod list;
mod names;

pub use create::{Created, create};
pub use delete::{Deleted, delete, finish_retirements};
pub use list::{Listed, list};
