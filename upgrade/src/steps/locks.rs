//! Retiring the locks of schema applies that no longer run (step 28). Their trees stay.

use graph::refs;

use crate::intent::UpgradeIntent;
use crate::observer::Crossing;
use crate::run::{Run, Stop};

/// Retire every lock of the intent; those already retired are left as they are.
pub(super) async fn retire(run: &Run<'_>, intent: &UpgradeIntent) -> Result<(), Stop> {
    let observer = &run.options.observer;
    for lock in &intent.retire {
        refs::retire(run.root, &lock.native, &lock.identity, |step| {
            let crossing = Crossing::BeforeLock {
                native: lock.native.clone(),
                step,
            };
            async move { observer.crossing(&crossing).await }
        })
        .await?;
        observer
            .crossing(&Crossing::AfterLock {
                native: lock.native.clone(),
            })
            .await?;
    }
    Ok(())
}
