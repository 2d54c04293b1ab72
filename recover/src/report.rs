//! The report: one value, rendered as JSON and for a person.

mod human;

pub use human::render;

use serde::Serialize;

use crate::judge::Table;
use crate::leftover::StagingReport;
use crate::plan::{Decision, Plan};
use crate::sidecar::{EffectPhase, Sidecar};

/// Whether a run may change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only reads.
    Check,
    /// Settles.
    Confirm,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No sidecar and nothing staged is there.
    Clean,
    /// Everything can be settled.
    Pending,
    /// Everything was settled.
    Recovered,
    /// A sidecar stays.
    Refused,
    /// An effect failed; a rerun goes on from there.
    Failed,
}

/// What became of one sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It can be settled.
    Planned,
    /// It is settled.
    Settled,
    /// It stays.
    Refused,
    /// It was left alone because an earlier one stays.
    NotAttempted,
    /// An effect failed.
    Failed,
}

/// One sidecar.
#[derive(Debug, Clone, Serialize)]
pub struct SidecarReport {
    /// Its name below `__recovery/`.
    pub file: String,
    /// Operation; `None` when the file cannot be understood, as the next six.
    pub operation_id: Option<String>,
    /// Writer.
    pub writer_kind: Option<&'static str>,
    /// `Armed` or `EffectsConfirmed`; `None` where the kind has no phase.
    pub phase: Option<&'static str>,
    /// Author of the write.
    pub actor_id: Option<String>,
    /// Logical branch.
    pub branch: Option<String>,
    /// Microseconds since the epoch.
    pub started_at: Option<i64>,
    /// Seconds since then.
    pub age_seconds: Option<i64>,
    /// What is to be done.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// What became of it.
    pub status: Status,
    /// Its tables.
    pub tables: Vec<Table>,
    /// The effects, in order.
    pub actions: Vec<String>,
    /// What an operator can do, when it stays.
    pub remedy: Option<String>,
    /// Why an effect failed.
    pub error: Option<String>,
}

/// The report of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Check or confirm.
    pub mode: Mode,
    /// Stamp of main.
    pub stamp: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Staging copies of the schema that no sidecar explains.
    pub staging: Option<StagingReport>,
    /// The sidecars, oldest first.
    pub sidecars: Vec<SidecarReport>,
    /// What the operator should know besides.
    pub notes: Vec<String>,
}

impl SidecarReport {
    /// A file that cannot be understood.
    pub fn unreadable(file: &str, why: &str) -> Self {
        Self {
            file: file.to_string(),
            operation_id: None,
            writer_kind: None,
            phase: None,
            actor_id: None,
            branch: None,
            started_at: None,
            age_seconds: None,
            decision: Decision::Refuse,
            reason: why.to_string(),
            status: Status::Refused,
            tables: Vec::new(),
            actions: Vec::new(),
            remedy: Some(format!(
                "nothing is changed while __recovery/{file} cannot be understood. Restore it, or the whole root, from a \
                 backup. Remove it only when it is certain that the write it stood for left nothing in any table"
            )),
            error: None,
        }
    }

    /// A sidecar and its plan.
    pub fn of(file: &str, sidecar: &Sidecar, plan: &Plan, now: i64, status: Status) -> Self {
        let started = sidecar.started_micros();
        Self {
            file: file.to_string(),
            operation_id: Some(sidecar.operation_id.clone()),
            writer_kind: Some(sidecar.writer_kind.as_str()),
            phase: sidecar.payload().map(|p| match p.effect_phase {
                EffectPhase::Armed => "Armed",
                EffectPhase::EffectsConfirmed => "EffectsConfirmed",
            }),
            actor_id: sidecar.actor_id.clone(),
            branch: Some(sidecar.branch_name().to_string()),
            started_at: started,
            age_seconds: started.map(|s| now.saturating_sub(s) / 1_000_000),
            decision: plan.decision,
            reason: plan.reason.clone(),
            status,
            tables: plan.tables.clone(),
            actions: plan.steps.iter().map(|s| s.describe()).collect(),
            remedy: (plan.decision == Decision::Refuse).then(|| remedy(file)),
            error: None,
        }
    }
}

fn remedy(file: &str) -> String {
    format!(
        "__recovery/{file} and everything it names stay as they are. Take a backup of the whole root; then undo what the \
         reason names and run omnigraph recover --check again, or restore the whole root from a backup of before the \
         write"
    )
}

impl Report {
    /// A report without sidecars.
    pub fn new(mode: Mode, stamp: u32) -> Self {
        Self {
            mode,
            stamp,
            outcome: Outcome::Clean,
            staging: None,
            sidecars: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Nothing is attempted because a file cannot be understood.
    pub fn hold_all(&mut self) {
        for sidecar in &mut self.sidecars {
            if sidecar.status == Status::Planned {
                sidecar.status = Status::NotAttempted;
            }
        }
    }

    /// Derive the outcome from the sidecars.
    pub fn conclude(&mut self) {
        let staged = self.staging.iter().map(|s| s.status);
        let all = || staged.clone().chain(self.sidecars.iter().map(|s| s.status));
        let any = |status: Status| all().any(|s| s == status);
        self.outcome = if all().next().is_none() {
            Outcome::Clean
        } else if any(Status::Failed) {
            Outcome::Failed
        } else if any(Status::Refused) || any(Status::NotAttempted) {
            Outcome::Refused
        } else if self.mode == Mode::Check {
            Outcome::Pending
        } else {
            Outcome::Recovered
        };
    }
}
