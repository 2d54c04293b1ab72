//! The rules of each kind (`docs/format/recovery-sidecars.md` 2.4). Pure.

use std::collections::BTreeMap;

use graph::model::TableIdentity;

use super::validity::{Valid, fold, require, unique};
use super::{BranchId, Effect, EffectKind, Payload, Sidecar, Slot, TablePin, TransactionId};

/// The longest chain of a merge.
const MAX_CHAIN: usize = 1024;

/// The branch identifier an effect confirms.
pub(super) fn identifier(effect: &Effect) -> Option<&BranchId> {
    match &effect.kind {
        Some(
            EffectKind::MultiCommitHead {
                confirmed_branch_identifier,
                ..
            }
            | EffectKind::RefOnlyFork {
                confirmed_branch_identifier,
                ..
            },
        ) => confirmed_branch_identifier.as_ref(),
        Some(_) => None,
        None => effect.confirmed_branch_identifier.as_ref(),
    }
}

/// Pins, effects and slots of the same tables.
pub(super) struct Matched<'a> {
    pub(super) pin: &'a TablePin,
    pub(super) effect: &'a Effect,
    pub(super) slot: &'a Slot,
}

fn matched<'a>(sidecar: &'a Sidecar, payload: &'a Payload) -> Result<Vec<Matched<'a>>, String> {
    let effects: BTreeMap<TableIdentity, &Effect> =
        payload.effects.iter().map(|e| (e.identity, e)).collect();
    let slots: BTreeMap<TableIdentity, &Slot> = payload
        .intended_delta
        .table_updates
        .iter()
        .map(|s| (s.identity, s))
        .collect();
    unique("effect", payload.effects.iter().map(|e| e.identity))?;
    let updates = &payload.intended_delta.table_updates;
    unique("slot", updates.iter().map(|s| s.identity))?;
    require(effects.len() == sidecar.tables.len(), || {
        "pins and effects name different tables".into()
    })?;
    let mut out = Vec::new();
    for pin in &sidecar.tables {
        let (Some(effect), Some(slot)) = (effects.get(&pin.identity), slots.get(&pin.identity))
        else {
            return Err(format!(
                "table {} ({}) lacks its effect or its slot",
                pin.table_key, pin.identity
            ));
        };
        require(
            effect.table_key == pin.table_key && slot.table_key == pin.table_key,
            || {
                format!(
                    "table {} has another alias in its effect or slot",
                    pin.table_key
                )
            },
        )?;
        require(slot.expected_version == pin.expected_version, || {
            format!("table {} has two expected versions", pin.table_key)
        })?;
        require(
            fold(slot.table_branch.as_deref()) == fold(pin.table_branch.as_deref()),
            || format!("table {} has two branches", pin.table_key),
        )?;
        out.push(Matched { pin, effect, slot });
    }
    Ok(out)
}

pub(super) fn one_to_one<'a>(
    sidecar: &'a Sidecar,
    payload: &'a Payload,
) -> Result<Vec<Matched<'a>>, String> {
    let all = matched(sidecar, payload)?;
    require(
        payload.intended_delta.table_updates.len() == all.len(),
        || "a slot names a table that is not pinned".into(),
    )?;
    Ok(all)
}

/// The branch and actor of the envelope are those of the commit; both commit ids are there and differ.
pub(super) fn lineage(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let l = &payload.lineage;
    require(
        fold(sidecar.branch.as_deref()) == fold(l.branch.as_deref()),
        || "the commit is of another branch than the write".into(),
    )?;
    require(sidecar.actor_id == l.actor_id, || {
        "the commit is of another actor than the write".into()
    })?;
    require(
        !l.graph_commit_id.is_empty()
            && !payload.rollback_graph_commit_id.is_empty()
            && l.graph_commit_id != payload.rollback_graph_commit_id,
        || "the commit ids of the write and of its rollback are missing or equal".into(),
    )
}

