//! The library's error type.
//!
//! The classes are those of `docs/format/history.md` (conventions): the stored data is
//! inconsistent, the request or graph is outside a bound, something is absent, a typed limit, or
//! storage did not answer. Callers decide by class, never by message text.

use std::error::Error as StdError;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a graph root failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stored data contradicts the format or itself.
    #[error("{0}")]
    Internal(String),
    /// The request or the graph is outside what this build serves.
    #[error("{0}")]
    Refused(String),
    /// The named object, version, commit or branch does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A stated bound was exceeded.
    #[error("{resource} is {actual}, above the limit of {limit}")]
    Limit {
        /// What was measured, in words.
        resource: String,
        /// The bound.
        limit: u64,
        /// What was found.
        actual: u64,
    },
    /// Another writer got there first; nothing of this attempt landed.
    #[error("{0}")]
    Conflict(String),
    /// Storage failed or did not answer (permissions, network, disk full).
    #[error("{context}: {}", one_line(cause.as_ref()))]
    Storage {
        /// The object and the operation.
        context: String,
        /// The store's own error, shown on one line with the context.
        cause: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    /// An [`Error::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    /// An [`Error::Refused`].
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// An [`Error::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// An [`Error::Limit`].
    pub fn limit(resource: impl Into<String>, limit: u64, actual: u64) -> Self {
        Self::Limit {
            resource: resource.into(),
            limit,
            actual,
        }
    }

    /// An [`Error::Storage`].
    pub fn storage(
        context: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::Storage {
            context: context.into(),
            cause: source.into(),
        }
    }

    /// Classify an error of the object store met while doing `context`.
    pub fn object(context: impl Into<String>, source: object_store::Error) -> Self {
        let context = context.into();
        match source {
            object_store::Error::NotFound { .. } => {
                Self::NotFound(format!("{context}: no such object"))
            }
            other => Self::storage(context, other),
        }
    }

    /// Classify a Lance error met while doing `context`: absence is [`Error::NotFound`], a conflict
    /// [`Error::Conflict`], a failed request [`Error::Storage`], anything else means that bytes could
    /// not be understood and is [`Error::Internal`].
    pub fn lance(context: impl Into<String>, source: lance::Error) -> Self {
        use lance::Error as L;
        let context = context.into();
        match &source {
            L::DatasetNotFound { .. }
            | L::NotFound { .. }
            | L::RefNotFound { .. }
            | L::VersionNotFound { .. } => Self::NotFound(format!("{context}: {}", brief(&source))),
            L::CommitConflict { .. }
            | L::RetryableCommitConflict { .. }
            | L::IncompatibleTransaction { .. }
            | L::TooMuchWriteContention { .. }
            | L::DatasetAlreadyExists { .. } => {
                Self::Conflict(format!("{context}: {}", brief(&source)))
            }
            L::Timeout { .. } => Self::storage(context, source),
            _ if source.is_commit_status_unknown() || storage_failed(&source) => {
                Self::storage(context, source)
            }
            _ => Self::Internal(format!("{context}: {}", brief(&source))),
        }
    }

    /// True when storage failed or did not answer, as opposed to answering with bad content.
    pub fn is_storage(&self) -> bool {
        matches!(self, Self::Storage { .. })
    }

    /// True for [`Error::NotFound`].
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// The same class with `context: ` before the message.
    #[must_use]
    pub fn within(self, context: impl std::fmt::Display) -> Self {
        match self {
            Self::Internal(m) => Self::Internal(format!("{context}: {m}")),
            Self::Refused(m) => Self::Refused(format!("{context}: {m}")),
            Self::NotFound(m) => Self::NotFound(format!("{context}: {m}")),
            Self::Conflict(m) => Self::Conflict(format!("{context}: {m}")),
            Self::Limit {
                resource,
                limit,
                actual,
            } => Self::Limit {
                resource: format!("{context}: {resource}"),
                limit,
                actual,
            },
            Self::Storage { context: c, cause } => Self::Storage {
                context: format!("{context}: {c}"),
                cause,
            },
        }
    }
}

/// Whether a request failed, as opposed to bytes that cannot be understood: Lance's IO class holds
/// decode errors too, and a file cut short is damage, not an outage.
fn storage_failed(error: &(dyn StdError + 'static)) -> bool {
    let mut at: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(e) = at {
        if let Some(io) = e.downcast_ref::<std::io::Error>() {
            return !matches!(
                io.kind(),
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData
            );
        }
        if let Some(store) = e.downcast_ref::<object_store::Error>() {
            let inner = store.source().is_some_and(|inner| {
                inner
                    .downcast_ref::<std::io::Error>()
                    .is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof)
            });
            return !inner;
        }
        at = e.source();
    }
    false
}

/// A Lance error on one line.
fn brief(error: &lance::Error) -> String {
    one_line(error)
}

/// The first line of an error, without the source locations of its libraries that Lance appends.
fn one_line(error: &(dyn StdError + 'static)) -> String {
    let text = error.to_string();
    let mut first = text.lines().next().unwrap_or_default();
    while let Some(at) = first.rfind(", /")
        && first[at..].contains(".rs:")
    {
        first = &first[..at];
    }
    first.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_error_is_one_line_without_source_locations() {
        let cause =
            "LanceError(IO): disk on fire, /build/lance/io.rs:12:3, /core/result.rs:9:1\nbacktrace";
        let error = Error::storage("cannot read a, /b", cause).within("main");
        assert_eq!(
            error.to_string(),
            "main: cannot read a, /b: LanceError(IO): disk on fire"
        );
        assert!(StdError::source(&error).is_none());
    }
}
