//! Publishing: one new version of a branch of `__manifest` that holds exactly one new graph commit
//! (`docs/format/manifest-v14.md` 9).
//!
//! Reads the latest version of the branch (its rows only when this process does not hold them), or, on the first attempt
//! over a capture, only whether that is still the latest; either way the create at the end decides. Writes, in this
//! order: a schema archive and history extents (each created only if absent, harmless when the attempt loses), the data
//! file of the version, then its manifest at exactly the next number. That last create is the compare-and-set; a crash
//! before it leaves only objects that nothing refers to.

pub mod changes;
pub mod plan;
pub mod precondition;
pub mod slots;

use std::sync::Arc;

use graph::history::block::write_placed;
use graph::history::schema_archive::create_archive;
use graph::manifest::BranchState;
use graph::manifest::overwrite;
use graph::manifest::scan::{ReadMode, open_identified, read_captured, read_state};
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::refs::{self, BranchIdentifier};
use graph::store::{CommitOutcome, ManifestVersion, Root};
use graph::{Error, stamp};

pub use changes::{Binding, Changes, ExpectedTable, NewPin, Update};
pub use plan::{Lineage, Merged, Planned};
pub use precondition::{Authority, Precondition};

use crate::capture::Capture;
use crate::error::{Result, WriteError};

/// Attempts after the first one that a publish makes when another writer took the version.
pub const PUBLISHER_RETRY_BUDGET: u32 = 5;
/// Lowers the release budget of a session's loads and merges; bytes from 1024 to 262144.
pub const RELEASE_VARIABLE: &str = "OMNIGRAPH_HISTORY_RELEASE_BYTES";
/// The lowest budget a session may ask for.
const LEAST_RELEASE_BYTES: u64 = 1_024;

/// The release budget that `setting` (the value of [`RELEASE_VARIABLE`]) asks for; absent is the production budget.
/// Anything but 1024 to 262144 is [`Error::Refused`].
pub fn budget(setting: Option<&str>) -> Result<u64> {
    let Some(text) = setting else {
        return Ok(HISTORY_RELEASE_BYTES);
    };
    text.trim()
        .parse()
        .ok()
        .filter(|n| (LEAST_RELEASE_BYTES..=HISTORY_RELEASE_BYTES).contains(n))
        .ok_or_else(|| {
            Error::refused(format!(
                "{RELEASE_VARIABLE} is '{text}', expected a number of bytes from {LEAST_RELEASE_BYTES} to \
                 {HISTORY_RELEASE_BYTES}; unset it to use {HISTORY_RELEASE_BYTES}"
            ))
            .into()
        })
}

/// Everything one publish is made of.
#[derive(Debug, Clone)]
pub struct Request {
    /// What changes.
    pub changes: Changes,
    /// What the tables must look like.
    pub expected: Vec<ExpectedTable>,
    /// The commit.
    pub lineage: Lineage,
    /// What must still hold.
    pub precondition: Precondition,
}

/// A publish that landed.
#[derive(Debug, Clone)]
pub struct Published {
    /// The version written and the state it holds.
    pub version: ManifestVersion,
    /// That state; its head is the commit.
    pub state: Arc<BranchState>,
}

/// Publish `request`. A changed read set, a table at another version and a limit are final; a lost race for the
/// version is tried again from a fresh read, [`PUBLISHER_RETRY_BUDGET`] times, before it is [`Error::Conflict`].
/// A lost acknowledgement is resolved by reading the version that was attempted; when that does not tell, the
/// outcome is [`WriteError::InDoubt`].
pub async fn publish(root: &Root, request: &Request) -> Result<Published> {
    publish_over(root, None, request).await
}

/// [`publish`] of what was prepared over `capture`: while its branch is the same and its version the latest one, the
/// first attempt reads nothing again.
pub async fn publish_captured(
    root: &Root,
    capture: &Capture,
    request: &Request,
) -> Result<Published> {
    publish_over(root, Some(capture), request).await
}

