//! The legacy objects under `__history/` (steps 29, 30).
//!
//! Every object is created only if absent and must otherwise hold the same content; the directory comes
//! last, so its existence says that everything it lists was created.

use std::sync::Arc;

use async_trait::async_trait;
use graph::history::legacy::{self, Moment, ObjectObserver, Verified};
use graph::history::schema_archive::create_archive;

use crate::intent::UpgradeIntent;
use crate::observer::{Crossing, Observer, Progress};
use crate::report::{Code, Finding};
use crate::run::{Ready, Run, Stop};

/// Passes the creation of objects on to the run's observer.
struct Watch {
    observer: Arc<dyn Observer>,
    done: u64,
    total: u64,
}

#[async_trait]
impl ObjectObserver for Watch {
    async fn on_object(&mut self, key: &str, moment: Moment) -> graph::Result<()> {
        let key = key.to_string();
        match moment {
            Moment::Before => {
                self.observer
                    .crossing(&Crossing::BeforeObject { key })
                    .await
            }
            Moment::After => {
                self.done += 1;
                self.observer.progress(Progress {
                    phase: "writing legacy objects",
                    done: self.done,
                    total: self.total,
                });
                self.observer.crossing(&Crossing::AfterObject { key }).await
            }
        }
    }
}

/// Create what the plan lists, unless the directory already stood. Afterwards the planned bytes are
/// dropped; the census heads stay for the conversion.
pub(super) async fn write(run: &Run<'_>, ready: &mut Ready) -> Result<(), Stop> {
    let Some(planned) = &mut ready.planned else {
        return Ok(());
    };
    if planned.objects.plan != ready.intent.legacy {
        return Err(run.by_phase(vec![Finding::new(
            Code::Census(census::FindingCode::LegacyPlanChanged),
            format!(
                "the planned directory {} is not the one the intent binds, {}",
                planned.objects.plan.directory_sha256, ready.intent.legacy.directory_sha256
            ),
        )]));
    }
    for contract in &planned.census.contracts {
        create_archive(run.root, contract.contract()).await?;
    }
    let plan = &planned.objects.plan;
    let mut watch = Watch {
        observer: run.options.observer.clone(),
        done: 0,
        total: u64::from(plan.data_files)
            + u64::from(plan.id_shards)
            + u64::from(plan.writer_shards)
            + 1,
    };
    legacy::write(run.root, &planned.objects, &mut watch).await?;
    planned.objects.data_files = Vec::new();
    planned.census.chains = Vec::new();
    Ok(())
}

/// Read every legacy object back and require the bound digest and counts.
pub(super) async fn validate(run: &Run<'_>, intent: &UpgradeIntent) -> Result<Verified, Stop> {
    let differ = |why: String| {
        run.by_phase(vec![Finding::new(
            Code::LegacyObjectsDiffer,
            format!("the stored legacy objects are not the ones this upgrade binds: {why}"),
        )])
    };
    run.options.observer.progress(Progress {
        phase: "validating legacy objects",
        done: 0,
        total: 0,
    });
    let verified = match legacy::verify(run.root).await {
        Ok(Some(verified)) => verified,
        Ok(None) => return Err(differ("the directory is missing".into())),
        Err(e) if e.is_storage() => return Err(Stop::Hard(e)),
        Err(e) => return Err(differ(e.to_string())),
    };
    let mut plan = intent.legacy.clone();
    plan.directory_sha256.make_ascii_lowercase();
    verified
        .check_plan(&plan)
        .map_err(|e| differ(e.to_string()))?;
    Ok(verified)
}
