//! Which refs are converted, and that they are still what was pinned (steps 11, 15, 26).

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::model::names::{SCHEMA_APPLY_LOCK, logical_name};
use graph::refs::{self, BranchIdentifier, NativeRef};
use graph::stamp::{CURRENT, PENDING_KEY, StampReading};
use graph::store::ManifestVersion;
use graph::{Error, Result};

use super::preflight::{Scope, stamp_text};
use crate::intent::{MAX_BRANCHES, SourceBranch, SourceLock, UpgradeIntent};
use crate::receipt::{RefState, WRITTEN_SINCE, is_completed};
use crate::run::{Run, Stop};

/// Refs opened at once.
const REFS_AT_ONCE: usize = 8;

/// Pin every live named ref and main, and mint the attempt (step 11).
pub(super) async fn pin(run: &Run<'_>, main: &ManifestVersion, source: u32) -> Result<Scope, Stop> {
    let live = refs::live_refs(run.root).await?;
    if live.len() >= MAX_BRANCHES {
        return Err(Stop::Hard(Error::limit(
            "the number of live refs beside main",
            MAX_BRANCHES as u64 - 1,
            live.len() as u64,
        )));
    }
    // At stamps 8 and 9 the ref of a schema apply is its lock, not a branch.
    let (locks, named): (Vec<NativeRef>, Vec<NativeRef>) = live
        .into_iter()
        .partition(|r| source < 10 && r.logical() == SCHEMA_APPLY_LOCK);
    let mut branches: Vec<SourceBranch> = futures::stream::iter(named)
        .map(|r| async move {
            let head = run.root.open_manifest(Some(&r.native), None).await?;
            Ok::<_, Error>(SourceBranch {
                native: Some(r.native),
                identity: r.contents.identifier,
                version: head.version,
                parent_version: r.contents.parent_version,
            })
        })
        .buffered(REFS_AT_ONCE)
        .try_collect()
        .await?;
    branches.push(SourceBranch {
        native: None,
        identity: BranchIdentifier::main(),
        version: main.version,
        parent_version: 0,
    });
    Ok(Scope {
        attempt: run
            .options
            .attempt
            .unwrap_or_else(|| ulid::Ulid::from_datetime(std::time::SystemTime::now())),
        branches,
        retire: locks
            .into_iter()
            .map(|r| SourceLock {
                native: r.native,
                identity: r.contents.identifier,
            })
            .collect(),
    })
}

/// Require the live refs to be exactly the pinned ones, each completed or at its source head. With an
/// intent, main must still carry it. Any difference is an error.
pub(super) async fn verify(
    run: &Run<'_>,
    source: u32,
    scope: &Scope,
    intent: Option<&UpgradeIntent>,
) -> Result<()> {
    require_same_refs(run, scope, intent.is_some()).await?;
    futures::stream::iter(scope.branches.iter().map(Ok::<_, Error>))
        .try_for_each_concurrent(REFS_AT_ONCE, |branch| async move {
            let head = run
                .root
                .open_manifest(branch.native.as_deref(), None)
                .await?;
            if branch.native.is_none() {
                require_intent(&head, intent)?;
            }
            if let Some(intent) = intent
                && is_completed(intent, branch, &RefState::of(&head))?
            {
                return Ok(());
            }
            require_source_head(branch, source, &head, intent.is_some())
        })
        .await
}

async fn require_same_refs(run: &Run<'_>, scope: &Scope, fenced: bool) -> Result<()> {
    let live = refs::live_refs(run.root).await?;
    let locks: BTreeSet<&str> = scope.retire.iter().map(|l| l.native.as_str()).collect();
    let live: Vec<&NativeRef> = live
        .iter()
        .filter(|r| !locks.contains(r.native.as_str()))
        .collect();
    for branch in &scope.branches {
        let Some(native) = &branch.native else {
            continue;
        };
        match live.iter().find(|r| r.native == *native) {
            None => {
                return Err(Error::internal(format!(
                    "ref '{native}' was pinned and is no longer live; something changed the graph while \
                     it was being upgraded"
                )));
            }
            Some(found) if found.contents.identifier != branch.identity => {
                return Err(Error::internal(format!(
                    "ref '{native}' was deleted and created again since it was pinned"
                )));
            }
            Some(found) if found.contents.parent_version != branch.parent_version => {
                return Err(Error::internal(format!(
                    "ref '{native}' forks at version {}, it was pinned as forking at version {}",
                    found.contents.parent_version, branch.parent_version
                )));
            }
            Some(_) => {}
        }
    }
    let pinned: BTreeSet<&str> = scope
        .branches
        .iter()
        .filter_map(|b| b.native.as_deref())
        .collect();
    if let Some(added) = live.iter().find(|r| !pinned.contains(r.native.as_str())) {
        return Err(Error::internal(format!(
            "ref '{}' (branch '{}') appeared since the refs were pinned; something changed the graph \
             while it was being upgraded{}",
            added.native,
            logical_name(&added.native),
            aside(fenced)
        )));
    }
    Ok(())
}

fn require_intent(main: &ManifestVersion, intent: Option<&UpgradeIntent>) -> Result<()> {
    let stored = main.metadata(PENDING_KEY);
    match (intent, stored) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Error::internal(
            "main was fenced by another run since it was pinned",
        )),
        (Some(_), None) => Err(Error::internal(
            "main no longer carries the intent of this upgrade",
        )),
        (Some(intent), Some(text)) => match UpgradeIntent::parse(text) {
            Ok(found) if found == *intent => Ok(()),
            _ => Err(Error::internal(
                "main carries another intent than the one this run works on",
            )),
        },
    }
}

/// What to do about a foreign write: before the fence nothing is bound yet and the next run takes it in.
fn aside(fenced: bool) -> &'static str {
    if fenced {
        WRITTEN_SINCE
    } else {
        "; nothing is converted yet: stop all writers, then run the check again"
    }
}

/// Require a ref to be untouched since it was pinned: its version (plus one for a fenced main) and the
/// source stamp (14 for a fenced main). `fenced` says whether an intent binds the pins.
pub(super) fn require_source_head(
    branch: &SourceBranch,
    source: u32,
    head: &ManifestVersion,
    fenced: bool,
) -> Result<()> {
    let state = RefState::of(head);
    let fenced_main = branch.native.is_none() && state.pending;
    let expected = state.source_version(branch);
    let stamp = if fenced_main { CURRENT } else { source };
    let name = branch.name();
    if head.version != expected {
        let aside = if head.version > expected {
            aside(fenced)
        } else {
            ""
        };
        return Err(Error::internal(format!(
            "ref '{name}' stands at version {}, expected version {expected}: something wrote to the graph \
             while it was being upgraded{aside}",
            head.version
        )));
    }
    if StampReading::of(head) != StampReading::Number(stamp) {
        return Err(Error::internal(format!(
            "ref '{name}' has {} at version {}, expected stamp {stamp}: all live refs of a source carry \
             the stamp of main",
            stamp_text(head),
            head.version
        )));
    }
    Ok(())
}
