//! Native refs of `__manifest`: the ref objects under `_refs/branches/`, which of them are live, and
//! the archives of retired ones (`docs/format/manifest-v14.md` 11, `docs/format/legacy-manifest.md` 4).
//!
//! Reads `__manifest/_refs/branches/*.json` and `__manifest/tree/**/_omnigraph_retired_branch.json`.
//! A ref that carries the retirement key is live only never: when its record does not match, it is an
//! error, not a guess.

mod contents;
mod inventory;
mod retire;
mod unclaimed;

pub use contents::{BranchIdentifier, RETIRED_KEY, RefContents, RetiredRecord};
pub use inventory::{
    BrokenRef, NativeRef, RefInventory, Trees, archive_key, inventory, inventory_of, live_refs,
    read_ref, ref_key, resolve_branch, survey, tags_on,
};
pub use retire::{RetireStep, require_retirable, retire};
pub use unclaimed::{Unclaimed, unclaimed};
