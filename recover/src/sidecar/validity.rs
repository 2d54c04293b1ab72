//! Whether a decoded sidecar is one that a release can have written (`docs/format/recovery-sidecars.md` 2.4). Pure.

use std::collections::BTreeSet;

use graph::model::names::{MAIN, logical_name, logical_name_error};
use graph::model::table::canonical_path;

use super::validity_kinds as kinds;
use super::{Effect, Payload, Sidecar, TablePin, WriterKind};

pub(super) type Valid = Result<(), String>;

/// Fail with words unless a rule holds.
pub(super) fn require(holds: bool, words: impl FnOnce() -> String) -> Valid {
    if holds { Ok(()) } else { Err(words()) }
}

/// `main` and null are one branch.
pub(super) fn fold(branch: Option<&str>) -> Option<&str> {
    branch.filter(|b| *b != MAIN)
}

/// Check a sidecar of the root whose normalized location is `root` (no trailing slash; no scheme for a local one).
pub fn check(sidecar: &Sidecar, root: &str) -> Valid {
    require(!sidecar.operation_id.is_empty(), || {
        "it has no operation id".into()
    })?;
    require(
        sidecar.started_at.bytes().all(|b| b.is_ascii_digit()) && !sidecar.started_at.is_empty(),
        || {
            format!(
                "started_at is '{}', expected decimal digits",
                sidecar.started_at
            )
        },
    )?;
    for pin in &sidecar.tables {
        check_pin(sidecar, pin, root)?;
    }
    unique("pin", sidecar.tables.iter().map(|p| p.identity))?;
    unique("pin alias", sidecar.tables.iter().map(|p| &p.table_key))?;
    check_protocol(sidecar)?;
    let Some(payload) = sidecar.payload() else {
        return require(!sidecar.tables.is_empty(), || {
            format!("a {} without tables", sidecar.writer_kind.as_str())
        });
    };
    check_phase(sidecar, payload)?;
    check_outcomes(sidecar, payload)?;
    match sidecar.writer_kind {
        WriterKind::Mutation | WriterKind::Load => kinds::mutation(sidecar, payload),
        WriterKind::BranchMerge => kinds::merge(sidecar, payload),
        WriterKind::SchemaApply => super::validity_schema::schema_apply(sidecar, payload),
        WriterKind::EnsureIndices => kinds::indices(sidecar, payload),
        WriterKind::Optimize => Ok(()),
    }
}

/// Identity, location and fork owner of one pin.
fn check_pin(sidecar: &Sidecar, pin: &TablePin, root: &str) -> Valid {
    let key = &pin.table_key;
    require(
        pin.identity.stable_table_id != 0 && pin.identity.table_incarnation_id != 0,
        || {
            format!(
                "table {key} has the identity {}, which has a zero part",
                pin.identity
            )
        },
    )?;
    let relative = canonical_path(key, pin.identity).map_err(|e| e.to_string())?;
    let expected = format!("{root}/{relative}");
    require(pin.table_path == expected, || {
        format!(
            "table {key} has table_path '{}', expected '{expected}': the sidecar was written for another root, or \
             this root was moved or copied",
            pin.table_path
        )
    })?;
    let Some(owner) = pin.table_fork_owner.as_deref() else {
        return Ok(());
    };
    let logical = logical_name(owner);
    require(logical_name_error(logical).is_none(), || {
        format!("table {key} has the fork owner '{owner}', which is no branch name")
    })?;
    require(fold(sidecar.branch.as_deref()) == Some(logical), || {
        format!(
            "table {key} has the fork owner '{owner}', but the write is on branch '{}'",
            sidecar.branch_name()
        )
    })?;
    require(fold(pin.table_branch.as_deref()).is_some(), || {
        format!("table {key} has a fork owner and no table_branch")
    })?;
    let confirmed = sidecar
        .slot(pin.identity)
        .and_then(|s| s.confirmed.as_ref());
    require(
        confirmed.is_none_or(|c| c.version_metadata.table_fork_owner.as_deref() == Some(owner)),
        || format!("table {key}: the confirmed pin names another fork owner than '{owner}'"),
    )
}

