//! Roll-back (`docs/format/recovery-sidecars.md` 9).

use graph::{Error, Result};
use legacy::publish::CatalogRows;

use super::{
    Decision, PinAt, Plan, PlannedChange, Publication, Purpose, Read, Step, close, forks, minted,
    recovery_lineage,
};
use crate::audit::RecoveryKind;
use crate::judge::{Class, Table};
use crate::observe::ownership::Ownership;
use crate::sidecar::{Outcome, Sidecar, TablePin, WriterKind};

pub(super) async fn plan(read: &Read<'_>, why: &str) -> Result<Plan> {
    let sidecar = read.sidecar;
    let mut steps = forks::steps(read).await?;
    let owned: Vec<(&TablePin, &Table)> = sidecar
        .tables
        .iter()
        .zip(&read.tables)
        .filter(|(_, t)| is_taken_back(sidecar, t))
        .collect();
    let outcomes = planned_outcomes(sidecar, &owned);
    if let Some(payload) = sidecar.payload()
        && payload.rollback_audit_outcomes.is_none()
    {
        steps.push(Step::WritePlan(outcomes.clone()));
    }
    let mut changes = Vec::new();
    for (pin, table) in &owned {
        if table.is_new_dataset || is_owned_index_fork(sidecar, table) {
            continue;
        }
        let compensated = is_compensated(sidecar, table);
        if !compensated {
            steps.push(Step::Restore {
                table_key: table.table_key.clone(),
                location: table.location.clone(),
                table_branch: table.table_branch.clone(),
                head: table.head_version,
                version: table.pinned_version,
            });
        }
        changes.push(PlannedChange::Read(PinAt {
            identity: pin.identity,
            table_key: sidecar.alias_before(pin).to_string(),
            location: table.location.clone(),
            table_branch: table.table_branch.clone(),
            owner: pin.table_fork_owner.clone(),
            expected_version: table.pinned_version,
            version: table.head_version.saturating_add(u64::from(!compensated)),
        }));
    }
    steps.extend(removals(read).await?);
    if sidecar.writer_kind == WriterKind::SchemaApply {
        steps.extend(discard_staging(read)?);
    }
    let (id, created_at) = match sidecar.payload() {
        Some(payload) => {
            let started = sidecar.started_micros().ok_or_else(|| {
                Error::refused(format!("started_at '{}' is no time", sidecar.started_at))
            })?;
            (payload.rollback_graph_commit_id.clone(), started)
        }
        None => (minted(&sidecar.operation_id, Purpose::Back), read.pass.now),
    };
    steps.push(Step::Publish(Publication {
        branch: sidecar.logical().map(str::to_string),
        precondition: None,
        changes,
        lineage: recovery_lineage(id.clone(), created_at),
    }));
    steps.extend(close(read, &id, RecoveryKind::RolledBack, outcomes));
    Ok(Plan::of(Decision::RollBack, why, steps))
}

/// Whether something of the write is in the table and is to be taken back.
fn is_taken_back(sidecar: &Sidecar, table: &Table) -> bool {
    if matches!(table.class, Class::NoMovement | Class::InvariantViolation) {
        return false;
    }
    match sidecar.payload() {
        Some(_) => table.ownership.is_at_head(),
        // Without planned transactions whatever moved is the write's.
        None => true,
    }
}

fn is_compensated(sidecar: &Sidecar, table: &Table) -> bool {
    match sidecar.payload() {
        Some(_) => table.ownership == Ownership::OwnCompensatedAtHead,
        None => table.is_restored,
    }
}

/// An index build in a ref of its own making: the ref goes, nothing is restored.
fn is_owned_index_fork(sidecar: &Sidecar, table: &Table) -> bool {
    sidecar.writer_kind == WriterKind::EnsureIndices && table.is_first_touch
}

