//! The legacy area: every commit from before the offline upgrade, and the lookup objects over them
//! (`docs/format/history.md` 7).

mod bytes;
mod chain;
mod digest;
mod directory;
mod id_shard;
mod layout;
mod plan;
mod preflight;
#[cfg(test)]
pub(in crate::history) mod tests;
mod verify;
mod write;
mod writer_shard;

pub use chain::{Chain, ChainKind};
pub use digest::record_digest;
pub use directory::{Directory, FileListing, IdShardListing, WriterShardListing};
pub use id_shard::{IdEntry, IdShard};
pub use layout::{
    LEGACY_FILE_RECORD_BYTES, LEGACY_LAYOUT_VERSION, LEGACY_SHARD_ENTRIES, LegacyLayout, LegacyPlan,
};
pub use plan::{PlannedObjects, plan};
pub use preflight::{NAMED_KEYS, foreign_objects};
pub(in crate::history) use verify::listed_shard;
pub use verify::{Inspector, Verified, inspect, read_directory, verify};
pub use write::{Moment, ObjectObserver, write};
pub use writer_shard::{WriterEntry, WriterShard};
