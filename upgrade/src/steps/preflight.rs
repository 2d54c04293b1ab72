//! Preflight: everything that is decided before the first write (steps 1 to 25). Reads only.

use graph::history::legacy::read_directory;
use graph::stamp::{CURRENT, GuardInput, PENDING_KEY, Refusal, StampReading, guard, guard_stamp};
use graph::store::ManifestVersion;

use super::{branches, contract, inventory, plan, tables};
use crate::intent::{SourceBranch, SourceLock, UpgradeIntent};
use crate::report::{Code, Finding, Outcome, Remedy};
use crate::run::{Ready, Run, Stop, route_name};

/// What is to be converted, from the intent or freshly pinned.
pub(super) struct Scope {
    pub attempt: ulid::Ulid,
    /// Named ascending, main last.
    pub branches: Vec<SourceBranch>,
    pub retire: Vec<SourceLock>,
}

/// Run steps 1 to 25. Under `--check` it never returns `Ok`.
pub(super) async fn preflight(run: &mut Run<'_>) -> Result<Ready, Stop> {
    let head = run
        .root
        .open_manifest(None, None)
        .await
        .map_err(not_a_graph)?;
    let source = before_routing(run, &head).await?;

    run.report.route.push(route_name(source));
    if run.pending.is_some() {
        run.boundary("source_fenced");
    }
    run.root.require_conditional_setting()?;
    let main = match &run.pending {
        None => head,
        Some(intent) => {
            let pinned = intent.branches.last().map_or(0, |main| main.version);
            run.root.open_manifest(None, Some(pinned)).await?
        }
    };
    let scope = match &run.pending {
        None => inventory::pin(run, &main, source).await?,
        Some(intent) => from_intent(intent)?,
    };
    authorize(run, &scope.branches)?;

    let bound = contract::bind(run, source, &main).await?;
    run.report.graph_identity = Some(bound.contract.head().schema_identity_domain.clone());
    if let Some(intent) = &run.pending {
        contract::require_reproduced(intent, &bound.contract)?;
    }
    for lock in &scope.retire {
        run.report.findings.push(Finding::new(
            Code::SchemaApplyLockRetired,
            format!(
                "ref '{}' is the lock of a 0.11.x schema apply that no longer runs; the upgrade retires \
                 it, its tree stays",
                lock.native
            ),
        ));
    }
    if !run.fenced() {
        // Behind the fence a lock that cannot be retired would hold the graph offline.
        for lock in &scope.retire {
            graph::refs::require_retirable(run.root, &lock.native, &lock.identity).await?;
        }
    }
    inventory::verify(run, source, &scope, run.pending.as_ref()).await?;

    if let Some(intent) = run.pending.clone()
        && directory_stands(run, &intent).await?
    {
        return Ok(Ready {
            intent,
            planned: None,
            contract: bound.contract,
            reader: bound.reader,
            main,
        });
    }
    if !run.fenced() {
        branches::history_is_empty(run).await?;
    }
    let inventory = graph::refs::inventory(run.root).await?;
    if !run.fenced() {
        branches::trees_are_claimed(run, &inventory).await?;
        branches::heads_are_convertible(run, &scope).await?;
    }
    let census = plan::census(run, &scope, &inventory, bound.reader.clone()).await?;
    if let Some(ir) = bound.ir.as_ref().filter(|_| !run.fenced()) {
        tables::compare_sets(run, ir, &census)?;
        tables::compare_columns(run, ir, &census).await?;
    }
    let (intent, planned) = plan::plan(run, scope, source, &bound.contract, census)?;
    if run.options.check {
        return Err(Stop::success(Outcome::CheckPassed));
    }
    Ok(Ready {
        intent,
        planned: Some(planned),
        contract: bound.contract,
        reader: bound.reader,
        main,
    })
}

