//! The steps of a run, in order.

mod activate;
mod branches;
mod contract;
mod convert;
mod fence;
mod inventory;
mod legacy_objects;
mod locks;
mod plan;
mod preflight;
mod tables;
mod validate;

use crate::run::{Run, Stop};

/// Every step of `docs/format/upgrade-protocol.md` 6.
pub(crate) async fn all(run: &mut Run<'_>) -> Result<(), Stop> {
    let mut ready = preflight::preflight(run).await?;
    if run.root.is_remote() {
        // The proof writes, so a check cannot give it.
        run.root.prove_conditional_create().await?;
    }
    if run.pending.is_none() {
        fence::fence(run, &ready).await?;
    }
    fence::require_alone(run, &ready.intent).await?;
    locks::retire(run, &ready.intent).await?;
    legacy_objects::write(run, &mut ready).await?;
    let written = legacy_objects::validate(run, &ready.intent).await?;
    run.boundary("legacy_written");
    convert::convert_all(run, &ready, &written).await?;
    validate::validate_all(run, &ready).await?;
    activate::activate(run, &ready.intent).await
}
