//! What a run reports: one serializable value, rendered twice (`docs/format/upgrade-protocol.md` 3, 4).

mod human;
mod remedy;

pub use human::render;
pub use remedy::{Recovery, Remedy};

use serde::Serialize;

/// Handler named when no route is known.
pub const UNROUTED: &str = "history-lance-files-to-v14";

/// `check` or `execute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reads only.
    Check,
    /// Converts.
    Execute,
}

impl Mode {
    /// As reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Execute => "execute",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// `--check`, and every check passed.
    CheckPassed,
    /// The graph is served as it is.
    AlreadyCurrent,
    /// Converted, validated and activated in this run.
    Completed,
    /// Refused before the fence; nothing was converted.
    CheckFailed,
    /// Declared by the protocol; no path sets it.
    Interrupted,
    /// Something unfinished has to be finished first.
    RecoveryRequired,
}

impl Outcome {
    /// As reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CheckPassed => "check_passed",
            Self::AlreadyCurrent => "already_current",
            Self::Completed => "completed",
            Self::CheckFailed => "check_failed",
            Self::Interrupted => "interrupted",
            Self::RecoveryRequired => "recovery_required",
        }
    }

    /// Whether the command succeeded (exit code 0).
    pub fn is_success(self) -> bool {
        matches!(
            self,
            Self::CheckPassed | Self::AlreadyCurrent | Self::Completed
        )
    }
}

/// Stable finding codes (`docs/format/upgrade-protocol.md` 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// A pending key this build cannot own.
    UnknownUpgradeOwnership,
    /// A resumable upgrade.
    PendingUpgrade,
    /// Leftovers of the build that wrote the root.
    SourceRecoveryRequired,
    /// The target is not 14.
    UnsupportedTarget,
    /// The stamp is above 14.
    NewerThanBinary,
    /// Not convertible.
    UnsupportedSource,
    /// Informational: a live 0.11.x lock is or will be retired.
    SchemaApplyLockRetired,
    /// Leftovers under `__history/`.
    HistoryObjectsPresent,
    /// A finding of the census or the plan.
    Census(census::FindingCode),
    /// Stored legacy or archive content is not the bound one.
    LegacyObjectsDiffer,
    /// The fence commit's outcome is unknown.
    FencePublicationAttempted,
    /// A failure before anything was converted.
    PreflightFailed,
    /// A failure after the fence.
    UpgradeInterrupted,
}

impl Code {
    /// As reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownUpgradeOwnership => "unknown_upgrade_ownership",
            Self::PendingUpgrade => "pending_upgrade",
            Self::SourceRecoveryRequired => "source_recovery_required",
            Self::UnsupportedTarget => "unsupported_target",
            Self::NewerThanBinary => "newer_than_binary",
            Self::UnsupportedSource => "unsupported_source",
            Self::SchemaApplyLockRetired => "schema_apply_lock_retired",
            Self::HistoryObjectsPresent => "history_objects_present",
            Self::Census(code) => code.as_str(),
            Self::LegacyObjectsDiffer => "legacy_objects_differ",
            Self::FencePublicationAttempted => "fence_publication_attempted",
            Self::PreflightFailed => "preflight_failed",
            Self::UpgradeInterrupted => "upgrade_interrupted",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One finding; exactly these two members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable code.
    pub code: Code,
    /// What was found, what was expected, what to do.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<census::Finding> for Finding {
    fn from(finding: census::Finding) -> Self {
        Self::new(
            match finding.code {
                census::FindingCode::UnsupportedSource => Code::UnsupportedSource,
                other => Code::Census(other),
            },
            finding.message,
        )
    }
}

