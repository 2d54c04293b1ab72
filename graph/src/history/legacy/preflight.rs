//! What may not stand under `__history/` before an upgrade fences its source
//! (`docs/format/history.md` 7.11 step 1).

use std::collections::BTreeSet;

use futures::TryStreamExt as _;

use crate::error::Result;
use crate::history::path::{HISTORY_DIR, is_schema_archive_or_temporary};
use crate::store::Root;

/// Most keys named.
pub const NAMED_KEYS: usize = 20;

/// The objects under `__history/` that are neither schema archives nor their create-temporaries: at most
/// 20 keys relative to that folder, sorted. Empty when the upgrade may begin.
pub async fn foreign_objects(root: &Root) -> Result<Vec<String>> {
    let mut named = BTreeSet::new();
    let mut keys = root.list(HISTORY_DIR)?;
    while let Some((key, _)) = keys.try_next().await? {
        let relative = key
            .strip_prefix(HISTORY_DIR)
            .map_or(key.as_str(), |rest| rest.trim_start_matches('/'));
        if !is_schema_archive_or_temporary(relative) {
            named.insert(relative.to_string());
            if named.len() > NAMED_KEYS {
                named.pop_last();
            }
        }
    }
    Ok(named.into_iter().collect())
}
