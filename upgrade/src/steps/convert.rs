//! Conversion of one ref after the other (step 31): named refs ascending, main last.
//!
//! Writes one Overwrite of `__manifest` per ref, at exactly the next version or not at all. The rows come
//! from the legacy objects that were validated before, so a resumed run writes the same ones.

use graph::history::legacy::Verified;
use graph::history::lookup::HistoryReader;
use graph::history::schema_archive::read_commit_contract;
use graph::manifest::{BranchState, overwrite};
use graph::model::HistoryRecord;
use graph::refs;
use graph::stamp::{CURRENT, PENDING_KEY, RECEIPT_KEY, STAMP_KEY};
use graph::store::{CommitOutcome, ManifestVersion};
use graph::{Error, Result};
use legacy::HeadScan;

use super::{fence, inventory, validate};
use crate::intent::{SourceBranch, UpgradeIntent};
use crate::observer::{Crossing, Progress};
use crate::receipt::{BranchReceipt, RefState, is_completed};
use crate::run::{Ready, Run, Stop};

/// What a ref was and what it becomes.
pub(super) struct Conversion {
    /// The rows of its pinned source version.
    pub source: HeadScan,
    /// The record of that version's effective head commit, out of the legacy objects, canonical. A walk by
    /// version numbers would end at the first ref that is gone, and a fork may have outlived the refs it
    /// came from.
    pub record: HistoryRecord,
}

impl Conversion {
    pub(super) async fn of(
        run: &Run<'_>,
        ready: &Ready,
        reader: &HistoryReader,
        branch: &SourceBranch,
    ) -> Result<Self> {
        let name = branch.name();
        let source = validate::source_scan(run, ready, branch).await?;
        let head = legacy::fold::head_commit(&source.commits).ok_or_else(|| {
            Error::internal(format!("the source head of ref '{name}' holds no commit"))
        })?;
        let found = reader.record(&head.id).await?.ok_or_else(|| {
            Error::internal(format!(
                "the legacy objects do not hold commit {}, the head of ref '{name}'",
                head.id
            ))
        })?;
        Ok(Self {
            record: found.canonicalize()?,
            source,
        })
    }
}

/// Convert every ref that is not converted yet.
pub(super) async fn convert_all(
    run: &mut Run<'_>,
    ready: &Ready,
    _written: &Verified,
) -> Result<(), Stop> {
    run.options
        .observer
        .crossing(&Crossing::LegacyValidated)
        .await?;
    fence::require_alone(run, &ready.intent).await?;
    let reader = HistoryReader::new(run.root.clone());
    let total = ready.intent.branches.len() as u64;
    for (index, branch) in ready.intent.branches.iter().enumerate() {
        if convert(run, ready, &reader, branch).await? {
            run.boundary(format!("converted:{}", branch.name()));
            run.options
                .observer
                .crossing(&Crossing::Converted {
                    name: branch.name().to_string(),
                })
                .await?;
        }
        run.options.observer.progress(Progress {
            phase: "converting branches",
            done: index as u64 + 1,
            total,
        });
    }
    Ok(())
}

/// Convert one ref; `false` when its receipt says that it is converted already.
async fn convert(
    run: &Run<'_>,
    ready: &Ready,
    reader: &HistoryReader,
    branch: &SourceBranch,
) -> Result<bool, Stop> {
    let intent = &ready.intent;
    let name = branch.name();
    if let Some(native) = &branch.native {
        let stored = refs::read_ref(run.root, native).await?;
        if stored.is_none_or(|r| r.identifier != branch.identity) {
            return Err(Stop::Hard(Error::internal(format!(
                "ref '{native}' is not the incarnation that was pinned"
            ))));
        }
    }
    let head = run
        .root
        .open_manifest(branch.native.as_deref(), None)
        .await?;
    if is_completed(intent, branch, &RefState::of(&head))? {
        return Ok(false);
    }
    inventory::require_source_head(branch, intent.source_format, &head, true)?;
    let conversion = Conversion::of(run, ready, reader, branch).await?;
    let record = &conversion.record;
    if let Some(planned) = &ready.planned {
        let expected = planned
            .census
            .heads
            .iter()
            .find(|h| h.native == branch.native)
            .map(|h| (*h.record).clone().canonicalize())
            .transpose()?;
        if expected.as_ref() != Some(record) {
            return Err(Stop::Hard(Error::internal(format!(
                "the legacy objects give ref '{name}' another head record than the census"
            ))));
        }
    }
    let metadata = converted_metadata(run, ready, branch, &head).await?;
    let contract = read_commit_contract(run.root, &record.commit)
        .await?
        .ok_or_else(|| {
            Error::internal(format!(
                "commit {} names no contract",
                record.commit.graph_commit_id
            ))
        })?;
    let version = head.version.saturating_add(1);
    let state = BranchState {
        version,
        native: branch.native.clone(),
        tables: record.tables.clone(),
        head: record.commit.clone(),
        buffer: Vec::new(),
        replaced: Vec::new(),
        contract: contract.head.clone(),
        contract_texts: Some(contract),
    };
    let object = format!("the conversion of ref '{name}'");
    let staged = overwrite::stage(&object, &head, &state, metadata).await?;
    run.options
        .observer
        .crossing(&Crossing::Staged {
            name: name.to_string(),
        })
        .await?;
    let committed = match run.root.commit_exact(&object, head.dataset, staged).await {
        CommitOutcome::Landed(dataset) => ManifestVersion {
            version: dataset.manifest().version,
            native: branch.native.clone(),
            dataset,
        },
        CommitOutcome::Lost(e) => {
            return Err(Stop::Hard(Error::Conflict(format!(
                "{e}: something else committed to this ref meanwhile; a rerun tells what it was"
            ))));
        }
        CommitOutcome::Unknown(e) => return Err(Stop::Hard(e)),
    };
    validate::ref_is_converted(ready, branch, &conversion, &committed).await?;
    Ok(true)
}

/// The metadata of the pinned source version with stamp, receipt and, on main, the same intent.
async fn converted_metadata(
    run: &Run<'_>,
    ready: &Ready,
    branch: &SourceBranch,
    head: &ManifestVersion,
) -> Result<std::collections::HashMap<String, String>> {
    let pinned = match &branch.native {
        None => ready.main.clone(),
        Some(_) if head.version == branch.version => head.clone(),
        Some(native) => {
            run.root
                .open_manifest(Some(native), Some(branch.version))
                .await?
        }
    };
    let mut metadata = pinned.dataset.schema().metadata.clone();
    metadata.insert(STAMP_KEY.into(), CURRENT.to_string());
    metadata.remove(PENDING_KEY);
    if branch.native.is_none() {
        metadata.insert(PENDING_KEY.into(), stored_intent(head, &ready.intent)?);
    }
    metadata.insert(
        RECEIPT_KEY.into(),
        BranchReceipt::of(&ready.intent, branch).to_json()?,
    );
    Ok(metadata)
}

/// The intent text as main carries it, so that the conversion keeps it byte for byte.
fn stored_intent(main: &ManifestVersion, intent: &UpgradeIntent) -> Result<String> {
    match main.metadata(PENDING_KEY) {
        Some(text) if UpgradeIntent::parse(text).ok().as_ref() == Some(intent) => {
            Ok(text.to_string())
        }
        _ => Err(Error::internal(
            "main does not carry the intent of this upgrade",
        )),
    }
}
