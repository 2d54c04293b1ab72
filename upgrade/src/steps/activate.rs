//! Activation: the metadata commit that removes the intent from main and opens the graph (step 33).

use graph::Error;
use graph::stamp::PENDING_KEY;
use graph::store::CommitOutcome;

use super::fence::{commit_metadata, entry};
use crate::intent::UpgradeIntent;
use crate::observer::Crossing;
use crate::receipt::WRITTEN_SINCE;
use crate::run::{Run, Stop};

/// Remove the pending key as version pinned + 3 of main.
pub(super) async fn activate(run: &mut Run<'_>, intent: &UpgradeIntent) -> Result<(), Stop> {
    let observer = run.options.observer.clone();
    let main = run.root.open_manifest(None, None).await?;
    let pinned = intent.branches.last().map_or(0, |b| b.version);
    let expected = pinned.saturating_add(2);
    if main.version != expected {
        return Err(Stop::Hard(Error::internal(format!(
            "main stands at version {}, expected its conversion at version {expected}: something wrote to \
             the graph while it was being upgraded{WRITTEN_SINCE}",
            main.version
        ))));
    }
    observer.crossing(&Crossing::BeforeActivation).await?;
    match commit_metadata(
        run,
        "the activation of main",
        main.dataset,
        vec![entry(PENDING_KEY, None)],
    )
    .await
    {
        CommitOutcome::Landed(_) => {}
        CommitOutcome::Lost(e) | CommitOutcome::Unknown(e) => return Err(Stop::Hard(e)),
    }
    run.boundary("activated");
    observer.crossing(&Crossing::AfterActivation).await?;
    Ok(())
}
