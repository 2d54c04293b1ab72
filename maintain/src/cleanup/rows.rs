//! One row of a report, from the plan of its table and what was swept (`docs/format/maintenance.md` 5.11). Pure.

use std::collections::BTreeMap;

use super::location_plan::{File, Kept, LocationPlan};
use super::reason::Reason;
use super::report::{KeptRow, Row, Staging};
use super::staging::Verdict;
use super::sweep::Swept;
use super::trace::TablePlan;

/// The row of a table. `swept` is `None` in a preview.
pub(super) fn row(table: &TablePlan, swept: Option<Option<&Swept>>) -> Row {
    let failed = table.error.is_some();
    let counts = match swept {
        _ if failed => Swept::default(),
        None => planned(table),
        Some(done) => done.cloned().unwrap_or_default(),
    };
    let staging = if failed {
        Staging::default()
    } else {
        staging(table)
    };
    let all = [staging.live, staging.dead, staging.undecidable];
    let foreign = table
        .locations
        .iter()
        .filter(|l| l.native.is_none() && !failed)
        .flat_map(|l| l.plan.foreign.clone())
        .collect();
    Row {
        type_key: table.type_key.clone(),
        bytes_removed: counts.bytes,
        old_versions_removed: counts.manifests,
        error: table.error.clone().or_else(|| counts.error.clone()),
        manifests_removed: counts.manifests,
        unpublished_manifests: all.iter().map(|m| m.manifests).sum(),
        unpublished_bytes: all.iter().map(|m| m.bytes).sum(),
        foreign_versions: foreign,
        table_path: table.table_path.clone(),
        files_removed: counts.files,
        index_bytes_removed: counts.index_bytes,
        staging,
        kept: kept(table),
        total_bytes: table.total.bytes,
    }
}

/// What a run of the plan would count.
fn planned(table: &TablePlan) -> Swept {
    let mut out = Swept::default();
    for traced in &table.locations {
        let plan = &traced.plan;
        for version in manifests_of(plan) {
            out.manifests += 1;
            out.bytes += traced.sizes.get(version).copied().unwrap_or_default();
        }
        for File { object, counted } in plan
            .sweep
            .iter()
            .chain(&plan.dead_files)
            .chain(&plan.orphans)
        {
            out.files += 1;
            if *counted {
                out.bytes += object.size;
            } else {
                out.index_bytes += object.size;
            }
        }
    }
    out
}

fn manifests_of(plan: &LocationPlan) -> impl Iterator<Item = &u64> {
    plan.chains
        .iter()
        .flatten()
        .chain(&plan.linear)
        .chain(&plan.dead)
}

fn staging(table: &TablePlan) -> Staging {
    let mut out = Staging::default();
    for traced in &table.locations {
        for (verdict, total) in &traced.plan.staging {
            let slot = match verdict {
                Verdict::Live => &mut out.live,
                Verdict::Dead => &mut out.dead,
                Verdict::Undecidable => &mut out.undecidable,
            };
            slot.manifests += total.objects;
            slot.bytes += total.bytes;
        }
    }
    out
}

fn kept(table: &TablePlan) -> Vec<KeptRow> {
    let mut sums: BTreeMap<Reason, Kept> = BTreeMap::new();
    for (reason, kept) in table.locations.iter().flat_map(|l| &l.plan.kept) {
        let sum = sums.entry(*reason).or_default();
        sum.versions += kept.versions;
        sum.files += kept.files;
        sum.bytes += kept.bytes;
    }
    let mut rows: Vec<KeptRow> = sums
        .into_iter()
        .map(|(reason, kept)| KeptRow {
            reason,
            versions: kept.versions,
            files: kept.files,
            bytes: kept.bytes,
        })
        .collect();
    rows.sort_by_key(|r| (std::cmp::Reverse(r.bytes), r.reason));
    rows
}
