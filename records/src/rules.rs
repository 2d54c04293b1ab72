//! What `@range`, `@check` and enums ask of one value (`docs/format/tables-and-schema.md` 4.5).

use graph::schema::types::Bound;
use regex::Regex;

/// The rules of a property beyond its type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    ranges: Vec<(Option<Bound>, Option<Bound>)>,
    checks: Vec<Regex>,
}

impl Rules {
    pub(crate) fn add_range(&mut self, min: Option<Bound>, max: Option<Bound>) {
        self.ranges.push((min, max));
    }

    pub(crate) fn add_check(&mut self, pattern: &str) -> graph::Result<()> {
        let regex = Regex::new(pattern).map_err(|e| {
            // The library draws the pattern over several lines; its last line says what is wrong.
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or_default();
            graph::Error::refused(format!(
                "the @check pattern {} is no regular expression: {}",
                crate::error::quoted(pattern),
                reason.strip_prefix("error: ").unwrap_or(reason)
            ))
        })?;
        self.checks.push(regex);
        Ok(())
    }
}
