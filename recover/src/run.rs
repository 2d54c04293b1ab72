//! One run of `omnigraph recover`.

use graph::Result;
use graph::store::Root;
use legacy::publish::BranchCatalog;

use crate::apply::{Applied, apply};
use crate::listing::{self, Listed};
use crate::plan::{Decision, Pass, Plan, plan};
use crate::report::{Mode, Outcome, Report, SidecarReport, Status};

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
    if options.confirm && listed.iter().all(|l| l.sidecar.is_ok()) {
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