/// Steps 2 to 8: what stops a run before a route exists. Returns the source stamp.
async fn before_routing(run: &mut Run<'_>, head: &ManifestVersion) -> Result<u32, Stop> {
    let input = GuardInput::of(head, run.root.uri());
    run.report.observed_format = input.stamp.number();
    if let Some(text) = head.metadata(PENDING_KEY) {
        match UpgradeIntent::parse(text) {
            Ok(intent) => run.pending = Some(intent),
            Err(why) => {
                return Err(Stop::Settled {
                    outcome: Outcome::RecoveryRequired,
                    findings: vec![Finding::new(
                        Code::UnknownUpgradeOwnership,
                        format!(
                            "main carries an upgrade intent ({PENDING_KEY}) that this executable cannot \
                             own: {why}"
                        ),
                    )],
                    remedy: Some(Remedy::Preserve),
                    unrouted: true,
                });
            }
        }
    }
    run.source = match &run.pending {
        Some(intent) => Some(intent.source_format),
        None => input
            .stamp
            .number()
            .filter(|n| graph::stamp::UPGRADE_SOURCES.contains(n)),
    };
    if let Some(intent) = &run.pending
        && run.options.check
    {
        let refusal = Refusal::Pending {
            attempt: Some(intent.attempt.clone()),
            location: run.root.uri().to_string(),
        };
        return Err(Stop::recovery(
            Code::PendingUpgrade,
            refusal.to_string(),
            Remedy::Rerun,
        ));
    }
    let operations = legacy::recovery::pending_operations(run.root).await?;
    if !operations.is_empty() {
        return Err(Stop::recovery(
            Code::SourceRecoveryRequired,
            format!(
                "{} recovery sidecar{} under __recovery/: {}; a write of the release that wrote this \
                 graph was interrupted and has to be settled by it first",
                operations.len(),
                if operations.len() == 1 { "" } else { "s" },
                operations.join(", ")
            ),
            Remedy::Sidecars,
        ));
    }
    if run.report.target_format != CURRENT {
        return Err(Stop::refused(
            Code::UnsupportedTarget,
            format!(
                "stamp {} is no target of this binary: it converts stamps 8, 9 and 13 to {CURRENT}",
                run.report.target_format
            ),
        ));
    }
    match run.source {
        Some(source) => Ok(source),
        None => Err(without_source(&input)),
    }
}

/// Step 8: no source, so the open guard decides.
fn without_source(input: &GuardInput) -> Stop {
    let decided = if input.pending.is_some() {
        guard_stamp(input)
    } else {
        guard(input)
    };
    match decided {
        Ok(()) => Stop::success(Outcome::AlreadyCurrent),
        Err(refusal @ Refusal::Newer { .. }) => {
            Stop::refused(Code::NewerThanBinary, refusal.to_string())
        }
        Err(refusal) => Stop::refused(Code::UnsupportedSource, refusal.to_string()),
    }
}

/// A root without `__manifest` is no graph; say so instead of naming an internal object alone.
fn not_a_graph(error: graph::Error) -> Stop {
    if error.is_not_found() {
        Stop::Hard(graph::Error::NotFound(format!(
            "this is not the root of a graph, it has no __manifest dataset ({error}); name the folder \
             that holds __manifest"
        )))
    } else {
        Stop::Hard(error)
    }
}

fn from_intent(intent: &UpgradeIntent) -> Result<Scope, Stop> {
    Ok(Scope {
        attempt: intent
            .attempt_ulid()
            .ok_or_else(|| graph::Error::internal("the intent's attempt is not a ULID"))?,
        branches: intent.branches.clone(),
        retire: intent.retire.clone(),
    })
}

/// Step 12, only when a policy is installed.
fn authorize(run: &Run<'_>, branches: &[SourceBranch]) -> Result<(), Stop> {
    let Some(policy) = &run.options.authorizer else {
        return Ok(());
    };
    let refuse = |why: String| Stop::Hard(graph::Error::Refused(why));
    let actor = run
        .options
        .actor
        .as_deref()
        .ok_or_else(|| refuse("a policy is installed, so an actor is required".into()))?;
    let main = std::iter::once(graph::model::names::MAIN);
    let named = branches
        .iter()
        .filter_map(|b| b.native.as_deref())
        .map(graph::model::names::logical_name);
    for branch in main.chain(named) {
        policy
            .authorize(actor, "SchemaApply", branch)
            .map_err(refuse)?;
    }
    Ok(())
}

/// Step 16: on a resumed run, whether the directory the intent binds already stands.
async fn directory_stands(run: &mut Run<'_>, intent: &UpgradeIntent) -> Result<bool, Stop> {
    let Some((directory, digest)) = read_directory(run.root).await? else {
        return Ok(false);
    };
    if digest != intent.legacy.directory_sha256.to_ascii_lowercase() {
        return Err(run.by_phase(vec![Finding::new(
            Code::LegacyObjectsDiffer,
            format!(
                "__history/legacy/locator/directory.oglx hashes to {digest}, the intent binds {}",
                intent.legacy.directory_sha256
            ),
        )]));
    }
    let work = &mut run.report.work;
    work.live_refs = intent.branches.len() as u64;
    work.legacy_commits = intent.legacy.commits;
    work.absent_parents = directory.absent_parents.len() as u64;
    work.data_files = u64::from(intent.legacy.data_files);
    work.id_shards = u64::from(intent.legacy.id_shards);
    work.writer_shards = u64::from(intent.legacy.writer_shards);
    Ok(true)
}

/// The stamp of an opened version in words.
pub(super) fn stamp_text(version: &ManifestVersion) -> String {
    match StampReading::of(version) {
        StampReading::Number(n) => format!("stamp {n}"),
        StampReading::Absent => "no stamp".into(),
        StampReading::NotANumber(raw) => format!("stamp '{raw}'"),
    }
}
