//! Why a write did not happen.
//!
//! The class decides what a caller does: a changed read set is prepared again or reported, a key conflict and a
//! limit are final, an unknown outcome is looked up by commit id, never repeated blindly.

/// Result with this crate's [`WriteError`].
pub type Result<T, E = WriteError> = std::result::Result<T, E>;

/// The failure of a write. Nothing of the write is visible unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What the write had read is not so any more (`docs/format/manifest-v14.md` 9 step 2).
    #[error(
        "{member} changed while the write was prepared: expected {expected}, found {actual}; nothing was \
         written, run the command again"
    )]
    ReadSetChanged {
        /// `branch_identifier:{branch}`, `graph_head:{branch}`, `prepared_schema_manifest_version`,
        /// `dataset_binding:{identity}` or `native_ref:{table_key}`.
        member: String,
        /// What was read.
        expected: String,
        /// What stands there now.
        actual: String,
    },
    /// A table moved past the version that the write was prepared on.
    #[error(
        "{table_key} is published at version {actual}, the write was prepared on version {expected}; nothing was \
         written, run the command again"
    )]
    VersionMismatch {
        /// Alias of the table.
        table_key: String,
        /// Prepared on; 0 for a table without a pin.
        expected: u64,
        /// Published now.
        actual: u64,
    },
    /// A strict insert met an id that exists.
    #[error("{}{table_key} {}; append never replaces a row, use --mode merge to update it", at_line(*line), held(key, *earlier))]
    KeyConflict {
        /// Alias of the table.
        table_key: String,
        /// The id.
        key: String,
        /// Line of the input, 1-based.
        line: Option<u64>,
        /// The line that has the id too, when it is one of the input.
        earlier: Option<u64>,
    },
    /// The write is too large for its kind; decided before any effect.
    #[error("{resource} is {actual}, above the limit of {limit}; {advice}")]
    ResourceLimitExceeded {
        /// What was measured, in words.
        resource: String,
        /// The bound.
        limit: u64,
        /// What was found; a lower bound when measuring stopped there.
        actual: u64,
        /// What to do instead.
        advice: String,
    },
    /// The rows break a rule of the schema or refer to rows that do not exist.
    #[error("{0}")]
    Invalid(String),
    /// The commit was sent and it is not known whether it landed.
    #[error(
        "it is not known whether commit {commit_id} landed ({cause}); nothing may be repeated before that is known. \
         Ask with: omnigraph commit show {commit_id} {location}"
    )]
    InDoubt {
        /// The id of the commit that was sent.
        commit_id: String,
        /// The graph, ready to paste.
        location: String,
        /// What went wrong.
        cause: String,
    },
    /// A record of the input.
    #[error(transparent)]
    Record(#[from] records::RecordError),
    /// Reading or writing the graph.
    #[error(transparent)]
    Graph(#[from] graph::Error),
}

fn held(key: &str, earlier: Option<u64>) -> String {
    match earlier {
        None => format!("already holds id \"{key}\""),
        Some(line) => format!("has id \"{key}\" on line {line} already"),
    }
}

fn at_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |l| format!("line {l}: "))
}

impl WriteError {
    /// Whether the attempt may be prepared anew from a fresh read: nothing landed, and only what was read moved.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::ReadSetChanged { .. }
                | Self::VersionMismatch { .. }
                | Self::Graph(graph::Error::Conflict(_))
        )
    }

    /// Whether the input is to blame, and not the graph or another writer.
    pub fn is_of_input(&self) -> bool {
        match self {
            Self::KeyConflict { .. }
            | Self::ResourceLimitExceeded { .. }
            | Self::Invalid(_)
            | Self::Record(_) => true,
            Self::ReadSetChanged { .. }
            | Self::VersionMismatch { .. }
            | Self::InDoubt { .. }
            | Self::Graph(_) => false,
        }
    }

    /// A [`WriteError::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// A read-set conflict over `member`.
    pub(crate) fn changed(
        member: impl Into<String>,
        expected: impl ToString,
        actual: impl ToString,
    ) -> Self {
        Self::ReadSetChanged {
            member: member.into(),
            expected: expected.to_string(),
            actual: actual.to_string(),
        }
    }
}
