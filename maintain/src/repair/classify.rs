//! Which class a table falls into (`docs/format/maintenance.md` 6.2 and 7.1). Pure.

use graph::model::PinMetadata;
use graph::{Error, Result};
use serde::Serialize;

/// The class of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Classification {
    /// Nothing above what the graph wrote.
    NoDrift,
    /// Linear versions above the last one of the graph, by nobody the graph knows.
    ForeignDrift,
    /// A pin of an older line: only compactions above it.
    VerifiedMaintenance,
    /// A pin of an older line: something else above it.
    Suspicious,
    /// A pin of an older line: a version above it cannot be read.
    Unverifiable,
}

impl Classification {
    /// As JSON spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoDrift => "no_drift",
            Self::ForeignDrift => "foreign_drift",
            Self::VerifiedMaintenance => "verified_maintenance",
            Self::Suspicious => "suspicious",
            Self::Unverifiable => "unverifiable",
        }
    }
}

/// What the numbers of a table say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// None.
    None,
    /// Linear versions after this one are foreign.
    Foreign(u64),
    /// The pin is linear and of an older line: the operations after it decide.
    AbovePin(u64),
}

/// Compare the linear `head` with what the pin of version `published` records; the first rule that fits decides. A
/// head below the last linear version is [`Error::Internal`] naming `table_key`.
pub fn drift(table_key: &str, published: u64, pin: &PinMetadata, head: u64) -> Result<Drift> {
    let below = |last: u64, what: &str| {
        Error::internal(format!(
            "{table_key}: the newest linear version of its dataset is {head}, below {what} {last}: versions of the \
             table were removed by hand. Nothing was changed; look at the root with: omnigraph verify --deep"
        ))
    };
    let (last, older_line) = match (pin.last_linear_version, pin.staged_version) {
        (Some(last), _) => (last, false),
        (None, Some(_)) => return Ok(Drift::None),
        (None, None) => (published, true),
    };
    if head < last {
        let what = if older_line {
            "its pinned version"
        } else {
            "its last linear version"
        };
        return Err(below(last, what));
    }
    Ok(match (head > last, older_line) {
        (false, _) => Drift::None,
        (true, false) => Drift::Foreign(last),
        (true, true) => Drift::AbovePin(last),
    })
}

/// The class of versions above a linear pin of an older line, by their operations; `None` is one that cannot be read.
pub fn above_pin<'a>(operations: impl IntoIterator<Item = Option<&'a str>>) -> Classification {
    let mut class = Classification::VerifiedMaintenance;
    for operation in operations {
        match operation {
            None => return Classification::Unverifiable,
            Some("Rewrite" | "ReserveFragments") => {}
            Some(_) => class = Classification::Suspicious,
        }
    }
    class
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pin(last: Option<u64>, staged: Option<u64>) -> PinMetadata {
        PinMetadata {
            last_linear_version: last,
            staged_version: staged,
            ..PinMetadata::default()
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let staged = Some(1 << 63 | 5);
        let cases = [
            ((Some(3), None), 9, 3, Some(Drift::None)),
            ((Some(3), staged), 9, 3, Some(Drift::None)),
            ((Some(3), staged), 9, 5, Some(Drift::Foreign(3))),
            ((Some(3), None), 3, 4, Some(Drift::Foreign(3))),
            ((Some(3), staged), 9, 2, None),
            ((None, staged), 9, 40, Some(Drift::None)),
            ((None, staged), 9, 1, Some(Drift::None)),
            ((None, None), 7, 7, Some(Drift::None)),
            ((None, None), 7, 8, Some(Drift::AbovePin(7))),
            ((None, None), 7, 6, None),
        ];
        for ((last, staged), published, head, expected) in cases {
            let found = drift("node:A", published, &pin(last, staged), head);
            match expected {
                Some(expected) => assert_eq!(found.unwrap(), expected),
                None => assert!(found.unwrap_err().to_string().starts_with("node:A: ")),
            }
        }
    }

    #[test]
    fn unreadable_wins_over_suspicious() {
        use Classification::*;
        let cases: [(&[Option<&str>], _); 5] = [
            (
                &[Some("Rewrite"), Some("ReserveFragments")],
                VerifiedMaintenance,
            ),
            (&[Some("Rewrite"), Some("CreateIndex")], Suspicious),
            (&[Some("Append"), None], Unverifiable),
            (&[None, Some("Append")], Unverifiable),
            (&[], VerifiedMaintenance),
        ];
        for (operations, class) in cases {
            assert_eq!(above_pin(operations.iter().copied()), class);
        }
    }
}
