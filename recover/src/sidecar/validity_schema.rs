//! The rules of a SchemaApply (`docs/format/recovery-sidecars.md` 2.4). Pure.

use std::collections::BTreeMap;

use graph::model::TableIdentity;
use graph::model::table::canonical_path;

use super::validity::{Valid, require, unique};
use super::validity_kinds::{confirmed_alike, lineage, one_to_one, planned, uuids};
use super::{Effect, EffectKind, Payload, Sidecar};

/// SchemaApply.
pub(super) fn schema_apply(sidecar: &Sidecar, payload: &Payload) -> Valid {
    let all = one_to_one(sidecar, payload)?;
    lineage(sidecar, payload)?;
    let on_main = sidecar.branch.is_none()
        && payload.lineage.branch.is_none()
        && payload.lineage.merged_parent_commit_id.is_none()
        && sidecar.tables.iter().all(|p| p.table_branch.is_none());
    require(on_main, || "a SchemaApply outside of main".into())?;
    require(
        payload
            .target_schema_ir_hash
            .as_deref()
            .is_some_and(|h| !h.is_empty()),
        || "it names no target schema".into(),
    )?;
    uuids(payload.effects.iter().filter_map(Effect::planned))?;
    let d = &payload.intended_delta;
    let mut new = BTreeMap::new();
    for m in &all {
        let (key, planned) = (&m.pin.table_key, planned(m)?);
        let next = m.pin.expected_version.saturating_add(1);
        require(
            m.pin.post_commit_pin == next && planned.read_version == m.pin.expected_version,
            || format!("table {key} does not plan version {next}"),
        )?;
        let first = matches!(m.effect.kind, Some(EffectKind::FirstTouchDataset { .. }));
        require(first == (m.pin.expected_version == 0), || {
            format!("table {key} is new exactly when it expects version 0")
        })?;
        if first {
            new.insert(m.pin.identity, key.as_str());
        }
        confirmed_alike(m, planned)?;
        require(
            m.pin
                .confirmed_version
                .is_none_or(|v| v == m.pin.post_commit_pin),
            || format!("table {key} is confirmed at another version than it planned"),
        )?;
    }
    let registered: BTreeMap<_, _> = d
        .registrations
        .iter()
        .map(|r| (r.identity, r.table_key.as_str()))
        .collect();
    require(
        registered == new && d.registrations.len() == new.len(),
        || "the registrations are not the new tables".into(),
    )?;
    for r in &d.registrations {
        canonical(&r.table_key, r.identity, &r.table_path)?;
    }
    for r in &d.renames {
        require(
            r.expected_version != 0 && r.expected_table_key != r.table_key,
            || format!("the rename of {} changes nothing", r.expected_table_key),
        )?;
        canonical(&r.table_key, r.identity, &r.table_path)?;
        canonical(&r.expected_table_key, r.identity, &r.table_path)?;
        let slot = sidecar.slot(r.identity);
        require(
            slot.is_none_or(|s| {
                s.table_key == r.table_key && s.expected_version == r.expected_version
            }),
            || {
                format!(
                    "the rename of {} contradicts its slot",
                    r.expected_table_key
                )
            },
        )?;
    }
    let changed = d.registrations.iter().map(|r| r.identity);
    let changed = changed.chain(d.renames.iter().map(|r| r.identity));
    let changed = changed.chain(d.tombstones.iter().map(|t| t.identity));
    unique("table registered, renamed or dropped", changed)?;
    let bound = d.registrations.iter().map(|r| &r.table_key);
    unique(
        "new alias",
        bound.chain(d.renames.iter().map(|r| &r.table_key)),
    )?;
    let renames = payload
        .effects
        .iter()
        .filter(|e| matches!(e.kind, Some(EffectKind::SystemColumnRename { .. })));
    let respelled = renames.count();
    match &payload.system_column_upgrade {
        None => require(respelled == 0, || {
            "a column respelling without its stamps".into()
        }),
        Some(stamps) => require(
            respelled == payload.effects.len()
                && d.registrations.is_empty()
                && d.renames.is_empty()
                && d.tombstones.is_empty()
                && (stamps.from_stamp, stamps.to_stamp) == (8, 9),
            || "a column respelling mixed with other changes".into(),
        ),
    }
}

fn canonical(key: &str, identity: TableIdentity, path: &str) -> Valid {
    let expected = canonical_path(key, identity).map_err(|e| e.to_string())?;
    require(path == expected, || {
        format!("table {key} has the path '{path}', expected '{expected}'")
    })
}
