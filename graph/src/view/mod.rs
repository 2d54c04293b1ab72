//! What a reader sees of a graph: a branch at its head, at a commit or at a numeric version, and the
//! commits of a branch (`docs/format/manifest-v14.md` 12, `docs/format/history.md` 9). Read-only.

mod lineage;
mod snapshot;
mod version;

pub use lineage::commit_list;
pub use snapshot::{At, Snapshot, snapshot};
pub use version::VersionReader;
