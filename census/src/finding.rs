//! Findings of the census (`docs/format/legacy-manifest.md` 9).

use ::graph::Error;

/// Most ids, refs or versions one message lists.
const LISTED: usize = 20;

/// Stable codes of the census and the plan (9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindingCode {
    /// A head or version is not admitted, an id is no canonical ULID, or a commit has no contract.
    UnsupportedSource,
    /// Commits or versions that the history needs are gone.
    LegacyLineageIncomplete,
    /// The rows of the history contradict each other.
    LegacyLineageCorrupt,
    /// A version without a commit changed a table.
    LegacyUncommittedChange,
    /// One record is above its bound.
    LegacyRecordOverBound,
    /// The census as a whole is above a bound.
    LegacyCensusOverBound,
    /// The directory of legacy objects is above its bound.
    LegacyDirectoryOverBound,
    /// A live head is not what its head commit recorded.
    LegacyHeadRecordMismatch,
    /// A resumed run plans other objects than its intent binds.
    LegacyPlanChanged,
}

impl FindingCode {
    /// The code as reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnsupportedSource => "unsupported_source",
            Self::LegacyLineageIncomplete => "legacy_lineage_incomplete",
            Self::LegacyLineageCorrupt => "legacy_lineage_corrupt",
            Self::LegacyUncommittedChange => "legacy_uncommitted_change",
            Self::LegacyRecordOverBound => "legacy_record_over_bound",
            Self::LegacyCensusOverBound => "legacy_census_over_bound",
            Self::LegacyDirectoryOverBound => "legacy_directory_over_bound",
            Self::LegacyHeadRecordMismatch => "legacy_head_record_mismatch",
            Self::LegacyPlanChanged => "legacy_plan_changed",
        }
    }
}

impl std::fmt::Display for FindingCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a graph cannot be converted as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable code.
    pub code: FindingCode,
    /// What was found where, and what was expected.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(FindingCode::UnsupportedSource, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(FindingCode::LegacyLineageCorrupt, message)
    }

    pub(crate) fn incomplete(message: impl Into<String>) -> Self {
        Self::new(FindingCode::LegacyLineageIncomplete, message)
    }
}

/// Why the census stopped: a finding, or storage and unreadable rows (9.3).
#[derive(Debug)]
pub(crate) enum Stop {
    Finding(Finding),
    Failed(Error),
}

impl From<Finding> for Stop {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// How messages call a ref.
pub(crate) fn label(native: Option<&str>) -> String {
    native.map_or_else(|| "main".to_string(), |name| format!("branch ref '{name}'"))
}

/// At most 20 items, and how many more there are.
pub(crate) fn listed<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(LISTED).map(|i| i.to_string()).collect();
    let more = items.count();
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stop_at_twenty() {
        assert_eq!(listed([1, 2]), "1, 2");
        assert!(listed(1..=20).ends_with("19, 20"));
        assert!(listed(1..=23).ends_with("19, 20 and 3 more"));
    }
}
