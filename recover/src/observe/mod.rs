//! What a table shows: the catalog's pin, the newest version of its ref, and the transactions in between
//! (`docs/format/recovery-sidecars.md` 5). The reading; what it means is [`ownership`] and [`chain`].

pub mod chain;
pub mod ownership;
pub mod table_refs;

use graph::model::{Pin, TableIdentity, table::canonical_path};
use graph::store::{Root, guarded};
use graph::table::manifest_metadata;
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::transaction::Operation;
use legacy::publish::BranchCatalog;
use serde::Serialize;
use std::sync::Arc;

use crate::sidecar::{Sidecar, TablePin, TransactionId};

/// Most versions looked at in one table: 1024 planned ones, an index build and a restore.
pub const MAX_SCAN: u64 = 1026;

/// The transaction of one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Version it was built on.
    pub read_version: u64,
    /// Its id.
    pub uuid: String,
    /// Lance's name of the operation.
    pub operation: String,
    /// The version a `Restore` went back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restores: Option<u64>,
}

impl Recorded {
    /// Whether it is this planned one, in both fields.
    pub fn is(&self, planned: &TransactionId) -> bool {
        self.read_version == planned.read_version && self.uuid == planned.uuid
    }
}

/// One version above the pin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Lance version.
    pub version: u64,
    /// Its transaction; `None` when it is not recorded or cannot be read.
    pub transaction: Option<Recorded>,
}

/// The newest version of the ref a write goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// The ref exists.
    At(u64),
    /// The dataset exists, the ref does not.
    NoRef,
    /// There is no dataset.
    NoDataset,
}

/// Everything read about one pinned table.
#[derive(Debug, Clone)]
pub struct TableReading {
    /// Folder below the root.
    pub location: String,
    /// Lance ref the write goes to; `None` is the root lineage.
    pub branch: Option<String>,
    /// The pin the graph branch shows now.
    pub live: Option<Pin>,
    /// Whether the catalog knows the identity.
    pub registered: bool,
    /// Why the catalog contradicts the sidecar, if it does.
    pub contradiction: Option<String>,
    /// Newest version.
    pub head: Head,
    /// The ref object.
    pub fork: Option<graph::refs::RefContents>,
    /// Live refs below the ref's name.
    pub children: Vec<String>,
    /// Versions above the lower of pin and expectation, ascending; empty when they are more than [`MAX_SCAN`].
    pub entries: Vec<Entry>,
}

/// Read one pinned table of a sidecar whose branch is `catalog`.
pub async fn read_table(
    root: &Root,
    catalog: &BranchCatalog,
    sidecar: &Sidecar,
    pin: &TablePin,
) -> Result<TableReading> {
    let location = canonical_path(&pin.table_key, pin.identity)?;
    let branch = pin.table_branch.clone().filter(|b| b != "main");
    let rows = &catalog.rows;
    let live = rows.live_pin(pin.identity).cloned();
    let alias = sidecar.alias_before(pin);
    let mut contradiction = binding(catalog, pin.identity, alias);
    if let Some(owner) = pin.table_fork_owner.as_deref()
        && catalog.native.as_deref() != Some(owner)
    {
        contradiction = Some(format!(
            "table {} is forked for the ref '{owner}', the branch is now '{}'",
            pin.table_key,
            catalog.native.as_deref().unwrap_or("main")
        ));
    }
    let (fork, children) = match branch.as_deref() {
        None => (None, Vec::new()),
        Some(name) => (
            table_refs::read(root, &location, name).await?,
            table_refs::children(root, &location, name).await?,
        ),
    };
    let opened = match (&branch, &fork) {
        (Some(_), None) => None,
        _ => match root.open_dataset(&location, branch.as_deref(), None).await {
            Ok(dataset) => Some(dataset),
            Err(e) if e.is_not_found() => None,
            Err(e) => return Err(e),
        },
    };
    let head = match &opened {
        Some(dataset) => Head::At(dataset.manifest().version),
        None if branch.is_some() && exists(root, &location).await? => Head::NoRef,
        None => Head::NoDataset,
    };
    let from = live
        .as_ref()
        .map_or(0, |p| p.table_version)
        .min(pin.expected_version)
        // A fork holds no version below the one it was made at.
        .max(fork.as_ref().map_or(0, |f| f.parent_version))
        .saturating_add(1);
    let entries = match opened {
        Some(dataset) => entries(&location, dataset, from.min(pin.post_commit_pin)).await?,
        None => Vec::new(),
    };
    Ok(TableReading {
        location,
        branch,
        registered: rows.registrations.contains_key(&pin.identity),
        live,
        contradiction,
        head,
        fork,
        children,
        entries,
    })
}

