//! Whether the write, or its rollback, is already published (`docs/format/recovery-sidecars.md` 7.1). Pure.

use legacy::LegacyCommit;
use legacy::publish::CatalogRows;

use crate::observe::ownership::{Ownership, of_transaction};
use crate::observe::{Head, TableReading};
use crate::sidecar::{Outcome, Payload, Sidecar, Slot, TransactionId};

/// What is visible on the branch of a sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visible<'a> {
    /// Neither.
    Nothing,
    /// The write itself.
    Original(&'a LegacyCommit),
    /// Its rollback.
    RolledBack(&'a LegacyCommit),
}

/// Look for both commit ids.
pub fn find<'a>(payload: &Payload, rows: &'a CatalogRows) -> Result<Visible<'a>, String> {
    let original = rows.commit(&payload.lineage.graph_commit_id);
    let back = rows.commit(&payload.rollback_graph_commit_id);
    match (original, back) {
        (Some(_), Some(_)) => Err(format!(
            "both the write ({}) and its rollback ({}) are published",
            payload.lineage.graph_commit_id, payload.rollback_graph_commit_id
        )),
        (Some(commit), None) => Ok(Visible::Original(commit)),
        (None, Some(commit)) => Ok(Visible::RolledBack(commit)),
        (None, None) => Ok(Visible::Nothing),
    }
}

/// Check that the visible commit is the write's: its lineage, and in the rows at its version every slot. `before` are
/// the rows one version earlier, where that version is retained. The outcomes are those of the audit row.
pub fn check_original(
    sidecar: &Sidecar,
    payload: &Payload,
    commit: &LegacyCommit,
    at: &CatalogRows,
    before: Option<&CatalogRows>,
    readings: &[TableReading],
) -> Result<Vec<Outcome>, String> {
    let intent = &payload.lineage;
    let differs = |what: &str, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
        Err(format!(
            "commit {} is published with the {what} {found:?}, the sidecar says {expected:?}",
            commit.id
        ))
    };
    if commit.branch.as_deref() != intent.branch.as_deref().filter(|b| *b != "main") {
        return differs("branch", &commit.branch, &intent.branch);
    }
    if commit.merged_parent != intent.merged_parent_commit_id {
        return differs(
            "merged parent",
            &commit.merged_parent,
            &intent.merged_parent_commit_id,
        );
    }
    if commit.actor != intent.actor_id {
        return differs("actor", &commit.actor, &intent.actor_id);
    }
    if commit.created_at != intent.created_at {
        return differs("time", &commit.created_at, &intent.created_at);
    }
    let head = &payload.authority.graph_head;
    if head.is_some() && commit.parent != *head {
        return differs("parent", &commit.parent, head);
    }
    for slot in &payload.intended_delta.table_updates {
        match &slot.confirmed {
            Some(_) => check_confirmed(slot, at)?,
            None => check_planned(sidecar, slot, at, readings)?,
        }
    }
    check_schema_changes(payload, at)?;
    if !payload.is_confirmed()
        && let Some(before) = before
    {
        check_nothing_else(payload, at, before)?;
    }
    Ok(outcomes(sidecar, at))
}

/// What a roll-forward says of each pinned table.
pub fn outcomes(sidecar: &Sidecar, at: &CatalogRows) -> Vec<Outcome> {
    let outcome = |pin: &crate::sidecar::TablePin| Outcome {
        table_key: pin.table_key.clone(),
        from_version: pin.expected_version,
        to_version: at
            .live_pin(pin.identity)
            .map_or(pin.expected_version, |p| p.table_version),
    };
    sidecar.tables.iter().map(outcome).collect()
}

/// A confirmed slot is published exactly.
fn check_confirmed(slot: &Slot, at: &CatalogRows) -> Result<(), String> {
    let key = &slot.table_key;
    let pin = at
        .live_pin(slot.identity)
        .ok_or_else(|| format!("the published commit shows no version of table {key}"))?;
    let alias = at.registrations.get(&slot.identity).map(|r| &r.table_key);
    if alias != Some(key) {
        return Err(format!("the published commit calls table {key} {alias:?}"));
    }
    let Some(confirmed) = &slot.confirmed else {
        return Ok(());
    };
    let same = pin.table_version == confirmed.table_version
        && pin.table_branch == confirmed.table_branch
        && pin.row_count == confirmed.row_count
        && pin.metadata == confirmed.version_metadata;
    if same {
        return Ok(());
    }
    Err(format!(
        "the published commit shows table {key} at version {} ({} rows) of {}, confirmed were version {} ({} rows) of {}",
        pin.table_version,
        pin.row_count,
        pin.table_branch.as_deref().unwrap_or("main"),
        confirmed.table_version,
        confirmed.row_count,
        confirmed.table_branch.as_deref().unwrap_or("main"),
    ))
}

