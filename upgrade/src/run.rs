//! One run: the steps in order, and how their stops become a report
//! (`docs/format/upgrade-protocol.md` 6).

use graph::Error;
use graph::history::legacy::PlannedObjects;
use graph::store::{ManifestVersion, Root};

use crate::intent::UpgradeIntent;
use crate::options::UpgradeOptions;
use crate::report::{Code, Finding, Mode, Outcome, Remedy, Report, UNROUTED};
use crate::steps;

/// Why a run stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The outcome is settled, with findings and what to do next.
    Settled {
        outcome: Outcome,
        findings: Vec<Finding>,
        remedy: Option<Remedy>,
        /// Whether the handler is UNROUTED whatever is known of the source.
        unrouted: bool,
    },
    /// A failure that is no named finding.
    Hard(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Hard(error)
    }
}

impl Stop {
    /// One finding that ends the run with `check_failed`.
    pub(crate) fn refused(code: Code, message: impl Into<String>) -> Self {
        Self::Settled {
            outcome: Outcome::CheckFailed,
            findings: vec![Finding::new(code, message)],
            remedy: None,
            unrouted: false,
        }
    }

    /// One finding that ends the run with `recovery_required`.
    pub(crate) fn recovery(code: Code, message: impl Into<String>, remedy: Remedy) -> Self {
        Self::Settled {
            outcome: Outcome::RecoveryRequired,
            findings: vec![Finding::new(code, message)],
            remedy: Some(remedy),
            unrouted: false,
        }
    }

    /// A run that ends well before its last step.
    pub(crate) fn success(outcome: Outcome) -> Self {
        Self::Settled {
            outcome,
            findings: Vec::new(),
            remedy: None,
            unrouted: false,
        }
    }
}

/// A run in progress.
pub(crate) struct Run<'a> {
    pub root: &'a Root,
    pub options: &'a UpgradeOptions,
    pub report: Report,
    /// The intent found on main; set exactly on a resumed run.
    pub pending: Option<UpgradeIntent>,
    /// Stamp of the source, once known.
    pub source: Option<u32>,
}

impl Run<'_> {
    /// Whether the graph is fenced: found so, or fenced by this run.
    pub(crate) fn fenced(&self) -> bool {
        self.report.last_durable_completed_boundary.is_some()
    }

    pub(crate) fn boundary(&mut self, boundary: impl Into<String>) {
        self.report.last_durable_completed_boundary = Some(boundary.into());
    }

    /// Findings that refuse an unfenced graph and need the fencing executable on a fenced one.
    pub(crate) fn by_phase(&self, findings: Vec<Finding>) -> Stop {
        let fenced = self.fenced();
        Stop::Settled {
            outcome: if fenced {
                Outcome::RecoveryRequired
            } else {
                Outcome::CheckFailed
            },
            findings,
            remedy: fenced.then_some(Remedy::Fencing),
            unrouted: false,
        }
    }

    fn handler(&self, unrouted: bool) -> String {
        match self.source {
            Some(source) if !unrouted => route_name(source),
            _ => UNROUTED.to_string(),
        }
    }

    fn settle(&mut self, stop: Stop) {
        let (outcome, findings, remedy, unrouted) = match stop {
            Stop::Settled {
                outcome,
                findings,
                remedy,
                unrouted,
            } => (outcome, findings, remedy, unrouted),
            Stop::Hard(error) if self.fenced() => (
                Outcome::RecoveryRequired,
                vec![Finding::new(Code::UpgradeInterrupted, error.to_string())],
                Some(Remedy::Rerun),
                false,
            ),
            Stop::Hard(error) => (
                Outcome::CheckFailed,
                vec![Finding::new(Code::PreflightFailed, error.to_string())],
                None,
                false,
            ),
        };
        self.report.outcome = outcome;
        self.report.findings.extend(findings);
        self.report.recovery = remedy.map(|remedy| {
            remedy.recovery(
                &self.handler(unrouted),
                &self.report.location,
                self.report.target_format,
            )
        });
        if outcome == Outcome::Completed {
            self.report
                .completed_handlers
                .clone_from(&self.report.route);
        }
    }
}

/// `history-lance-files-v{stamp}-to-v14`.
pub(crate) fn route_name(source: u32) -> String {
    format!("history-lance-files-v{source}-to-v14")
}

/// What the preflight hands to the writing steps.
pub(crate) struct Ready {
    /// The intent that is, or will be, on main.
    pub intent: UpgradeIntent,
    /// Planned objects and census heads; `None` when the directory already stands.
    pub planned: Option<Planned>,
    /// The contract the intent binds: main's at its pinned version.
    pub contract: std::sync::Arc<legacy::SourceContract>,
    /// Reads source versions.
    pub reader: legacy::LegacySource,
    /// Main at its pinned version.
    pub main: ManifestVersion,
}

/// A census and what was cut from it.
pub(crate) struct Planned {
    pub objects: PlannedObjects,
    pub census: census::Census,
}

/// Check or upgrade the graph at `root`. Every way it can end is a report.
pub async fn upgrade(root: &Root, options: &UpgradeOptions) -> Report {
    let mode = if options.check {
        Mode::Check
    } else {
        Mode::Execute
    };
    let mut run = Run {
        root,
        options,
        report: Report::new(mode, root.uri().to_string(), options.target),
        pending: None,
        source: None,
    };
    let stop = match steps::all(&mut run).await {
        Ok(()) => Stop::success(Outcome::Completed),
        Err(stop) => stop,
    };
    run.settle(stop);
    run.report
}