async fn publish_over(
    root: &Root,
    capture: Option<&Capture>,
    request: &Request,
) -> Result<Published> {
    root.require_conditional_setting()?;
    let mut capture = match capture {
        Some(c) if is_current(root, c, request).await? => Some(c),
        _ => None,
    };
    let mut lost = None;
    for _ in 0..=PUBLISHER_RETRY_BUDGET {
        match attempt(root, capture.take(), request).await? {
            Attempt::Landed(published) => return Ok(*published),
            Attempt::Lost(e) => lost = Some(e),
        }
    }
    Err(lost
        .map(|e| {
            e.within(format!(
                "other writers won every one of {} attempts; run the command again",
                PUBLISHER_RETRY_BUDGET + 1
            ))
        })
        .unwrap_or_else(|| Error::internal("a publish made no attempt"))
        .into())
}

enum Attempt {
    Landed(Box<Published>),
    Lost(Error),
}

async fn attempt(root: &Root, capture: Option<&Capture>, request: &Request) -> Result<Attempt> {
    let (opened, identifier, state) = match capture {
        Some(c) => (c.version.clone(), c.identifier.clone(), c.state.clone()),
        None => {
            let branch = request.lineage.branch.as_deref();
            let (opened, identifier) = open_identified(root, branch).await?;
            let read = read_captured(root, &opened).await?;
            (opened, identifier, read)
        }
    };
    request.precondition.check(&identifier, &state)?;
    changes::check_expected(&state, &request.expected)?;
    let planned = plan::plan(&state, &request.changes, &request.lineage)?;
    if let Some(contract) = &planned.archive {
        create_archive(root, contract).await?;
    }
    write_placed(root, planned.extents).await?;
    let next = planned.next;
    let object = format!("commit {}", next.head.graph_commit_id);
    let metadata = opened.dataset.schema().metadata.clone();
    let staged = overwrite::stage(&object, &opened, &next, metadata).await?;
    match root
        .commit_exact(&object, opened.dataset.clone(), staged)
        .await
    {
        CommitOutcome::Landed(dataset) => {
            let version = ManifestVersion {
                version: dataset.manifest().version,
                native: opened.native,
                dataset,
            };
            let next = Arc::new(next);
            root.states().keep(&version, &next);
            Ok(landed(version, next))
        }
        CommitOutcome::Lost(e) => Ok(Attempt::Lost(e)),
        CommitOutcome::Unknown(e) => resolve_unknown(root, &opened, next, e).await,
    }
}

/// Whether a capture is of the branch the request names, whose ref is still the same, and of its latest version.
async fn is_current(root: &Root, capture: &Capture, request: &Request) -> Result<bool> {
    if capture.branch != request.lineage.branch {
        return Ok(false);
    }
    let identifier = match refs::resolve_branch(root, capture.branch.as_deref()).await? {
        None => BranchIdentifier::main(),
        Some(found) => found.contents.identifier,
    };
    Ok(identifier == capture.identifier && root.is_latest(&capture.version).await?)
}

fn landed(version: ManifestVersion, state: Arc<BranchState>) -> Attempt {
    Attempt::Landed(Box::new(Published { version, state }))
}

/// Read the attempted version: its head tells whose it is.
async fn resolve_unknown(
    root: &Root,
    opened: &ManifestVersion,
    next: BranchState,
    cause: Error,
) -> Result<Attempt> {
    let native = opened.native.as_deref();
    let in_doubt = |cause: String| WriteError::InDoubt {
        commit_id: next.head.graph_commit_id.clone(),
        location: stamp::shell_word(root.uri()),
        cause,
    };
    let version = match root.open_manifest(native, Some(next.version)).await {
        Ok(version) => version,
        Err(e) if e.is_not_found() => {
            // A request that is still on its way could yet create it, unless no network lies between.
            let latest = root.open_manifest(native, None).await;
            let below = latest.is_ok_and(|v| v.version < next.version);
            return Err(if below && root.is_local() {
                cause.into()
            } else {
                in_doubt(cause.to_string())
            });
        }
        Err(e) => return Err(in_doubt(format!("{cause}; reading it back: {e}"))),
    };
    match read_state(&version, ReadMode::State).await {
        Ok(found) if found.head == next.head => Ok(landed(version, Arc::new(next))),
        Ok(found) if found.head.graph_commit_id == next.head.graph_commit_id => Err(in_doubt(
            format!("{cause}; it stands there with other fields"),
        )),
        Ok(_) => Err(cause.into()),
        Err(e) => Err(in_doubt(format!("{cause}; reading it back: {e}"))),
    }
}
