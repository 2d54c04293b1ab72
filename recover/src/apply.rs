//! The effects of a plan, one after the other. Each is idempotent: whatever a stopped run left, the next plan names
//! the rest.

use std::sync::Arc;

use futures::TryStreamExt as _;
use graph::store::{CommitOutcome, Root};
use graph::{Error, Result};
use lance::dataset::transaction::{Operation, Transaction};
use legacy::publish::{Change, PublishError, publish};

use crate::audit::{self, AuditRow};
use crate::listing;
use crate::observe::{pin_of, table_refs};
use crate::plan::{Pass, PinAt, Plan, PlannedChange, Publication, Step};
use crate::sidecar::Sidecar;

/// How applying a plan ended.
#[derive(Debug)]
pub enum Applied {
    /// Everything was done.
    Done,
    /// Something changed since the plan was made and nothing was done about it: plan again.
    Again(String),
}

/// Perform the steps of a plan for the sidecar stored as `file`.
pub async fn apply(pass: &Pass<'_>, file: &str, sidecar: &Sidecar, plan: &Plan) -> Result<Applied> {
    let root = pass.root;
    for step in &plan.steps {
        match step {
            Step::RemoveFork {
                location,
                branch,
                fork_version,
                proved,
                ..
            } => table_refs::remove(root, location, branch, *fork_version, *proved).await?,
            Step::WritePlan(outcomes) => {
                let mut planned = sidecar.clone();
                if let Some(payload) = planned.payload_mut() {
                    payload.rollback_audit_outcomes = Some(outcomes.clone());
                }
                listing::rewrite(root, file, &planned).await?;
            }
            Step::RemoveDataset { location, .. } => remove_dataset(root, location).await?,
            Step::Restore {
                table_key,
                location,
                table_branch,
                head,
                version,
            } => {
                let place = (location.as_str(), table_branch.as_deref());
                if let Some(why) = restore(root, table_key, place, *head, *version).await? {
                    return Ok(Applied::Again(why));
                }
            }
            Step::DiscardStaging {
                authority, target, ..
            } => crate::staging::discard(root, authority, target).await?,
            Step::Publish(publication) => {
                if let Some(why) = publish_now(root, publication).await? {
                    return Ok(Applied::Again(why));
                }
            }
            Step::PromoteStaging { target, .. } => crate::staging::promote(root, target).await?,
            Step::Audit {
                commit_id,
                kind,
                outcomes,
            } => {
                let row = AuditRow {
                    graph_commit_id: commit_id.clone(),
                    recovery_kind: kind.as_str().into(),
                    recovery_for_actor: sidecar.actor_id.clone(),
                    operation_id: sidecar.operation_id.clone(),
                    sidecar_writer_kind: sidecar.writer_kind.as_str().into(),
                    per_table_outcomes_json: serde_json::to_string(outcomes)
                        .map_err(|e| Error::internal(format!("cannot encode JSON: {e}")))?,
                    created_at: pass.now,
                };
                audit::append(root, &row).await?;
            }
            Step::RemoveSidecar => root.delete(&listing::sidecar_key(file)).await?,
        }
    }
    Ok(Applied::Done)
}

/// Restore `version` as exactly `head + 1`. A newer version than `head` means that the proof no longer holds: the
/// reason is handed back and nothing was done.
async fn restore(
    root: &Root,
    table_key: &str,
    (location, branch): (&str, Option<&str>),
    head: u64,
    version: u64,
) -> Result<Option<String>> {
    let base = root.open_dataset(location, branch, Some(head)).await?;
    let transaction = Transaction::new(head, Operation::Restore { version }, None);
    match root.commit_exact(location, base, transaction).await {
        CommitOutcome::Landed(_) => Ok(None),
        CommitOutcome::Lost(e) => Ok(Some(format!(
            "table {table_key} was written while it was to be restored: {e}"
        ))),
        CommitOutcome::Unknown(e) => Err(e),
    }
}

async fn publish_now(root: &Root, publication: &Publication) -> Result<Option<String>> {
    let mut changes = Vec::new();
    for change in &publication.changes {
        changes.push(match change {
            PlannedChange::Recorded(change) => change.clone(),
            PlannedChange::Read(pin) => read(root, pin).await?,
        });
    }
    let branch = publication.branch.as_deref();
    let precondition = publication.precondition.as_ref();
    match publish(root, branch, precondition, &changes, &publication.lineage).await {
        Ok(_) => Ok(None),
        Err(PublishError::Graph(e)) => Err(e),
        Err(PublishError::Contended(n)) => {
            Err(Error::Conflict(PublishError::Contended(n).to_string()))
        }
        Err(PublishError::Invalid(why)) => Err(Error::refused(why)),
        Err(changed) => Ok(Some(changed.to_string())),
    }
}

async fn read(root: &Root, pin: &PinAt) -> Result<Change> {
    let dataset = root
        .open_dataset(
            &pin.location,
            pin.table_branch.as_deref(),
            Some(pin.version),
        )
        .await?;
    Ok(Change::Update {
        identity: pin.identity,
        table_key: pin.table_key.clone(),
        expected_version: pin.expected_version,
        pin: pin_of(root, Arc::clone(&dataset), pin.owner.clone()).await?,
    })
}

/// Remove the objects of a dataset that no catalog row names; its versions last, since they are what makes it one.
async fn remove_dataset(root: &Root, location: &str) -> Result<()> {
    let keys: Vec<(String, u64)> = root.list(location)?.try_collect().await?;
    let mut keys: Vec<String> = keys.into_iter().map(|(key, _)| key).collect();
    keys.sort_by_key(|key| (key.contains("/_versions/"), key.clone()));
    for key in keys {
        root.delete(&key).await?;
    }
    Ok(())
}
