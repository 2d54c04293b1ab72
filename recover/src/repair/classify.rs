//! What drift is and what is done about it (`docs/format/maintenance.md` 7.1). Pure.

use serde::Serialize;

use crate::observe::Entry;

/// What stands above a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Classification {
    /// The newest version is the pin.
    NoDrift,
    /// Compactions only: the rows are the same.
    VerifiedMaintenance,
    /// Something else is among them.
    Suspicious,
    /// A version says nothing about itself.
    Unverifiable,
}

/// What becomes of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing is to be done.
    NoOp,
    /// Shown only.
    Preview,
    /// Published.
    Healed,
    /// Left alone.
    Refused,
    /// Published although it is not verified.
    Forced,
}

/// The class of a table, the operations above its pin, and why a version could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Class.
    pub classification: Classification,
    /// Lance operations, ascending, up to the first version that could not be read.
    pub operations: Vec<String>,
    /// Which that was.
    pub error: Option<String>,
}

/// Classify the versions `pinned + 1` to `head`.
pub fn classify(pinned: u64, head: u64, entries: &[Entry]) -> Drift {
    let mut operations = Vec::new();
    for version in pinned.saturating_add(1)..=head {
        let entry = entries.iter().find(|e| e.version == version);
        match entry.and_then(|e| e.transaction.as_ref()) {
            Some(transaction) => operations.push(transaction.operation.clone()),
            None => {
                let why = match entry {
                    Some(_) => "missing or unreadable",
                    None => "not read",
                };
                return Drift {
                    classification: Classification::Unverifiable,
                    operations,
                    error: Some(format!("the transaction of version {version} is {why}")),
                };
            }
        }
    }
    let maintenance = |o: &String| o == "Rewrite" || o == "ReserveFragments";
    let classification = match (operations.is_empty(), operations.iter().all(maintenance)) {
        (true, _) => Classification::NoDrift,
        (false, true) => Classification::VerifiedMaintenance,
        (false, false) => Classification::Suspicious,
    };
    Drift {
        classification,
        operations,
        error: None,
    }
}

/// What becomes of a class.
pub fn action(classification: Classification, confirm: bool, force: bool) -> Action {
    match (classification, confirm, force) {
        (Classification::NoDrift, _, _) => Action::NoOp,
        (_, false, _) => Action::Preview,
        (Classification::VerifiedMaintenance, true, _) => Action::Healed,
        (_, true, false) => Action::Refused,
        (_, true, true) => Action::Forced,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::observe::Recorded;

    fn entries(operations: &[&str]) -> Vec<Entry> {
        let one = |(n, operation): (usize, &&str)| Entry {
            version: 3 + n as u64,
            transaction: (*operation != "-").then(|| Recorded {
                // A compaction's Rewrite names the version before its ReserveFragments.
                read_version: 2,
                uuid: "u".into(),
                operation: operation.to_string(),
                restores: None,
            }),
        };
        operations.iter().enumerate().map(one).collect()
    }

    #[test]
    fn classes() {
        use Classification::*;
        for (operations, want, read) in [
            (&[][..], NoDrift, 0),
            (&["ReserveFragments", "Rewrite"], VerifiedMaintenance, 2),
            (&["Rewrite", "CreateIndex"], Suspicious, 2),
            (&["Append"], Suspicious, 1),
            (&["Append", "-", "Append"], Unverifiable, 1),
            (&["-"], Unverifiable, 0),
        ] {
            let drift = classify(2, 2 + operations.len() as u64, &entries(operations));
            assert_eq!(drift.classification, want, "{operations:?}");
            assert_eq!(drift.operations.len(), read, "{operations:?}");
            assert_eq!(drift.error.is_some(), want == Unverifiable);
        }
        for operation in [
            "Append",
            "Delete",
            "Update",
            "Overwrite",
            "Merge",
            "Project",
            "Restore",
            "UpdateConfig",
            "CreateIndex",
            "DataReplacement",
        ] {
            let drift = classify(2, 3, &entries(&[operation]));
            assert_eq!(drift.classification, Suspicious, "{operation}");
        }
        // More versions than were read prove nothing.
        assert_eq!(classify(2, 9000, &[]).classification, Unverifiable);
    }

    #[test]
    fn actions() {
        use Action::*;
        use Classification::*;
        for (class, confirm, force, want) in [
            (NoDrift, true, true, NoOp),
            (VerifiedMaintenance, false, false, Preview),
            (Suspicious, false, false, Preview),
            (VerifiedMaintenance, true, false, Healed),
            (VerifiedMaintenance, true, true, Healed),
            (Suspicious, true, false, Refused),
            (Unverifiable, true, false, Refused),
            (Suspicious, true, true, Forced),
            (Unverifiable, true, true, Forced),
        ] {
            assert_eq!(
                action(class, confirm, force),
                want,
                "{class:?} {confirm} {force}"
            );
        }
    }
}
