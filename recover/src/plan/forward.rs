//! Roll-forward (`docs/format/recovery-sidecars.md` 8).

use graph::model::Pin;
use graph::{Error, Result};
use legacy::publish::{Change, Lineage, Precondition};

use super::{
    Decision, PinAt, Plan, PlannedChange, Publication, Purpose, Read, Step, close, minted,
    recovery_lineage,
};
use crate::audit::RecoveryKind;
use crate::sidecar::{Outcome, Payload, WriterKind};

pub(super) fn plan(read: &Read<'_>) -> Result<Plan> {
    let sidecar = read.sidecar;
    let mut steps = Vec::new();
    let (publication, outcomes) = match sidecar.payload() {
        Some(payload) => (recorded(read, payload)?, recorded_outcomes(read, payload)),
        None => observed(read),
    };
    let id = publication.lineage.id.clone();
    steps.push(Step::Publish(publication));
    if sidecar.writer_kind == WriterKind::SchemaApply {
        steps.extend(promote_staging(read)?);
    }
    steps.extend(close(read, &id, RecoveryKind::RolledForward, outcomes));
    let reason = "every table is at what the write made, and the branch is as the write found it";
    let reason = match sidecar.payload() {
        Some(_) => reason,
        None => "every table moved from the expected version",
    };
    Ok(Plan::of(Decision::RollForward, reason, steps))
}

/// The publish the write recorded, under the exact state it was decided on.
fn recorded(read: &Read<'_>, payload: &Payload) -> Result<Publication> {
    let delta = &payload.intended_delta;
    let mut changes = Vec::new();
    for r in &delta.registrations {
        changes.push(Change::Register {
            identity: r.identity,
            table_key: r.table_key.clone(),
        });
    }
    for r in &delta.renames {
        changes.push(Change::Rename {
            identity: r.identity,
            expected_key: r.expected_table_key.clone(),
            expected_version: r.expected_version,
            table_key: r.table_key.clone(),
        });
    }
    for slot in &delta.table_updates {
        let confirmed = slot.confirmed.as_ref().ok_or_else(|| {
            Error::refused(format!("table {} has no confirmed pin", slot.table_key))
        })?;
        changes.push(Change::Update {
            identity: slot.identity,
            table_key: slot.table_key.clone(),
            expected_version: slot.expected_version,
            pin: Pin {
                table_version: confirmed.table_version,
                table_branch: confirmed.table_branch.clone(),
                row_count: confirmed.row_count,
                metadata: confirmed.version_metadata.clone(),
                manifest_version: 0,
            },
        });
    }
    for t in &delta.tombstones {
        changes.push(Change::Tombstone {
            identity: t.identity,
            table_key: t.table_key.clone(),
            version: t.tombstone_version,
        });
    }
    let lineage = &payload.lineage;
    Ok(Publication {
        branch: read.sidecar.logical().map(str::to_string),
        precondition: Some(Precondition {
            identifier: payload.authority.branch_identifier.clone(),
            graph_head: payload.authority.graph_head.clone(),
        }),
        changes: changes.into_iter().map(PlannedChange::Recorded).collect(),
        lineage: Lineage {
            id: lineage.graph_commit_id.clone(),
            actor: lineage.actor_id.clone(),
            merged_parent: lineage.merged_parent_commit_id.clone(),
            created_at: lineage.created_at,
        },
    })
}

fn recorded_outcomes(read: &Read<'_>, payload: &Payload) -> Vec<Outcome> {
    let published = |pin: &crate::sidecar::TablePin| {
        let slots = &payload.intended_delta.table_updates;
        let slot = slots.iter().find(|s| s.identity == pin.identity);
        slot.and_then(|s| s.confirmed.as_ref())
            .map_or(pin.expected_version, |c| c.table_version)
    };
    let outcome = |pin: &crate::sidecar::TablePin| Outcome {
        table_key: pin.table_key.clone(),
        from_version: pin.expected_version,
        to_version: published(pin),
    };
    read.sidecar.tables.iter().map(outcome).collect()
}

/// Optimize and historical files: each table at its newest version.
fn observed(read: &Read<'_>) -> (Publication, Vec<Outcome>) {
    let pairs = || read.sidecar.tables.iter().zip(&read.tables);
    let changes = pairs().map(|(pin, table)| {
        PlannedChange::Read(PinAt {
            identity: pin.identity,
            table_key: pin.table_key.clone(),
            location: table.location.clone(),
            table_branch: table.table_branch.clone(),
            owner: pin.table_fork_owner.clone(),
            expected_version: pin.expected_version,
            version: table.head_version,
        })
    });
    let outcomes = pairs().map(|(pin, table)| Outcome {
        table_key: pin.table_key.clone(),
        from_version: pin.expected_version,
        to_version: table.head_version,
    });
    let id = minted(&read.sidecar.operation_id, Purpose::Forward);
    let publication = Publication {
        branch: read.sidecar.logical().map(str::to_string),
        precondition: None,
        changes: changes.collect(),
        lineage: recovery_lineage(id, read.pass.now),
    };
    (publication, outcomes.collect())
}

/// Make the staged schema live; nothing when it already is.
pub(super) fn promote_staging(read: &Read<'_>) -> Result<Option<Step>> {
    let payload = read.sidecar.payload();
    let target = payload
        .and_then(|p| p.target_schema_ir_hash.clone())
        .ok_or_else(|| Error::refused("the sidecar names no target schema"))?;
    read.schema.check_target(&target).map_err(Error::refused)?;
    let objects = read.schema.staged_names();
    Ok((!objects.is_empty()).then_some(Step::PromoteStaging { objects, target }))
}
