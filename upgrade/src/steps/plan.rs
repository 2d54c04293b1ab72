//! Census, plan and intent (steps 19, 20, 23, 24). Reads heads and retained versions once, writes nothing.

use std::collections::BTreeMap;

use census::{Census, CensusInput, RefInput};
use graph::history::legacy::{LegacyLayout, plan as plan_objects};
use graph::model::names::SCHEMA_APPLY_LOCK;
use graph::refs::{NativeRef, RefInventory};
use graph::stamp::CURRENT;
use graph::{Error, Result};
use legacy::{LegacySource, SourceContract};

use super::contract::upgrade_contract;
use super::preflight::Scope;
use crate::intent::{MAX_INTENT_BYTES, UPGRADE_PROTOCOL, UpgradeIntent};
use crate::observer::Progress;
use crate::report::{Code, Finding};
use crate::run::{Planned, Run, Stop};

/// Gather the refs, hold the budgets of their heads, and take the census.
pub(super) async fn census(
    run: &Run<'_>,
    scope: &Scope,
    inventory: &RefInventory,
    source: LegacySource,
) -> Result<Census, Stop> {
    let (input, locks) = gather(run, scope, inventory, source).await?;
    let violations = census::check_budgets(run.root, &input, locks).await?;
    if !violations.is_empty() {
        let findings = census::budget_findings(&violations, run.fenced());
        return Err(run.by_phase(findings.into_iter().map(Finding::from).collect()));
    }
    let observer = run.options.observer.clone();
    let progress = move |progress: census::Progress| {
        let (phase, done, total) = match progress {
            census::Progress::Heads { read, total } => ("reading branch heads", read, total),
            census::Progress::Versions { read, total } => {
                ("reading retained versions", read, total)
            }
        };
        observer.progress(Progress { phase, done, total });
    };
    match census::census(run.root, &input, &progress).await? {
        Ok(census) => Ok(census),
        Err(findings) => Err(run.by_phase(findings.into_iter().map(Finding::from).collect())),
    }
}

/// The refs of the census: the pinned live ones, and every retired one at the latest version of its
/// tree, the locks among them whether or not they are retired yet.
async fn gather(
    run: &Run<'_>,
    scope: &Scope,
    inventory: &RefInventory,
    source: LegacySource,
) -> Result<(CensusInput, usize)> {
    let by_name: BTreeMap<&str, &NativeRef> = inventory
        .live
        .iter()
        .map(|r| (r.native.as_str(), r))
        .collect();
    let mut live = Vec::with_capacity(scope.branches.len());
    for branch in &scope.branches {
        let parent = match &branch.native {
            None => None,
            Some(native) => {
                let found = by_name.get(native.as_str()).ok_or_else(|| {
                    Error::internal(format!("ref '{native}' was pinned and is no longer live"))
                })?;
                if found.contents.parent_version != branch.parent_version {
                    return Err(Error::internal(format!(
                        "ref '{native}' forks at version {}, it was pinned as forking at version {}",
                        found.contents.parent_version, branch.parent_version
                    )));
                }
                found.contents.parent_branch.clone()
            }
        };
        live.push(RefInput {
            native: branch.native.clone(),
            pinned: branch.version,
            parent,
            parent_version: branch.parent_version,
        });
    }
    let mut members: Vec<&NativeRef> = inventory.retired.iter().collect();
    for lock in &scope.retire {
        if members.iter().any(|r| r.native == lock.native) {
            continue;
        }
        let found = by_name.get(lock.native.as_str()).ok_or_else(|| {
            Error::internal(format!(
                "lock ref '{}' is neither live nor retired",
                lock.native
            ))
        })?;
        members.push(found);
    }
    // Locks an earlier schema apply retired count as retired refs; those of this run do not.
    let locks = scope
        .retire
        .iter()
        .filter(|l| graph::model::names::logical_name(&l.native) == SCHEMA_APPLY_LOCK)
        .count();
    // Too many retired refs are refused before any of their heads is opened.
    let open = members.len().saturating_sub(locks) as u64 <= run.options.limits.retired_refs;
    let mut retired = Vec::with_capacity(members.len());
    for r in members {
        let pinned = if open {
            let versions = run
                .root
                .linear_versions(graph::store::MANIFEST_DIR, Some(&r.native))
                .await?;
            versions.last().copied().ok_or_else(|| {
                Error::internal(format!(
                    "the tree of retired ref '{}' holds no version",
                    r.native
                ))
            })?
        } else {
            r.contents.parent_version
        };
        retired.push(RefInput {
            native: Some(r.native.clone()),
            pinned,
            parent: r.contents.parent_branch.clone(),
            parent_version: r.contents.parent_version,
        });
    }
    Ok((
        CensusInput {
            attempt: scope.attempt,
            live,
            retired,
            source,
            limits: run.options.limits,
            exhaustive: false,
        },
        locks,
    ))
}

