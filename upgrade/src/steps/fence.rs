//! The fence: one metadata commit on main that binds the intent and stops every other reader and writer
//! (steps 26, 27).
//!
//! Writes main's schema archive, then version pinned + 1 of main. The commit lands at exactly that
//! version or nowhere: zero retries alone would let Lance rebase it above a publish the intent does not
//! know (`docs/format/lance-notes.md` 2).

use std::collections::HashMap;
use std::sync::Arc;

use graph::Error;
use graph::history::schema_archive::create_archive;
use graph::stamp::{CURRENT, PENDING_KEY, STAMP_KEY};
use graph::store::CommitOutcome;
use lance::Dataset;
use lance::dataset::transaction::{Operation, TransactionBuilder, UpdateMap, UpdateMapEntry};

use super::inventory;
use super::preflight::Scope;
use crate::intent::UpgradeIntent;
use crate::observer::Crossing;
use crate::report::{Code, Remedy};
use crate::run::{Ready, Run, Stop};

/// Verify once more, archive the contract, fence.
pub(super) async fn fence(run: &mut Run<'_>, ready: &Ready) -> Result<(), Stop> {
    let intent = &ready.intent;
    let scope = scope_of(intent)?;
    inventory::verify(run, intent.source_format, &scope, None).await?;
    let observer = run.options.observer.clone();
    observer.crossing(&Crossing::BeforeArchive).await?;
    create_archive(run.root, ready.contract.contract()).await?;
    observer.crossing(&Crossing::AfterArchive).await?;

    let main = run.root.open_manifest(None, None).await?;
    let pin = intent
        .branches
        .last()
        .ok_or_else(|| Error::internal("the intent pins no main"))?;
    inventory::require_source_head(pin, intent.source_format, &main, false)?;
    if main.metadata(PENDING_KEY).is_some() {
        return Err(Stop::Hard(Error::internal(
            "main was fenced by another run",
        )));
    }
    let text = intent.to_json().map_err(Error::internal)?;
    observer.crossing(&Crossing::BeforeFence).await?;
    let outcome = commit_metadata(
        run,
        "the fence",
        main.dataset,
        vec![
            entry(STAMP_KEY, Some(CURRENT.to_string())),
            entry(PENDING_KEY, Some(text)),
        ],
    )
    .await;
    match outcome {
        CommitOutcome::Landed(_) => {
            run.boundary("source_fenced");
            observer.crossing(&Crossing::AfterFence).await?;
            Ok(())
        }
        CommitOutcome::Lost(e) | CommitOutcome::Unknown(e) => Err(Stop::recovery(
            Code::FencePublicationAttempted,
            format!(
                "the commit that fences main (attempt {}) failed, and whether it landed has to be looked \
                 up: {e}",
                intent.attempt
            ),
            Remedy::Preserve,
        )),
    }
}

/// Main must stand at exactly its fence (or further, once this upgrade converted it): a writer of the
/// old release that was past its own stamp check can still have published above the fence.
pub(super) async fn require_alone(run: &Run<'_>, intent: &UpgradeIntent) -> Result<(), Stop> {
    let scope = scope_of(intent)?;
    inventory::verify(run, intent.source_format, &scope, Some(intent)).await?;
    Ok(())
}

/// The intent's refs as a scope.
pub(super) fn scope_of(intent: &UpgradeIntent) -> Result<Scope, Error> {
    Ok(Scope {
        attempt: intent
            .attempt_ulid()
            .ok_or_else(|| Error::internal("the intent's attempt is not a ULID"))?,
        branches: intent.branches.clone(),
        retire: intent.retire.clone(),
    })
}

pub(super) fn entry(key: &str, value: Option<String>) -> UpdateMapEntry {
    UpdateMapEntry {
        key: key.to_string(),
        value,
    }
}

/// One metadata-only commit on `base`, at exactly the next version. Rows and every other key stay.
pub(super) async fn commit_metadata(
    run: &Run<'_>,
    object: &str,
    base: Arc<Dataset>,
    entries: Vec<UpdateMapEntry>,
) -> CommitOutcome {
    let operation = Operation::UpdateConfig {
        config_updates: None,
        table_metadata_updates: None,
        schema_metadata_updates: Some(UpdateMap {
            update_entries: entries,
            replace: false,
        }),
        field_metadata_updates: HashMap::new(),
    };
    let transaction = TransactionBuilder::new(base.manifest().version, operation).build();
    run.root.commit_exact(object, base, transaction).await
}
