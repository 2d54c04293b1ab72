//! Drift of stamps 6, 8 and 9: table versions above the pin that no sidecar explains
//! (`docs/format/maintenance.md` 7.1, `docs/format/recovery-sidecars.md` 15).
//!
//! Reads the transaction of every version above a pin; publishes the newest version of the tables it heals, one commit
//! a branch, each under the expectation that the pin is still the one that was looked at. No table is written.

mod classify;
mod report;
mod survey;

pub use classify::{Action, Classification, Drift, action, classify};
pub use report::{CommitReport, DatasetReport, RepairReport, render};
pub use survey::{TableRef, catalogs, survey};

use graph::model::names::SCHEMA_APPLY_LOCK;
use graph::store::Root;
use graph::{Error, Result};
use legacy::publish::{BranchCatalog, Change, Lineage, PublishError, publish};
use legacy::recovery::pending_operations;
use ulid::Ulid;

use crate::observe::pin_of;
use crate::staging::SchemaObjects;

/// Author of a commit that publishes verified maintenance only.
pub const REPAIR_ACTOR: &str = "omnigraph:repair";
/// Author of a commit that publishes anything else.
pub const FORCE_ACTOR: &str = "omnigraph:repair:force";

/// How to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RepairOptions {
    /// Publish verified maintenance.
    pub confirm: bool,
    /// Publish the rest too; only with `confirm`.
    pub force: bool,
    /// Microseconds since the epoch; the clock when `None`.
    pub now: Option<i64>,
}

/// Classify the drift of a root of stamp 6, 8 or 9 and, with `confirm`, publish it. Refused with a sidecar, a staged
/// schema, a schema apply under way or a schema that is no contract.
pub async fn repair(root: &Root, options: &RepairOptions) -> Result<RepairReport> {
    if options.force && !options.confirm {
        return Err(Error::refused("--force needs --confirm"));
    }
    require_idle(root).await?;
    let catalogs = catalogs(root).await?;
    require_contract(root).await?;
    let refs = survey(root, &catalogs).await?;
    let mut report = RepairReport {
        uri: root.uri().to_string(),
        confirm: options.confirm,
        force: options.force,
        graph_manifest_version: None,
        commits: Vec::new(),
        datasets: refs.iter().map(|r| dataset(r, options)).collect(),
    };
    for catalog in &catalogs {
        let chosen: Vec<(&TableRef, Action)> = refs
            .iter()
            .zip(&report.datasets)
            .filter(|(r, _)| r.branch == catalog.branch)
            .map(|(r, d)| (r, d.action))
            .filter(|(_, a)| matches!(a, Action::Healed | Action::Forced))
            .collect();
        if chosen.is_empty() {
            continue;
        }
        if report.commits.is_empty() {
            crate::run::prove_store(root).await?;
        }
        require_idle(root).await?;
        let commit = publish_refs(root, catalog, &chosen, options).await?;
        if catalog.branch.is_none() {
            report.graph_manifest_version = Some(commit.graph_manifest_version);
        }
        report.commits.push(commit);
    }
    Ok(report)
}

fn dataset(table: &TableRef, options: &RepairOptions) -> DatasetReport {
    let drift = &table.drift;
    DatasetReport {
        type_key: table.table_key.clone(),
        branch: table.branch.clone(),
        table_branch: table.pin.table_branch.clone(),
        published_dataset_version: table.pin.table_version,
        lance_head_version: table.head,
        classification: drift.classification,
        action: action(drift.classification, options.confirm, options.force),
        operations: drift.operations.clone(),
        error: drift.error.clone(),
    }
}

/// No write is pending.
async fn require_idle(root: &Root) -> Result<()> {
    let pending = pending_operations(root).await?;
    if !pending.is_empty() {
        return Err(Error::refused(format!(
            "repair requires a clean recovery state: {} sidecar(s) under __recovery/ ({}). Run omnigraph recover --check \
             first",
            pending.len(),
            pending.join(", ")
        )));
    }
    let refs = graph::refs::live_refs(root).await?;
    match refs.iter().find(|r| r.logical() == SCHEMA_APPLY_LOCK) {
        Some(lock) => Err(Error::refused(format!(
            "a schema apply holds the ref {}: let it end, or restore the whole root from a backup if it was killed",
            lock.native
        ))),
        None => Ok(()),
    }
}

async fn require_contract(root: &Root) -> Result<()> {
    let schema = SchemaObjects::read(root).await?;
    let staged = schema.staged_names();
    if !staged.is_empty() {
        return Err(Error::refused(format!(
            "{} exists: a schema apply was interrupted. Run omnigraph recover --check first",
            staged.join(", ")
        )));
    }
    schema
        .live_contract()
        .map(|_| ())
        .map_err(|why| Error::refused(format!("the root schema objects hold no contract: {why}")))
}

async fn publish_refs(
    root: &Root,
    catalog: &BranchCatalog,
    chosen: &[(&TableRef, Action)],
    options: &RepairOptions,
) -> Result<CommitReport> {
    let mut changes = Vec::new();
    for (table, _) in chosen {
        let branch = table.pin.table_branch.as_deref();
        let dataset = root
            .open_dataset(&table.location, branch, Some(table.head))
            .await?;
        let owner = table.pin.metadata.table_fork_owner.clone();
        changes.push(Change::Update {
            identity: table.identity,
            table_key: table.table_key.clone(),
            expected_version: table.pin.table_version,
            pin: pin_of(root, dataset, owner).await?,
        });
    }
    let forced = chosen.iter().any(|(_, a)| *a == Action::Forced);
    let now = std::time::SystemTime::now();
    let micros = now
        .duration_since(std::time::UNIX_EPOCH)
        .ok()
        .and_then(|d| i64::try_from(d.as_micros()).ok());
    let lineage = Lineage {
        id: Ulid::from_datetime(now).to_string(),
        actor: Some(if forced { FORCE_ACTOR } else { REPAIR_ACTOR }.into()),
        merged_parent: None,
        created_at: options.now.or(micros).unwrap_or(0),
    };
    let branch = catalog.branch.as_deref();
    match publish(root, branch, None, &changes, &lineage).await {
        Ok(published) => Ok(CommitReport {
            branch: catalog.branch.clone(),
            graph_commit_id: lineage.id,
            graph_manifest_version: published.version,
        }),
        Err(PublishError::Graph(e)) => Err(e),
        Err(e) => Err(Error::Conflict(format!(
            "{e}; nothing was published on {}, run repair again",
            catalog.name()
        ))),
    }
}
