//! Where in a record the parser is, and what it refused.

use std::cell::{Cell, RefCell};

use serde::de::Error;

use super::frame::Start;
use crate::error::RecordError;
use crate::types::{TableType, Types};

/// Carries a typed refusal past the parser, whose own errors are text, and remembers the property that is
/// being read for what the parser itself refuses.
pub(super) struct Place<'t> {
    pub(super) types: &'t Types,
    refusal: RefCell<Option<RecordError>>,
    property: Cell<Option<(&'t str, &'t str)>>,
}

impl<'t> Place<'t> {
    pub(super) fn new(types: &'t Types) -> Self {
        Self {
            types,
            refusal: RefCell::new(None),
            property: Cell::new(None),
        }
    }

    /// Enter a property; `None` leaves it.
    pub(super) fn enter(&self, property: Option<(&'t TableType, &'t str)>) {
        let names = property.map(|(table, name)| (table.table_key.as_str(), name));
        self.property.set(names);
    }

    /// Stop the parser with `refusal`.
    pub(super) fn refuse<E: Error>(&self, refusal: RecordError) -> E {
        let refusal = match self.property.get() {
            Some((table, name)) => refusal.of(table).on(name),
            None => refusal,
        };
        *self.refusal.borrow_mut() = Some(refusal);
        E::custom("refused")
    }

    /// What stopped the parser, in a text that started at `start`.
    pub(super) fn explain(&self, error: &serde_json::Error, start: Start) -> RecordError {
        let refusal = self.refusal.borrow_mut().take();
        refusal
            .unwrap_or_else(|| match self.property.get() {
                Some((table, name)) => syntax(error, start).of(table).on(name),
                None => syntax(error, start),
            })
            .at(start.line)
    }
}

/// An error of the parser with the position in the input instead of that in the record's text.
pub(super) fn syntax(error: &serde_json::Error, start: Start) -> RecordError {
    let text = error.to_string();
    let reason = match text.rfind(" at line ") {
        Some(at) => text.get(..at).unwrap_or_default(),
        None => &text,
    };
    let (line, column) = start.position(error.line(), error.column());
    RecordError::new(format!(
        "not valid JSON: {reason} at line {line}, column {column}"
    ))
    .at(start.line)
}