/// Cut the legacy objects, fill `work`, and bind or check the intent.
pub(super) fn plan(
    run: &mut Run<'_>,
    scope: Scope,
    source: u32,
    contract: &SourceContract,
    census: Census,
) -> Result<(UpgradeIntent, Planned), Stop> {
    let layout = run
        .pending
        .as_ref()
        .map_or(LegacyLayout::CURRENT, |intent| intent.legacy.layout);
    let objects = match plan_objects(
        &census.chains,
        &layout,
        census.attempt,
        census.source_stamp,
        &census.absent_parents,
    ) {
        Ok(objects) => objects,
        Err(e @ Error::Limit { .. }) => {
            let finding = Finding::new(
                Code::Census(census::FindingCode::LegacyDirectoryOverBound),
                e.to_string(),
            );
            return Err(run.by_phase(vec![finding]));
        }
        Err(e) => return Err(Stop::Hard(e)),
    };
    let counts = &census.counts;
    let work = &mut run.report.work;
    work.live_refs = counts.live_refs;
    work.retired_refs = counts.retired_refs;
    work.orphan_writers = counts.orphan_writers;
    work.legacy_commits = counts.legacy_commits;
    work.bookkeeping_versions = counts.bookkeeping_versions;
    work.absent_parents = counts.absent_parents;
    work.data_files = u64::from(objects.plan.data_files);
    work.id_shards = u64::from(objects.plan.id_shards);
    work.writer_shards = u64::from(objects.plan.writer_shards);
    work.schema_contents = counts.schema_contents;
    work.census_reads = counts.census_reads;
    work.census_cells = counts.census_cells;
    work.legacy_bytes = counts.legacy_bytes;

    let intent = match run.pending.clone() {
        Some(intent) => {
            if objects.plan != intent.legacy {
                let finding = Finding::new(
                    Code::Census(census::FindingCode::LegacyPlanChanged),
                    format!(
                        "the graph plans other legacy objects than the upgrade that fenced it bound: {} \
                         commits under directory {} now, {} commits under directory {} then",
                        objects.plan.commits,
                        objects.plan.directory_sha256,
                        intent.legacy.commits,
                        intent.legacy.directory_sha256
                    ),
                );
                return Err(run.by_phase(vec![finding]));
            }
            intent
        }
        None => bind(scope, source, contract, &objects.plan)?,
    };
    Ok((intent, Planned { objects, census }))
}

/// Build the intent and require that it reads back as itself.
fn bind(
    scope: Scope,
    source: u32,
    contract: &SourceContract,
    legacy: &graph::history::legacy::LegacyPlan,
) -> Result<UpgradeIntent> {
    let bound = upgrade_contract(contract);
    let intent = UpgradeIntent {
        protocol: UPGRADE_PROTOCOL,
        attempt: scope.attempt.to_string(),
        source_format: source,
        target_format: CURRENT,
        graph_identity: bound.identity.schema_identity_domain.clone(),
        branches: scope.branches,
        retire: scope.retire,
        schema_contract: Some(bound),
        legacy: legacy.clone(),
    };
    let refuse = |why: String| Error::internal(format!("cannot build the upgrade intent: {why}"));
    let text = intent.to_json().map_err(refuse)?;
    if text.len() > MAX_INTENT_BYTES {
        return Err(Error::limit(
            "the size of the upgrade intent in bytes (it grows with the number of live refs)",
            MAX_INTENT_BYTES as u64,
            text.len() as u64,
        ));
    }
    let back = UpgradeIntent::parse(&text).map_err(refuse)?;
    if back != intent {
        return Err(refuse("it does not read back as itself".into()));
    }
    Ok(intent)
}