/// The confirmation was lost: the published version of each table must be the planned transaction, or the table is
/// unchanged and the planned transaction never landed in it.
fn check_planned(
    sidecar: &Sidecar,
    slot: &Slot,
    at: &CatalogRows,
    readings: &[TableReading],
) -> Result<(), String> {
    let key = &slot.table_key;
    let pin = at
        .live_pin(slot.identity)
        .ok_or_else(|| format!("the published commit shows no version of table {key}"))?;
    let alias = at.registrations.get(&slot.identity).map(|r| &r.table_key);
    if alias != Some(key) {
        return Err(format!("the published commit calls table {key} {alias:?}"));
    }
    let Some((n, planned)) = sidecar
        .tables
        .iter()
        .position(|t| t.identity == slot.identity)
        .zip(sidecar.effect(slot.identity))
    else {
        // A pointer of a merge: what it was to name is only known from the confirmation.
        return match pin.table_branch == slot.table_branch {
            true => Ok(()),
            false => Err(format!(
                "the published commit shows table {key} on another ref"
            )),
        };
    };
    let Some(reading) = readings.get(n) else {
        return Err(format!("table {key} was not read"));
    };
    let unchanged = pin.table_version == slot.expected_version;
    let chain: Vec<&TransactionId> = planned
        .planned()
        .into_iter()
        .chain(planned.chain().unwrap_or_default())
        .collect();
    if chain.is_empty() {
        let same = pin.table_version == sidecar.fork_version(&sidecar.tables[n])
            && pin.table_branch == slot.table_branch;
        return match same {
            true => Ok(()),
            false => Err(format!(
                "the published commit shows another version of table {key} than its fork"
            )),
        };
    }
    if unchanged {
        let head = match reading.head {
            Head::At(version) => version,
            Head::NoRef | Head::NoDataset => slot.expected_version,
        };
        let landed = chain.iter().any(|t| {
            of_transaction(
                &t.uuid,
                head,
                slot.expected_version + 1,
                slot.expected_version,
                &reading.entries,
            ) != Ownership::None
        });
        return match landed {
            true => Err(format!(
                "the published commit leaves table {key} at version {}, but the planned transaction is in it or cannot \
                 be ruled out",
                pin.table_version
            )),
            false => Ok(()),
        };
    }
    if pin.table_branch != slot.table_branch {
        return Err(format!(
            "the published commit shows table {key} on another ref"
        ));
    }
    let mut version = slot.expected_version;
    for planned in &chain {
        version += 1;
        let found = reading
            .entries
            .iter()
            .find(|e| e.version == version)
            .and_then(|e| e.transaction.as_ref());
        if found.is_none_or(|t| !t.is(planned)) {
            return Err(format!(
                "version {version} of table {key} is not the planned transaction {}-{}",
                planned.read_version, planned.uuid
            ));
        }
    }
    let tail = reading
        .entries
        .iter()
        .find(|e| e.version == version + 1)
        .and_then(|e| e.transaction.as_ref());
    let indexed = planned.chain().is_some()
        && pin.table_version == version + 1
        && tail.is_some_and(|t| t.operation == "CreateIndex");
    match pin.table_version == version || indexed {
        true => Ok(()),
        false => Err(format!(
            "the published commit shows table {key} at version {}, the write made version {version}",
            pin.table_version
        )),
    }
}

/// Registrations, renames and drops are there.
fn check_schema_changes(payload: &Payload, at: &CatalogRows) -> Result<(), String> {
    let delta = &payload.intended_delta;
    let named = delta
        .registrations
        .iter()
        .map(|r| (r.identity, &r.table_key))
        .chain(delta.renames.iter().map(|r| (r.identity, &r.table_key)));
    for (identity, key) in named {
        let held = at.registrations.get(&identity).map(|r| &r.table_key);
        if held != Some(key) {
            return Err(format!(
                "the published commit does not register table {key} ({identity})"
            ));
        }
    }
    match delta
        .tombstones
        .iter()
        .find(|t| at.live_pin(t.identity).is_some())
    {
        Some(t) => Err(format!(
            "the published commit still shows table {}",
            t.table_key
        )),
        None => Ok(()),
    }
}

/// No table outside of the write changed in its commit.
fn check_nothing_else(
    payload: &Payload,
    at: &CatalogRows,
    before: &CatalogRows,
) -> Result<(), String> {
    let delta = &payload.intended_delta;
    let planned = |identity| {
        delta.table_updates.iter().any(|s| s.identity == identity)
            || delta.tombstones.iter().any(|t| t.identity == identity)
    };
    let key = |r: &legacy::Registration| (r.identity, r.table_key.clone());
    let changed = at
        .registrations
        .values()
        .chain(before.registrations.values())
        .map(key)
        .find(|(identity, _)| {
            let (now, then) = (at.live_pin(*identity), before.live_pin(*identity));
            let differs = now.map(|p| (p.table_version, &p.table_branch))
                != then.map(|p| (p.table_version, &p.table_branch));
            differs && !planned(*identity)
        });
    match changed {
        Some((_, key)) => Err(format!(
            "the published commit changes table {key}, which the write does not name"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
