//! What the behaviours share: a big stack, copies of fixture roots, runs, and what a run leaves.

mod case;
mod left;
mod stopper;

use std::future::Future;

pub use case::{Case, Kind, attempt};
pub use left::{Left, left};
pub use stopper::{Act, Phases, STOP, Stopper};

use fixtures::on_deep_stack;
use fixtures::tree::tree_changes;
use upgrade::{Outcome, Report, UpgradeOptions, Work};

/// Run a test on a runtime with deep stacks.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    on_deep_stack(test).unwrap();
}

/// Finding codes in order.
pub fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.code.as_str()).collect()
}

/// The only finding's message.
pub fn message(report: &Report) -> &str {
    assert_eq!(report.findings.len(), 1, "{report:#?}");
    &report.findings[0].message
}

/// Require every fragment in the text.
pub fn says(text: &str, fragments: &[&str]) {
    for fragment in fragments {
        assert!(text.contains(fragment), "'{fragment}' is not in: {text}");
    }
}

/// The route name of a source.
pub fn route(stamp: u32) -> String {
    format!("history-lance-files-v{stamp}-to-v14")
}

/// Handler of a run without a route.
pub const UNROUTED: &str = "history-lance-files-to-v14";

/// What a refusal must report besides changing nothing.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a> {
    pub code: &'a str,
    /// Stamp of the route, if the run gets that far.
    pub route: Option<u32>,
    /// Whether the contract was read.
    pub identity: bool,
    /// Fragments of the one message.
    pub says: &'a [&'a str],
    /// Compatibility and handler of the recovery, when there is one.
    pub recovery: Option<(&'a str, &'a str)>,
}

impl Refused<'static> {
    /// A finding before the fence, after routing and the contract.
    pub const fn routed(code: &'static str, route: u32, says: &'static [&'static str]) -> Self {
        Self {
            code,
            route: Some(route),
            identity: true,
            says,
            recovery: None,
        }
    }
}

impl Refused<'_> {
    /// Check and execute refuse alike, twice, with the bytes of the root untouched.
    pub async fn by(self, case: &Case) -> Report {
        self.with(case, UpgradeOptions::default()).await
    }

    /// The same with options.
    pub async fn with(self, case: &Case, options: UpgradeOptions) -> Report {
        let before = case.digest();
        let check = case
            .run(UpgradeOptions {
                check: true,
                ..options.clone()
            })
            .await;
        let execute = case
            .run(UpgradeOptions {
                check: false,
                ..options
            })
            .await;
        assert_eq!(
            tree_changes(&before, &case.digest()),
            [""; 0],
            "{execute:#?}"
        );
        for report in [&check, &execute] {
            self.holds(report);
        }
        let mode_aside = Report {
            mode: check.mode,
            ..execute.clone()
        };
        assert_eq!(check, mode_aside);
        execute
    }

    /// The report says what is expected.
    pub fn holds(&self, report: &Report) {
        let outcome = match self.recovery {
            None => Outcome::CheckFailed,
            Some(_) => Outcome::RecoveryRequired,
        };
        assert_eq!(report.outcome, outcome, "{report:#?}");
        assert_eq!(codes(report), [self.code], "{report:#?}");
        says(message(report), self.says);
        assert_eq!(report.work, Work::default());
        let routes: Vec<String> = self.route.map(route).into_iter().collect();
        assert_eq!(report.route, routes, "{report:#?}");
        assert_eq!(
            report.graph_identity.is_some(),
            self.identity,
            "{report:#?}"
        );
        assert_eq!(report.last_durable_completed_boundary, None);
        assert!(report.completed_handlers.is_empty());
        let recovery = report.recovery.as_ref().map(|r| {
            (
                r.executable_compatibility.as_str(),
                r.failed_handler.as_str(),
            )
        });
        assert_eq!(recovery, self.recovery);
    }
}
