//! What an operator does next (`docs/format/upgrade-protocol.md` 3, remedies).

use graph::stamp::shell_word;
use serde::Serialize;

/// The `recovery` member of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// The handler that did not finish.
    pub failed_handler: String,
    /// Which executable can go on.
    pub executable_compatibility: String,
    /// What to do, in order.
    pub action: String,
}

/// The five remedies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// R: rerun this executable.
    Rerun,
    /// P: preserve, and finish with the executable that started.
    Preserve,
    /// F: finish with the executable that fenced.
    Fencing,
    /// S1: settle recovery sidecars with the build that wrote them.
    Sidecars,
    /// S2: settle a staged schema apply with 0.11.x.
    Staging,
}

impl Remedy {
    /// The report member for this remedy.
    pub fn recovery(self, handler: &str, location: &str, target: u32) -> Recovery {
        let word = shell_word(location);
        let (compatibility, action) = match self {
            Self::Rerun => (
                "this omnigraph executable",
                format!(
                    "keep the graph offline, keep the pre-attempt backup, then rerun without --check: \
                     omnigraph upgrade {word} --to-format {target}"
                ),
            ),
            Self::Preserve => (
                "the omnigraph executable that started the conversion",
                format!(
                    "keep the graph offline, preserve the root and the backup, look with the read-only \
                     omnigraph upgrade {word} --check, and finish with the executable that started the \
                     conversion; do not rerun without --check with this one"
                ),
            ),
            Self::Fencing => (
                "the omnigraph executable that fenced the graph",
                "keep the graph offline, preserve the root and the backup, and finish with the executable \
                 that fenced the graph, not with this one; if a legacy object was modified, restore the \
                 whole root from the backup first"
                    .to_string(),
            ),
            Self::Sidecars => (
                "the omnigraph build that wrote the recovery sidecars",
                format!(
                    "stop all writers, keep a backup of the root, open the graph read-write with the \
                     build that wrote the sidecars so that it settles them (or settle them here: omnigraph \
                     recover {word} --check, then --confirm), then check again: omnigraph upgrade {word} \
                     --check"
                ),
            ),
            Self::Staging => (
                "omnigraph 0.11.x",
                format!(
                    "stop all writers, keep a backup of the root, open the graph read-write with \
                     omnigraph 0.11.x so that the schema apply finishes or rolls back (or settle it here: \
                     omnigraph recover {word} --check, then --confirm), then check again: omnigraph upgrade \
                     {word} --check"
                ),
            ),
        };
        Recovery {
            failed_handler: handler.to_string(),
            executable_compatibility: compatibility.to_string(),
            action,
        }
    }
}
