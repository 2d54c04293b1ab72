//! One run of `omnigraph recover`.

use graph::Result;
use graph::model::names::SCHEMA_APPLY_LOCK;
use graph::store::Root;
use legacy::publish::BranchCatalog;

use crate::apply::{Applied, apply};
use crate::leftover;
use crate::listing::{self, Listed};
use crate::plan::{Decision, Pass, Plan, plan};
use crate::report::{Mode, Outcome, Report, SidecarReport, Status};
use crate::sidecar::WriterKind;

/// Plans of one sidecar in all, when something changes between plan and effect.
const ATTEMPTS: u32 = 6;

/// How to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecoverOptions {
    /// Perform the plans; without it nothing is written.
    pub confirm: bool,
    /// Microseconds since the epoch; the clock when `None`.
    pub now: Option<i64>,
}

fn clock() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()
        .and_then(|d| i64::try_from(d.as_micros()).ok())
        .unwrap_or(0)
}

/// Look at every sidecar of a root of stamp 6, 8 or 9 and, with `confirm`, settle them oldest first. Another stamp is
/// [`graph::Error::Refused`]. With a file that cannot be understood nothing is changed; a sidecar that is refused ends
/// the run before the later ones.
pub async fn recover(root: &Root, options: &RecoverOptions) -> Result<Report> {
    let main = BranchCatalog::read(root, None).await?;
    let now = options.now.unwrap_or_else(clock);
    let listed = listing::list(root).await?;
    let mode = if options.confirm {
        Mode::Confirm
    } else {
        Mode::Check
    };
    let mut report = Report::new(mode, main.stamp.get());
    report.notes = notes(root).await?;
    let readable = listed.iter().all(|l| l.sidecar.is_ok());
    let confirm = options.confirm && readable;
    if confirm {
        prove_store(root).await?;
    }
    let schema_apply = |l: &Listed| {
        let kind = l.sidecar.as_ref().map(|s| s.writer_kind);
        kind.is_ok_and(|k| k == WriterKind::SchemaApply)
    };
    // A file that cannot be understood may be the one that explains what is staged.
    if readable && !listed.iter().any(schema_apply) {
        report.staging = leftover::settle(root, &main, confirm).await?;
    }
    let held = report
        .staging
        .as_ref()
        .is_some_and(|s| s.status == Status::Refused);
    if confirm && !held {
        settle(root, &listed, now, &mut report).await?;
    } else {
        let pass = Pass {
            root,
            listed: &listed,
            now,
        };
        for entry in &listed {
            report.sidecars.push(look(&pass, entry).await);
        }
        if options.confirm {
            report.hold_all();
        }
    }
    report.conclude();
    Ok(report)
}

/// Exact commits rest on conditional creation: a remote store has to honour it before anything is written.
pub(crate) async fn prove_store(root: &Root) -> Result<()> {
    root.require_conditional_setting()?;
    match root.is_remote() {
        true => root.prove_conditional_create().await,
        false => Ok(()),
    }
}

/// What the operator should know beside the sidecars.
async fn notes(root: &Root) -> Result<Vec<String>> {
    let refs = graph::refs::live_refs(root).await?;
    let lock = refs.iter().find(|r| r.logical() == SCHEMA_APPLY_LOCK);
    Ok(lock
        .map(|lock| {
            format!(
                "the ref {} of a schema apply is live; recovery leaves it, releases refuse to write while it is there, and \
                 omnigraph upgrade retires it at stamps 8 and 9",
                lock.native
            )
        })
        .into_iter()
        .collect())
}

async fn look(pass: &Pass<'_>, entry: &Listed) -> SidecarReport {
    match &entry.sidecar {
        Err(why) => SidecarReport::unreadable(&entry.file, why),
        Ok(sidecar) => {
            let planned = plan(pass, &entry.file, sidecar).await;
            let status = match planned.decision {
                Decision::Refuse => Status::Refused,
                _ => Status::Planned,
            };
            SidecarReport::of(&entry.file, sidecar, &planned, pass.now, status)
        }
    }
}

/// Settle one after the other, each planned against what the earlier ones left.
async fn settle(root: &Root, listed: &[Listed], now: i64, report: &mut Report) -> Result<()> {
    let mut open = true;
    for entry in listed {
        if !open {
            let pass = Pass { root, listed, now };
            let mut shown = look(&pass, entry).await;
            shown.status = Status::NotAttempted;
            report.sidecars.push(shown);
            continue;
        }
        if let Some(done) = settle_one(root, &entry.file, now).await? {
            open = done.status == Status::Settled;
            report.sidecars.push(done);
        }
    }
    Ok(())
}

async fn settle_one(root: &Root, file: &str, now: i64) -> Result<Option<SidecarReport>> {
    let mut last: Option<SidecarReport> = None;
    for _ in 0..ATTEMPTS {
        // The others are listed again: which refs they claim decides what may be removed.
        let listed = listing::list(root).await?;
        let Some(entry) = listing::reread(root, file).await? else {
            return Ok(last);
        };
        let sidecar = match &entry.sidecar {
            Ok(sidecar) => sidecar,
            Err(why) => return Ok(Some(SidecarReport::unreadable(file, why))),
        };
        let pass = Pass {
            root,
            listed: &listed,
            now,
        };
        let planned: Plan = plan(&pass, file, sidecar).await;
        let shown = |status| SidecarReport::of(file, sidecar, &planned, now, status);
        if planned.decision == Decision::Refuse {
            return Ok(Some(shown(Status::Refused)));
        }
        match apply(&pass, file, sidecar, &planned).await {
            Ok(Applied::Done) => return Ok(Some(shown(Status::Settled))),
            Ok(Applied::Again(why)) => {
                let mut again = shown(Status::Failed);
                again.error = Some(why);
                last = Some(again);
            }
            Err(e) => {
                let mut failed = shown(Status::Failed);
                failed.error = Some(e.to_string());
                return Ok(Some(failed));
            }
        }
    }
    Ok(last)
}

impl Report {
    /// With `outcome` [`Outcome::Refused`] nothing, or not everything, was settled.
    pub fn is_success(&self) -> bool {
        !matches!(self.outcome, Outcome::Refused | Outcome::Failed)
    }
}