/// Counts of what was or would be read and written (`docs/format/upgrade-protocol.md` 3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Live refs, main included, schema-apply locks not.
    pub live_refs: u64,
    /// Retired refs, locks included.
    pub retired_refs: u64,
    /// Logical names whose writing ref no longer exists.
    pub orphan_writers: u64,
    /// Records over all chains.
    pub legacy_commits: u64,
    /// Retained own versions without a graph commit.
    pub bookkeeping_versions: u64,
    /// Merged parents held by no ref.
    pub absent_parents: u64,
    /// Planned data files.
    pub data_files: u64,
    /// Planned id shards.
    pub id_shards: u64,
    /// Planned writer shards.
    pub writer_shards: u64,
    /// Distinct contracts named by records.
    pub schema_contents: u64,
    /// Head scans, version reads and fresh-fork reads.
    pub census_reads: u64,
    /// Rows the version reads scan.
    pub census_cells: u64,
    /// Sum of the record measure.
    pub legacy_bytes: u64,
    /// Tables opened for the column comparison.
    pub table_opens: u64,
}

/// The report; every field is always present, absent values are null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Check or execute.
    pub mode: Mode,
    /// How the run ended.
    pub outcome: Outcome,
    /// Normalised root.
    pub location: String,
    /// Identity domain of the contract; set once the contract is read.
    pub graph_identity: Option<String>,
    /// Stamp on main at the start of the run.
    pub observed_format: Option<u32>,
    /// Requested target.
    pub target_format: u32,
    /// Whether the target was not given.
    pub target_defaulted: bool,
    /// One route name once routing happened.
    pub route: Vec<String>,
    /// The route name, with `completed` only.
    pub completed_handlers: Vec<String>,
    /// Findings in order.
    pub findings: Vec<Finding>,
    /// The furthest durable step.
    pub last_durable_completed_boundary: Option<String>,
    /// What to do next, with `recovery_required` only.
    pub recovery: Option<Recovery>,
    /// Counts; all zero until planned.
    pub work: Work,
    /// Advisory, check only, left out when it is 0: tables of main with versions above every pin, whose rows no
    /// branch of the upgraded graph shows. Not a member of the protocol.
    #[serde(skip_serializing_if = "is_zero")]
    pub tables_above_pin: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Report {
    /// The report of a run that has not looked at anything yet.
    pub fn new(mode: Mode, location: String, target: Option<u32>) -> Self {
        Self {
            mode,
            outcome: Outcome::CheckFailed,
            location,
            graph_identity: None,
            observed_format: None,
            target_format: target.unwrap_or(graph::stamp::CURRENT),
            target_defaulted: target.is_none(),
            route: Vec::new(),
            completed_handlers: Vec::new(),
            findings: Vec::new(),
            last_durable_completed_boundary: None,
            recovery: None,
            work: Work::default(),
            tables_above_pin: 0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_the_order_of_the_protocol_with_nulls_present() {
        let report = Report::new(Mode::Check, "/g".into(), None);
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"mode":"check","outcome":"check_failed","location":"/g","graph_identity":null,"observed_format":null,"target_format":14,"target_defaulted":true,"route":[],"completed_handlers":[],"findings":[],"last_durable_completed_boundary":null,"recovery":null,"work":{"live_refs":0,"retired_refs":0,"orphan_writers":0,"legacy_commits":0,"bookkeeping_versions":0,"absent_parents":0,"data_files":0,"id_shards":0,"writer_shards":0,"schema_contents":0,"census_reads":0,"census_cells":0,"legacy_bytes":0,"table_opens":0}}"#
        );
    }

    #[test]
    fn a_finding_is_code_and_message() {
        let finding = Finding::new(Code::Census(census::FindingCode::LegacyLineageCorrupt), "m");
        assert_eq!(
            serde_json::to_string(&finding).unwrap(),
            r#"{"code":"legacy_lineage_corrupt","message":"m"}"#
        );
    }

    #[test]
    fn outcomes_spell_alike_in_both_renderings() {
        for outcome in [
            Outcome::CheckPassed,
            Outcome::AlreadyCurrent,
            Outcome::Completed,
            Outcome::CheckFailed,
            Outcome::Interrupted,
            Outcome::RecoveryRequired,
        ] {
            assert_eq!(
                serde_json::to_string(&outcome).unwrap(),
                format!("\"{}\"", outcome.as_str())
            );
        }
    }
}