fn no_schema_changes(payload: &Payload) -> Valid {
    let d = &payload.intended_delta;
    require(
        d.registrations.is_empty() && d.renames.is_empty() && d.tombstones.is_empty(),
        || "only a SchemaApply registers, renames or drops".into(),
    )
}

pub(super) fn uuids<'a>(all: impl IntoIterator<Item = &'a TransactionId>) -> Valid {
    let all: Vec<&str> = all.into_iter().map(|t| t.uuid.as_str()).collect();
    require(all.iter().all(|u| !u.is_empty()), || {
        "a transaction without a uuid".into()
    })?;
    unique("transaction uuid", all)
}

/// What a confirmed one-transaction effect says: its transaction, and one version in pin and slot.
pub(super) fn confirmed_alike(m: &Matched<'_>, planned: &TransactionId) -> Valid {
    let key = &m.pin.table_key;
    require(m.effect.confirmed().is_none_or(|c| c == planned), || {
        format!("table {key} confirms another transaction than it planned")
    })?;
    let Some(confirmed) = &m.slot.confirmed else {
        return Ok(());
    };
    require(
        m.pin.confirmed_version == Some(confirmed.table_version),
        || format!("table {key} has two confirmed versions"),
    )?;
    require(
        fold(confirmed.table_branch.as_deref()) == fold(m.pin.table_branch.as_deref()),
        || format!("table {key} is confirmed on another branch"),
    )
}

pub(super) fn planned<'a>(m: &Matched<'a>) -> Result<&'a TransactionId, String> {
    m.effect
        .planned()
        .ok_or_else(|| format!("table {} plans no transaction", m.pin.table_key))
}

/// Mutation and Load.
pub(super) fn mutation(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let all = one_to_one(sidecar, payload)?;
    require(!all.is_empty(), || "it has no tables".into())?;
    for m in &all {
        let planned = planned(m)?;
        require(m.effect.kind.is_none(), || {
            format!("table {} has an effect of another kind", m.pin.table_key)
        })?;
        require(planned.read_version == m.pin.expected_version, || {
            format!(
                "table {} plans to read version {}, but expects {}",
                m.pin.table_key, planned.read_version, m.pin.expected_version
            )
        })?;
        confirmed_alike(m, planned)?;
    }
    uuids(payload.effects.iter().filter_map(Effect::planned))?;
    lineage(sidecar, payload)?;
    require(payload.lineage.merged_parent_commit_id.is_none(), || {
        "a merged parent outside of a merge".into()
    })?;
    no_schema_changes(payload)
}

/// BranchMerge.
pub(super) fn merge(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let all = matched(sidecar, payload)?;
    require(!all.is_empty(), || "it has no tables".into())?;
    lineage(sidecar, payload)?;
    require(payload.lineage.merged_parent_commit_id.is_some(), || {
        "a merge without its merged parent".into()
    })?;
    no_schema_changes(payload)?;
    let slots = &payload.intended_delta.table_updates;
    unique("slot alias", slots.iter().map(|s| &s.table_key))?;
    for slot in slots {
        let branch = slot
            .confirmed
            .as_ref()
            .map(|c| fold(c.table_branch.as_deref()));
        require(
            branch.is_none_or(|b| b == fold(slot.table_branch.as_deref())),
            || format!("table {} is confirmed on another branch", slot.table_key),
        )?;
    }
    uuids(payload.effects.iter().filter_map(Effect::chain).flatten())?;
    let confirmed = payload.is_confirmed();
    for m in &all {
        let key = &m.pin.table_key;
        let on_branch = fold(m.pin.table_branch.as_deref()).is_some();
        match &m.effect.kind {
            Some(EffectKind::MultiCommitHead {
                source_fork_version,
                planned_transactions: chain,
                confirmed_version,
                confirmed_branch_identifier,
            }) => {
                require(source_fork_version.is_none() || on_branch, || {
                    format!("table {key} is forked on main")
                })?;
                check_chain(m, chain, *source_fork_version)?;
                if !confirmed {
                    continue;
                }
                let last = chain.last().map_or(0, |t| t.read_version.saturating_add(1));
                let slot = m.slot.confirmed.as_ref().map(|c| c.table_version);
                require(
                    confirmed_version.is_some()
                        && *confirmed_version == m.pin.confirmed_version
                        && *confirmed_version == slot
                        && confirmed_version.is_some_and(|v| v >= last),
                    || format!("table {key} has contradicting confirmed versions"),
                )?;
                require(
                    confirmed_branch_identifier.is_some() == source_fork_version.is_some(),
                    || format!("table {key}: a branch is confirmed exactly when it is made"),
                )?;
            }
            Some(EffectKind::RefOnlyFork {
                source_version,
                confirmed_branch_identifier,
            }) => {
                require(on_branch, || format!("table {key} is forked on main"))?;
                let slot = m.slot.confirmed.as_ref().map(|c| c.table_version);
                let versions = [m.pin.confirmed_version, slot];
                require(
                    !confirmed
                        || (confirmed_branch_identifier.is_some()
                            && versions == [Some(*source_version); 2]),
                    || format!("table {key}: its fork is confirmed at another version"),
                )?;
            }
            _ => return Err(format!("table {key} has an effect of another kind")),
        }
    }
    Ok(())
}

