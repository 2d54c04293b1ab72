//! What is wrong with a record.

use std::io;

/// A record that cannot be read, collected or printed.
///
/// Displays as `line 12: node:Target.ra_deg: found "x", expected a number (F64)`; parts that are not
/// known are left out.
#[derive(Debug)]
pub struct RecordError {
    /// 1-based line where the record starts; `None` for a stored row.
    pub line: Option<u64>,
    /// `node:{Type}` or `edge:{Type}`, once known.
    pub table: Option<String>,
    /// The property, when one is to blame.
    pub property: Option<String>,
    /// What was found, what is expected, what to do.
    pub message: String,
    source: Option<io::Error>,
}

impl RecordError {
    /// An error of which only the message is known yet.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            line: None,
            table: None,
            property: None,
            message: message.into(),
            source: None,
        }
    }

    /// The input could not be read at `line`.
    pub(crate) fn input(line: u64, source: io::Error) -> Self {
        let mut error = Self::new(format!("cannot read the input: {source}")).at(line);
        error.source = Some(source);
        error
    }

    /// The failure of the input itself; `None` when the input was read and its content is wrong.
    pub fn io(&self) -> Option<&io::Error> {
        self.source.as_ref()
    }

    /// With the line.
    #[must_use]
    pub fn at(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// With the table, unless one is named already.
    #[must_use]
    pub fn of(mut self, table_key: &str) -> Self {
        self.table.get_or_insert_with(|| table_key.to_string());
        self
    }

    /// With the property, unless one is named already.
    #[must_use]
    pub fn on(mut self, property: &str) -> Self {
        self.property.get_or_insert_with(|| property.to_string());
        self
    }
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match (&self.table, &self.property) {
            (Some(table), Some(property)) => write!(f, "{table}.{property}: ")?,
            (Some(table), None) => write!(f, "{table}: ")?,
            (None, Some(property)) => write!(f, "{property}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message already ends with it.
        self.source.as_ref().and_then(|e| e.get_ref()?.source())
    }
}

impl From<RecordError> for graph::Error {
    /// A failed input is [`graph::Error::Storage`], wrong content [`graph::Error::Refused`].
    fn from(error: RecordError) -> Self {
        let RecordError { line, source, .. } = error;
        match source {
            Some(source) => Self::storage(
                match line {
                    Some(line) => format!("line {line}: cannot read the input"),
                    None => "cannot read the input".to_string(),
                },
                source,
            ),
            None => Self::refused(RecordError { source, ..error }.to_string()),
        }
    }
}

/// Characters of a found value that an error shows.
const SHOWN: usize = 80;

/// `text` for an error, cut to one readable length.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// `text` quoted as JSON for an error, cut.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(cut(text)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_is_known() {
        let error = || RecordError::new("found \"x\", expected a number (F64)");
        let cases = [
            (error(), "found \"x\", expected a number (F64)"),
            (
                error().at(12),
                "line 12: found \"x\", expected a number (F64)",
            ),
            (
                error().of("node:Target").on("ra_deg").at(12),
                "line 12: node:Target.ra_deg: found \"x\", expected a number (F64)",
            ),
            (
                error().of("node:Target").of("node:Other"),
                "node:Target: found \"x\", expected a number (F64)",
            ),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
            assert!(error.io().is_none());
            assert!(matches!(error.into(), graph::Error::Refused(m) if m == text));
        }
    }

    #[test]
    fn a_failed_input_is_told_from_wrong_content() {
        let error = RecordError::input(3, io::Error::other("disk on fire"));
        assert_eq!(
            error.to_string(),
            "line 3: cannot read the input: disk on fire"
        );
        assert!(error.io().is_some());
        let error = graph::Error::from(error);
        assert!(error.is_storage());
        assert_eq!(
            error.to_string(),
            "line 3: cannot read the input: disk on fire"
        );
    }

    #[test]
    fn long_values_are_cut_at_a_character() {
        assert_eq!(cut("kurz"), "kurz");
        assert_eq!(cut(&"ä".repeat(80)), "ä".repeat(80));
        assert_eq!(cut(&"ä".repeat(81)), format!("{}...", "ä".repeat(80)));
        assert_eq!(quoted("a\"b"), "\"a\\\"b\"");
    }
}
