//! What the foreign linear versions of a table are: read, never changed.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::store::{Root, guarded};
use graph::{Error, Result};
use lance::Dataset;
use serde::Serialize;

/// Versions that are looked into, the newest ones; the others are only counted.
pub const MOST_VERSIONS: u64 = 1_000;
/// Manifests read at once.
const CONCURRENT_READS: usize = 8;

/// One foreign version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignVersion {
    /// Linear Lance version.
    pub version: u64,
    /// What its transaction did, as Lance names it; `None` when that is not recorded or cannot be read.
    pub operation: Option<String>,
    /// When it was committed, RFC 3339 in UTC.
    pub time: Option<String>,
    /// Its live rows.
    pub rows: Option<u64>,
    /// Why the others are null.
    pub error: Option<String>,
}

/// Look into the versions `last + 1 ..= head` of a table's folder and native branch, ascending; of more than [`MOST_VERSIONS`]
/// the newest. A version that cannot be read is one with an `error`.
pub async fn foreign(
    root: &Root,
    place: &(String, Option<String>),
    last: u64,
    head: u64,
) -> Result<Vec<ForeignVersion>> {
    let first = (last + 1).max(head.saturating_sub(MOST_VERSIONS - 1));
    futures::stream::iter(first..=head)
        .map(|version| one(root, place, version))
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await
}

async fn one(
    root: &Root,
    (path, branch): &(String, Option<String>),
    version: u64,
) -> Result<ForeignVersion> {
    let mut found = ForeignVersion {
        version,
        operation: None,
        time: None,
        rows: None,
        error: None,
    };
    let dataset = match root
        .open_dataset(path, branch.as_deref(), Some(version))
        .await
    {
        Ok(dataset) => dataset,
        // An outage says nothing about the version.
        Err(e) if e.is_storage() => return Err(e),
        Err(e) => {
            found.error = Some(format!("version {version} is missing or damaged: {e}"));
            return Ok(found);
        }
    };
    found.time = Some(
        dataset
            .manifest()
            .timestamp()
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    );
    match operation(&dataset).await {
        Ok(Some(name)) => found.operation = Some(name),
        Ok(None) => {
            found.error = Some(format!(
                "the transaction of version {version} is missing: its manifest names none"
            ));
        }
        Err(e) if e.is_storage() => return Err(e),
        Err(e) => {
            found.error = Some(format!(
                "failed to read the transaction of version {version}: {e}"
            ));
        }
    }
    match rows(&dataset).await {
        Ok(rows) => found.rows = Some(rows),
        Err(e) if e.is_storage() => return Err(e),
        Err(e) => {
            found.error.get_or_insert(format!(
                "failed to count the rows of version {version}: {e}"
            ));
        }
    }
    Ok(found)
}

async fn operation(dataset: &Arc<Dataset>) -> Result<Option<String>> {
    let object = dataset.uri().to_string();
    let dataset = dataset.clone();
    guarded(&object, async move {
        let transaction = dataset
            .read_transaction()
            .await
            .map_err(|e| Error::lance("cannot read the transaction", e))?;
        Ok(transaction.map(|t| t.operation.name().to_string()))
    })
    .await
}

async fn rows(dataset: &Arc<Dataset>) -> Result<u64> {
    let object = dataset.uri().to_string();
    let dataset = dataset.clone();
    guarded(&object, async move {
        let rows = dataset
            .count_rows(None)
            .await
            .map_err(|e| Error::lance("cannot count the rows", e))?;
        Ok(rows as u64)
    })
    .await
}