/// Exactly the payload of the kind and version, and nothing historical in version 9.
fn check_protocol(sidecar: &Sidecar) -> Valid {
    let kind = sidecar.writer_kind;
    let version = sidecar.schema_version;
    let present: Vec<&str> = [
        ("protocol_v3", sidecar.protocol_v3.is_some()),
        ("protocol_v4", sidecar.protocol_v4.is_some()),
        ("protocol_v7", sidecar.protocol_v7.is_some()),
        ("protocol_v8", sidecar.protocol_v8.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, there)| there.then_some(name))
    .collect();
    let (name, since) = match kind {
        WriterKind::Mutation | WriterKind::Load => ("protocol_v3", 3),
        WriterKind::BranchMerge => ("protocol_v4", 4),
        WriterKind::SchemaApply => ("protocol_v7", 7),
        WriterKind::EnsureIndices => ("protocol_v8", 8),
        WriterKind::Optimize => ("", u32::MAX),
    };
    let wanted: &[&str] = if version >= since { &[name] } else { &[] };
    require(present == wanted, || {
        format!(
            "a {} of schema_version {version} carries the payloads {present:?}, expected {wanted:?}",
            kind.as_str()
        )
    })?;
    if version < super::MAX_SCHEMA_VERSION {
        return Ok(());
    }
    let historical = sidecar.merge_source_commit_id.is_some()
        || !sidecar.additional_registrations.is_empty()
        || !sidecar.tombstones.is_empty()
        || sidecar.schema_apply_manifest_published
        || sidecar.schema_apply_target_schema_ir_hash.is_some()
        || sidecar.ensure_indices_rollback_v6.is_some();
    require(!historical, || {
        "schema_version 9 with members of an earlier version".into()
    })
}

/// Armed forbids every confirmation, EffectsConfirmed requires them.
fn check_phase(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let authority = &payload.authority;
    require(
        !authority.schema_identity_domain.is_empty()
            && !authority.schema_ir_hash.is_empty()
            && authority.schema_identity_version != 0,
        || "the authority names no schema".into(),
    )?;
    let confirmed = payload.is_confirmed();
    let phase = if confirmed {
        "EffectsConfirmed"
    } else {
        "Armed"
    };
    let fits = |there: bool, what: &str, key: &str| {
        require(there == confirmed, || {
            let found = if there { "has a" } else { "lacks its" };
            format!("in phase {phase} table {key} {found} {what}")
        })
    };
    for pin in &sidecar.tables {
        fits(
            pin.confirmed_version.is_some(),
            "confirmed_version",
            &pin.table_key,
        )?;
    }
    for slot in &payload.intended_delta.table_updates {
        fits(slot.confirmed.is_some(), "confirmed pin", &slot.table_key)?;
    }
    for effect in &payload.effects {
        if let Some(there) = confirmation(effect) {
            fits(there, "confirmed effect", &effect.table_key)?;
        }
        let identifier = super::validity_kinds::identifier(effect);
        require(confirmed || identifier.is_none(), || {
            format!(
                "in phase {phase} table {} has a confirmed_branch_identifier",
                effect.table_key
            )
        })?;
    }
    Ok(())
}

/// Whether an effect is confirmed; `None` for one that has nothing but a branch identifier to confirm.
fn confirmation(effect: &Effect) -> Option<bool> {
    use super::EffectKind as K;
    match &effect.kind {
        Some(K::MultiCommitHead {
            confirmed_version, ..
        }) => Some(confirmed_version.is_some()),
        Some(K::RefOnlyFork { .. }) => None,
        _ => Some(effect.confirmed().is_some()),
    }
}

/// The rollback plan names a unique subset of the aliases.
fn check_outcomes(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let Some(outcomes) = &payload.rollback_audit_outcomes else {
        return Ok(());
    };
    let aliases: BTreeSet<&str> = sidecar
        .tables
        .iter()
        .map(|pin| sidecar.alias_before(pin))
        .collect();
    unique("rollback outcome", outcomes.iter().map(|o| &o.table_key))?;
    match outcomes
        .iter()
        .find(|o| !aliases.contains(o.table_key.as_str()))
    {
        Some(stray) => Err(format!(
            "the rollback plan names table {}, which is no table of the write",
            stray.table_key
        )),
        None => Ok(()),
    }
}

/// No value twice.
pub(super) fn unique<T: Ord + std::fmt::Debug>(
    what: &str,
    values: impl IntoIterator<Item = T>,
) -> Valid {
    let mut seen = BTreeSet::new();
    for value in values {
        if seen.contains(&value) {
            return Err(format!("two entries of one {what}: {value:?}"));
        }
        seen.insert(value);
    }
    Ok(())
}
