//! What is wrong: one finding an object, with a stable code.

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::sync::{Mutex, MutexGuard, PoisonError};

use graph::Error;
use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Stable finding codes; `docs/verify.md` says what each means and what to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// As reports spell it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// A ref object, a retirement archive or a tag cannot be understood or contradicts what it names.
    RefDamaged = "ref_damaged",
    /// A logical branch name has more than one live ref.
    BranchAmbiguous = "branch_ambiguous",
    /// A tree under `__manifest/tree/` that neither a ref nor an archive names.
    TreeUnclaimed = "tree_unclaimed",
    /// A named branch that the stamp guard refuses.
    BranchRefused = "branch_refused",
    /// The latest version of a branch cannot be read or violates a row rule.
    HeadDamaged = "head_damaged",
    /// The rows of a branch's latest version contradict each other.
    HeadInconsistent = "head_inconsistent",
    /// An older version of a branch that its tree still holds cannot be read.
    ManifestVersionDamaged = "manifest_version_damaged",
    /// The receipt of a converted branch contradicts its ref or the legacy directory.
    ReceiptInconsistent = "receipt_inconsistent",
    /// A commit that a lineage names is held nowhere.
    CommitMissing = "commit_missing",
    /// Two copies of a commit differ.
    CommitCopiesDiffer = "commit_copies_differ",
    /// A commit contradicts its parents or its id.
    CommitInconsistent = "commit_inconsistent",
    /// The tables of a commit contradict those of its parent.
    RecordInconsistent = "record_inconsistent",
    /// A key under `__history/` that this format does not know.
    HistoryKeyForeign = "history_key_foreign",
    /// An extent cannot be decoded or its rows do not belong where it stands.
    HistoryObjectDamaged = "history_object_damaged",
    /// An object of the legacy area contradicts the directory, or the directory itself is damaged.
    LegacyAreaDamaged = "legacy_area_damaged",
    /// A schema archive that a commit names does not exist.
    SchemaArchiveMissing = "schema_archive_missing",
    /// A schema archive does not hash to its name, or is malformed.
    SchemaArchiveDamaged = "schema_archive_damaged",
    /// A contract does not compile to its IR, or is not the one a commit or head names.
    SchemaContractInvalid = "schema_contract_invalid",
    /// The table version that a pin names does not exist.
    PinMissing = "pin_missing",
    /// The table version that a pin names cannot be read.
    PinUnreadable = "pin_unreadable",
    /// A pinned table version holds another number of rows than its pin.
    PinRowCountDiffers = "pin_row_count_differs",
    /// A pinned table version is another image than its pin recorded.
    PinWitnessDiffers = "pin_witness_differs",
    /// The transaction that a manifest repeats differs from its transaction file.
    TransactionDiffers = "transaction_differs",
    /// Table data cannot be read, or is another number of rows than its manifest says.
    TableDataDamaged = "table_data_damaged",
    /// Storage failed or did not answer, so the object was not checked.
    StorageFailed = "storage_failed",
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One finding. Orders by branch (what belongs to no branch first), then object, code and message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Stable code.
    pub code: Code,
    /// Logical branch it was met on; null when it belongs to the whole graph.
    pub branch: Option<String>,
    /// The object it is about: a key below the root, a dataset version, or a commit.
    pub object: String,
    /// What was found and what was expected.
    pub message: String,
}

impl Finding {
    fn key(&self) -> (&Option<String>, &str, Code, &str) {
        (&self.branch, &self.object, self.code, &self.message)
    }
}

/// Collects findings, without doubles, up to a bound.
#[derive(Debug)]
pub(crate) struct Findings {
    limit: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    found: BTreeSet<Finding>,
    omitted: u64,
}

impl Findings {
    /// Keep at most `limit` findings and count the others.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(
        &self,
        code: Code,
        branch: Option<&str>,
        object: impl Into<String>,
        message: impl Into<String>,
    ) {
        let finding = Finding {
            code,
            branch: branch.map(str::to_string),
            object: object.into(),
            message: message.into().replace(['\n', '\r'], " "),
        };
        let mut held = self.held();
        if held.found.contains(&finding) {
            return;
        }
        if held.found.len() >= self.limit {
            held.omitted += 1;
        } else {
            held.found.insert(finding);
        }
    }

    /// A finding about an error: `code`, unless storage failed. An object that is not there is no failure of
    /// storage, wherever Lance met it.
    pub(crate) fn error(&self, code: Code, branch: Option<&str>, object: &str, error: &Error) {
        let code = match error {
            Error::Storage { cause, .. } if !is_absence(cause.as_ref()) => Code::StorageFailed,
            _ => code,
        };
        self.add(code, branch, object, error.to_string());
    }

    /// The findings in report order, and how many were left out.
    pub(crate) fn into_sorted(self) -> (Vec<Finding>, u64) {
        let held = self
            .held
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Finding> = held.found.into_iter().collect();
        found.sort_by(|a, b| a.key().cmp(&b.key()));
        (found, held.omitted)
    }
}

/// Whether an object that does not exist is at the bottom of an error.
fn is_absence(error: &(dyn StdError + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(e) = at {
        let absent = matches!(
            e.downcast_ref::<object_store::Error>(),
            Some(object_store::Error::NotFound { .. })
        ) || matches!(
            e.downcast_ref::<lance::Error>(),
            Some(lance::Error::NotFound { .. })
        ) || e
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::NotFound);
        if absent {
            return true;
        }
        at = e.source();
    }
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_bounded_without_doubles_and_sorted() {
        let findings = Findings::new(2);
        for object in ["b", "a", "b", "c"] {
            findings.add(Code::PinMissing, Some("x"), object, "two\nlines");
        }
        let (found, omitted) = findings.into_sorted();
        let objects: Vec<&str> = found.iter().map(|f| f.object.as_str()).collect();
        assert_eq!((objects, omitted), (vec!["a", "b"], 1));
        assert_eq!(found[0].message, "two lines");
    }

    #[test]
    fn codes_are_distinct_snake_case() {
        let texts: BTreeSet<&str> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        for text in texts {
            assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
    }
}
