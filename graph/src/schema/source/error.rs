//! What is wrong with a source, and where.

use crate::error::Error;

/// A source that does not parse or breaks a rule: one sentence and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SourceError {
    /// Counted from 1; a line ends with LF.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// One sentence without final stop.
    pub message: String,
}

impl SourceError {
    /// An error at byte offset `at` of `source`.
    pub(crate) fn at(source: &str, at: usize, message: impl Into<String>) -> Self {
        let before = source.get(..at).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |lf| lf + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message: message.into(),
        }
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        Self::refused(format!("schema source, {error}"))
    }
}
