//! Which Lance version a pin names, and opening it (`docs/format/tables-and-schema.md` 3.4).
//!
//! A table is always opened from its path, native branch and version; the manifest path and the ETag of
//! the pin metadata are evidence only, since both change when a root is copied.

use std::sync::Arc;

use lance::Dataset;

use crate::error::{Error, Result};
use crate::model::{Pin, TableRow};
use crate::store::Root;

/// Detached Lance versions have this bit set.
const DETACHED_MASK: u64 = 1 << 63;

/// Whether a Lance version number is detached.
pub fn is_detached(version: u64) -> bool {
    version & DETACHED_MASK != 0
}

/// A table opened at its pin.
#[derive(Debug, Clone)]
pub struct OpenedTable {
    /// The dataset, checked out at the image the pin names.
    pub dataset: Arc<Dataset>,
    /// The Lance version opened: the staged one, or the linear one.
    pub lance_version: u64,
    /// Set when the pin's ETag differs from the opened manifest's and no transaction uuid vouches for
    /// it: a copied, restored or unpacked root. A note, never a refusal.
    pub note: Option<String>,
}

/// The dataset folder and native branch a pin lives on, relative to the root.
pub fn table_location(table: &TableRow, pin: &Pin) -> (String, Option<String>) {
    let branch = pin
        .table_branch
        .clone()
        .filter(|b| b != crate::model::names::MAIN);
    (table.table_path.clone(), branch)
}

/// The transaction id in a manifest's transaction file name, `{read_version}-{id}.txn`. `None` when the
/// manifest names no such file.
pub fn transaction_uuid(dataset: &Dataset) -> Option<String> {
    let file = dataset.manifest().transaction_file.as_deref()?;
    let (_, rest) = file.strip_suffix(".txn")?.split_once('-')?;
    Some(rest.to_string())
}

/// Open the image a stamp-14 pin names. A version that is gone is [`Error::NotFound`] (reclaimed
/// history); one recorded by another transaction than the pin's is [`Error::Internal`].
pub async fn open_pin(root: &Root, table: &TableRow, pin: &Pin) -> Result<OpenedTable> {
    let (location, branch) = table_location(table, pin);
    let open = |version: u64| root.open_dataset(&location, branch.as_deref(), Some(version));
    let Some(staged) = pin.metadata.staged_version else {
        let dataset = open(pin.table_version)
            .await
            .map_err(|e| reclaimed(e, table, pin.table_version))?;
        return Ok(opened(dataset, pin, pin.table_version));
    };
    let uuid = pin.metadata.transaction_uuid.as_deref();
    let direct = pin
        .metadata
        .last_linear_version
        .is_some_and(|last| pin.table_version > last);
    if !direct {
        match open(pin.table_version).await {
            Ok(dataset) if uuid.is_some() && transaction_uuid(&dataset).as_deref() == uuid => {
                return Ok(opened(dataset, pin, pin.table_version));
            }
            Ok(_) => {}
            Err(e) if e.is_not_found() => {
                let versions = root.linear_versions(&location, branch.as_deref()).await?;
                if versions
                    .last()
                    .is_some_and(|head| *head >= pin.table_version)
                {
                    return Err(reclaimed(e, table, pin.table_version));
                }
            }
            Err(e) => return Err(e),
        }
    }
    let dataset = open(staged)
        .await
        .map_err(|e| reclaimed(e, table, staged))?;
    if transaction_uuid(&dataset).as_deref() != uuid {
        return Err(Error::internal(format!(
            "table {}: detached version {staged} was written by transaction {}, the pin names {}",
            table.table_key,
            transaction_uuid(&dataset).as_deref().unwrap_or("none"),
            uuid.unwrap_or("none"),
        )));
    }
    Ok(opened(dataset, pin, staged))
}

/// Open a pin of stamps 6 to 9, which is always linear.
pub async fn open_linear_pin(root: &Root, table: &TableRow, pin: &Pin) -> Result<Arc<Dataset>> {
    let (location, branch) = table_location(table, pin);
    root.open_dataset(&location, branch.as_deref(), Some(pin.table_version))
        .await
}

fn opened(dataset: Arc<Dataset>, pin: &Pin, lance_version: u64) -> OpenedTable {
    let stored = dataset.manifest_location().e_tag.clone();
    let vouched = pin.metadata.transaction_uuid.is_some()
        && pin.metadata.transaction_uuid == transaction_uuid(&dataset);
    let note = match (&pin.metadata.e_tag, stored) {
        (Some(pinned), Some(found)) if *pinned != found && !vouched => Some(format!(
            "the manifest's ETag is {found}, the pin recorded {pinned}: the root was copied or restored"
        )),
        _ => None,
    };
    OpenedTable {
        dataset,
        lance_version,
        note,
    }
}

fn reclaimed(error: Error, table: &TableRow, version: u64) -> Error {
    if error.is_not_found() {
        Error::NotFound(format!(
            "table {} version {version} ({}) was reclaimed by an earlier cleanup; the commit that pins it \
             can no longer be read",
            table.table_key, table.table_path
        ))
    } else {
        error
    }
}