fn check_chain(m: &Matched<'_>, chain: &[TransactionId], fork: Option<u64>) -> Valid {
    let (key, expected) = (&m.pin.table_key, m.pin.expected_version);
    require((1..=MAX_CHAIN).contains(&chain.len()), || {
        format!("table {key} has a chain of {} transactions", chain.len())
    })?;
    let contiguous = chain
        .iter()
        .zip(expected..)
        .all(|(t, read)| t.read_version == read);
    require(contiguous, || {
        format!("the chain of table {key} is not contiguous from version {expected}")
    })?;
    require(m.pin.post_commit_pin == expected.saturating_add(1), || {
        format!("table {key} has the wrong post_commit_pin")
    })?;
    require(fork.is_none_or(|v| v == expected), || {
        format!("table {key} forks at another version than it expects")
    })
}

/// EnsureIndices.
pub(super) fn indices(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let all = one_to_one(sidecar, payload)?;
    require(!all.is_empty(), || "it has no tables".into())?;
    lineage(sidecar, payload)?;
    require(payload.lineage.merged_parent_commit_id.is_none(), || {
        "a merged parent outside of a merge".into()
    })?;
    no_schema_changes(payload)?;
    uuids(payload.effects.iter().filter_map(Effect::planned))?;
    for m in &all {
        let (key, planned) = (&m.pin.table_key, planned(m)?);
        let next = m.pin.expected_version.saturating_add(1);
        require(m.effect.kind.is_none(), || {
            format!("table {key} has an effect of another kind")
        })?;
        require(m.pin.post_commit_pin == next, || {
            format!("table {key} does not plan version {next}")
        })?;
        if let Some(fork) = m.effect.source_fork_version {
            let branch = fold(m.pin.table_branch.as_deref());
            require(fork == m.pin.expected_version && branch.is_some(), || {
                format!("table {key} forks at another version than it expects, or on main")
            })?;
            // From stamp 8 on the table ref is named after its owner instead.
            let same = branch == fold(sidecar.branch.as_deref());
            require(same || m.pin.table_fork_owner.is_some(), || {
                format!("table {key} is forked for another branch")
            })?;
        }
        confirmed_alike(m, planned)?;
        require(m.pin.confirmed_version.is_none_or(|v| v == next), || {
            format!("table {key} is confirmed at another version than it planned")
        })?;
        require(
            !payload.is_confirmed()
                || m.effect.confirmed_branch_identifier.is_some()
                    == m.effect.source_fork_version.is_some(),
            || format!("table {key}: a branch is confirmed exactly when it is made"),
        )?;
    }
    Ok(())
}