async fn exists(root: &Root, location: &str) -> Result<bool> {
    match root.open_dataset(location, None, None).await {
        Ok(_) => Ok(true),
        Err(e) if e.is_not_found() => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether alias and identity still belong together on the branch.
fn binding(catalog: &BranchCatalog, identity: TableIdentity, alias: &str) -> Option<String> {
    let rows = &catalog.rows;
    match (rows.registrations.get(&identity), rows.live_named(alias)) {
        (Some(held), _) if held.table_key != alias => Some(format!(
            "ReadSetChanged dataset_binding:{identity}: the table is called '{}' now, the sidecar calls it '{alias}'",
            held.table_key
        )),
        (None, Some((other, _))) => Some(format!(
            "ReadSetChanged dataset_identity:{alias}: the alias belongs to table {} now, not to {identity}",
            other.identity
        )),
        _ => None,
    }
}

/// The transactions of the versions from `from` to the newest one.
pub async fn entries(object: &str, dataset: Arc<Dataset>, from: u64) -> Result<Vec<Entry>> {
    let head = dataset.manifest().version;
    if head < from || head - from >= MAX_SCAN {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for version in from..=head {
        let transaction = match transaction(object, dataset.clone(), version).await {
            Ok(found) => found,
            Err(e @ (Error::Storage { .. } | Error::Conflict(_))) => return Err(e),
            // Reclaimed or damaged: there is no record to go by.
            Err(_) => None,
        };
        out.push(Entry {
            version,
            transaction,
        });
    }
    Ok(out)
}

/// The transaction that made one version, read past every cache.
pub async fn transaction(
    object: &str,
    dataset: Arc<Dataset>,
    version: u64,
) -> Result<Option<Recorded>> {
    guarded(object, async move {
        let found = dataset
            .read_version_transaction(version)
            .await
            .map_err(|e| {
                Error::lance(
                    format!("cannot read the transaction of version {version}"),
                    e,
                )
            })?;
        Ok(found.transaction.map(|t| Recorded {
            read_version: t.read_version,
            operation: t.operation.name().to_string(),
            restores: match t.operation {
                Operation::Restore { version } => Some(version),
                _ => None,
            },
            uuid: t.uuid,
        }))
    })
    .await
}

/// The pin of an opened table version: rows counted, metadata as releases recorded it.
pub async fn pin_of(root: &Root, dataset: Arc<Dataset>, owner: Option<String>) -> Result<Pin> {
    let location = dataset.manifest_location().clone();
    let mut metadata = manifest_metadata(root, &dataset);
    if metadata.manifest_size.is_none() {
        let size = root
            .store()
            .size(&location.path)
            .await
            .map_err(|e| Error::lance(format!("cannot look for {}", location.path), e))?;
        metadata.manifest_size = Some(size);
    }
    metadata.table_fork_owner = owner;
    let version = dataset.manifest().version;
    let table_branch = dataset.manifest().branch.clone();
    let row_count = guarded(&format!("{}", location.path), async move {
        dataset
            .count_rows(None)
            .await
            .map_err(|e| Error::lance("cannot count the rows of a table", e))
    })
    .await?;
    Ok(Pin {
        table_version: version,
        table_branch,
        row_count: row_count as u64,
        metadata,
        manifest_version: 0,
    })
}