/// The plan that was recorded, or what is taken back now.
fn planned_outcomes(sidecar: &Sidecar, owned: &[(&TablePin, &Table)]) -> Vec<Outcome> {
    let recorded = sidecar
        .payload()
        .and_then(|p| p.rollback_audit_outcomes.clone());
    if let Some(recorded) = recorded {
        return recorded;
    }
    let outcome = |(pin, table): &(&TablePin, &Table)| Outcome {
        table_key: sidecar.alias_before(pin).to_string(),
        // A restore that an earlier run made is not what the write left.
        from_version: table
            .head_version
            .saturating_sub(u64::from(sidecar.payload().is_none() && table.is_restored)),
        to_version: table.pinned_version,
    };
    owned.iter().map(outcome).collect()
}

/// The same, read back from a published rollback: each table that the commit changed.
pub(super) fn outcomes_of(
    sidecar: &Sidecar,
    at: &CatalogRows,
    before: &CatalogRows,
) -> Vec<Outcome> {
    let mut out = Vec::new();
    for pin in &sidecar.tables {
        let (now, then) = (at.live_pin(pin.identity), before.live_pin(pin.identity));
        if let (Some(now), Some(then)) = (now, then)
            && now.table_version != then.table_version
        {
            out.push(Outcome {
                table_key: pin.table_key.clone(),
                from_version: now.table_version.saturating_sub(1),
                to_version: then.table_version,
            });
        }
    }
    out
}

/// Datasets of tables that are not registered, and refs that hold nothing but the write's index (9.3).
async fn removals(read: &Read<'_>) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for table in &read.tables {
        match read.sidecar.writer_kind {
            WriterKind::SchemaApply if table.is_new_dataset => {
                steps.extend(new_dataset(read, table)?);
            }
            // Releases at stamps 8 and 9 leave the ref for their cleanup.
            WriterKind::EnsureIndices
                if is_owned_index_fork(read.sidecar, table)
                    && table.ownership == Ownership::OwnAtHead
                    && read.catalog.stamp.has_data_clock() =>
            {
                if forks::is_claimed(read, table) {
                    return Err(Error::refused(format!(
                        "another sidecar names the ref of table {}",
                        table.table_key
                    )));
                }
                steps.extend(forks::step(read, table, Some(table.head_version)).await?);
            }
            _ => {}
        }
    }
    Ok(steps)
}

fn new_dataset(read: &Read<'_>, table: &Table) -> Result<Option<Step>> {
    if table.is_registered {
        return Err(Error::refused(format!(
            "table {} is registered now, so its dataset is not removed",
            table.table_key
        )));
    }
    if forks::is_claimed(read, table) {
        return Err(Error::refused(format!(
            "another sidecar names the dataset of table {}",
            table.table_key
        )));
    }
    let remove = Step::RemoveDataset {
        table_key: table.table_key.clone(),
        location: table.location.clone(),
    };
    match (table.exists, table.ownership) {
        (false, _) => Ok(Some(remove)),
        (true, Ownership::OwnAtHead) if table.head_version == 1 => Ok(Some(remove)),
        (true, Ownership::OwnAtHead) => Err(Error::refused(format!(
            "the new dataset of table {} is at version {}, expected 1",
            table.table_key, table.head_version
        ))),
        // A foreign dataset is neither adopted nor removed.
        (true, _) => Ok(None),
    }
}

/// Remove the staged schema.
pub(super) fn discard_staging(read: &Read<'_>) -> Result<Option<Step>> {
    let payload = read.sidecar.payload();
    let (Some(payload), Some(target)) = (
        payload,
        payload.and_then(|p| p.target_schema_ir_hash.clone()),
    ) else {
        return Err(Error::refused("the sidecar names no target schema"));
    };
    let authority = payload.authority.schema_ir_hash.clone();
    read.schema
        .check_discard(&authority, &target)
        .map_err(Error::refused)?;
    let objects = read.schema.staged_names();
    Ok((!objects.is_empty()).then_some(Step::DiscardStaging {
        objects,
        authority,
        target,
    }))
}
