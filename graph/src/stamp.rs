//! The stamp guard: which roots this build serves, and what to do about every other one.
//!
//! Reads the schema-level metadata of one opened `__manifest` version and writes nothing. The guard
//! order is that of `docs/format/manifest-v14.md` 1.1: a pending upgrade first, then the stamp.

use std::fmt;

use lance_core::datatypes::Schema;

use crate::store::ManifestVersion;

/// Schema-metadata key of the stamp, decimal text.
pub const STAMP_KEY: &str = "omnigraph:internal_schema_version";
/// Schema-metadata key of the upgrade intent; on main only, from fence to activation.
pub const PENDING_KEY: &str = "omnigraph:storage_upgrade_pending";
/// Schema-metadata key of the receipt every converted ref keeps.
pub const RECEIPT_KEY: &str = "omnigraph:storage_upgrade_receipt";
/// The only stamp served.
pub const CURRENT: u32 = 14;
/// Stamps `omnigraph upgrade` converts, oldest first.
pub const UPGRADE_SOURCES: [u32; 3] = [8, 9, 13];

/// The stamp key of one version as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StampReading {
    /// The key is absent.
    Absent,
    /// A decimal u32.
    Number(u32),
    /// Any other text; never treated as absent.
    NotANumber(String),
}

impl StampReading {
    /// Read the key's value.
    pub fn parse(value: Option<&str>) -> Self {
        match value {
            None => Self::Absent,
            Some(text) => {
                let decimal = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                match text.parse() {
                    Ok(n) if decimal => Self::Number(n),
                    _ => Self::NotANumber(text.to_string()),
                }
            }
        }
    }

    /// Read the stamp of an opened version.
    pub fn of(version: &ManifestVersion) -> Self {
        Self::of_schema(version.dataset.schema())
    }

    /// Read the stamp from the schema of a version.
    pub fn of_schema(schema: &Schema) -> Self {
        Self::parse(schema.metadata.get(STAMP_KEY).map(String::as_str))
    }

    /// The stamp as a number, if it is one.
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Absent | Self::NotANumber(_) => None,
        }
    }
}

/// What the guard looks at, as plain data.
#[derive(Debug, Clone)]
pub struct GuardInput {
    /// The stamp of the opened version.
    pub stamp: StampReading,
    /// The raw value of the pending key.
    pub pending: Option<String>,
    /// Whether the stored schema has both identity columns at the top level, or a `record` column.
    pub has_graph_columns: bool,
    /// The graph's location, as commands should name it.
    pub location: String,
}

impl GuardInput {
    /// Collect what the guard looks at from an opened version.
    pub fn of(version: &ManifestVersion, location: &str) -> Self {
        let schema = version.dataset.schema();
        let has = |name: &str| schema.fields.iter().any(|f| f.name == name);
        Self {
            stamp: StampReading::of(version),
            pending: version.metadata(PENDING_KEY).map(str::to_string),
            has_graph_columns: has("record")
                || (has("stable_table_id") && has("table_incarnation_id")),
            location: location.to_string(),
        }
    }
}

/// Why a root is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// An upgrade is between its fence and its activation.
    Pending {
        /// Attempt id of the intent, when it can be read.
        attempt: Option<String>,
        /// The graph.
        location: String,
    },
    /// The stamp is above [`CURRENT`].
    Newer {
        /// The stamp found.
        stamp: u32,
        /// The graph.
        location: String,
    },
    /// The stamp is one that `omnigraph upgrade` converts.
    Convertible {
        /// The stamp found: 8, 9 or 13.
        stamp: u32,
        /// The graph.
        location: String,
    },
    /// The stamp has no conversion; only a rebuild moves the graph.
    RebuildOnly {
        /// The stamp found; 1 when the key is absent.
        stamp: u32,
        /// The graph.
        location: String,
    },
    /// The stamp is not a number.
    Corrupt {
        /// Its raw text.
        value: String,
        /// The graph.
        location: String,
    },
    /// No stamp on something that has a graph's columns.
    Torn {
        /// The graph.
        location: String,
    },
}

/// The release that wrote a stamp, or `None` for an unreleased build.
pub fn release_label(stamp: u32) -> Option<&'static str> {
    match stamp {
        1 => Some("0.3.1 or earlier"),
        2 => Some("0.4.1 to 0.6.1"),
        3 => Some("0.6.2 to 0.7.2"),
        4 => Some("0.8.x"),
        6 => Some("0.9.x or 0.10.x"),
        8 | 9 => Some("0.11.x"),
        _ => None,
    }
}

/// `OmniGraph 0.11.x` or `an unreleased OmniGraph build`.
pub fn writer_of(stamp: u32) -> String {
    match release_label(stamp) {
        Some(label) => format!("OmniGraph {label}"),
        None => "an unreleased OmniGraph build".to_string(),
    }
}

/// `location` as one word of a POSIX shell command, ready to paste.
pub fn shell_word(location: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:+@%=,".contains(c);
    if !location.is_empty() && location.chars().all(plain) {
        location.to_string()
    } else {
        format!("'{}'", location.replace('\'', r"'\''"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending { attempt, location } => {
                let attempt = attempt.as_deref().unwrap_or("unreadable");
                write!(
                    f,
                    "the graph is in the middle of a storage upgrade to stamp {CURRENT} (attempt \
                     {attempt}); keep it offline, keep the pre-attempt backup, and finish with: \
                     omnigraph upgrade {} --to-format {CURRENT}",
                    shell_word(location)
                )
            }
            Self::Newer { stamp, .. } => write!(
                f,
                "the graph has stamp {stamp}, written by a newer release than this binary, which \
                 serves stamp {CURRENT} only; use a newer omnigraph binary"
            ),
            Self::Convertible { stamp, location } => {
                let word = shell_word(location);
                write!(
                    f,
                    "the graph has stamp {stamp}, written by {}; this binary serves stamp {CURRENT} \
                     only. Take the graph offline, back up the whole root, then run: omnigraph \
                     upgrade {word} --check, then: omnigraph upgrade {word}. A graph managed by a \
                     cluster is rebuilt instead: export it with the release that wrote it",
                    writer_of(*stamp)
                )
            }
            Self::RebuildOnly { stamp, location } => {
                let (old, new) = (
                    shell_word(location),
                    shell_word(&format!("{location}-rebuilt")),
                );
                write!(
                    f,
                    "the graph has stamp {stamp}, written by {writer}; there is no conversion from it to stamp \
                     {CURRENT}, so it is rebuilt at a new root. With the binary of {writer}, once for each branch to \
                     keep: omnigraph schema show {old} > schema.pg && omnigraph export {old} > graph.jsonl. Then with \
                     this binary: omnigraph init --schema schema.pg {new} && omnigraph load --mode overwrite --data \
                     graph.jsonl {new}. Rows, ids, vectors and blobs are kept; commits and branches are not",
                    writer = writer_of(*stamp),
                )
            }
            Self::Corrupt { value, .. } => write!(
                f,
                "the stamp ({STAMP_KEY}) is '{value}', which is not a decimal number; the metadata of \
                 __manifest is damaged, restore the whole root from a backup"
            ),
            Self::Torn { .. } => write!(
                f,
                "__manifest has a graph's columns but no stamp ({STAMP_KEY}): an init that was \
                 interrupted, or damaged metadata; restore the whole root from a backup, or remove the \
                 root if it was being created"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for crate::Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.to_string())
    }
}

/// Decide by stamp alone, whatever the pending key says.
pub fn guard_stamp(input: &GuardInput) -> Result<(), Refusal> {
    let location = input.location.clone();
    let stamp = match &input.stamp {
        StampReading::NotANumber(value) => {
            return Err(Refusal::Corrupt {
                value: value.clone(),
                location,
            });
        }
        StampReading::Absent if input.has_graph_columns => return Err(Refusal::Torn { location }),
        StampReading::Absent => 1,
        StampReading::Number(n) => *n,
    };
    match stamp {
        CURRENT => Ok(()),
        n if n > CURRENT => Err(Refusal::Newer { stamp: n, location }),
        n if UPGRADE_SOURCES.contains(&n) => Err(Refusal::Convertible { stamp: n, location }),
        n => Err(Refusal::RebuildOnly { stamp: n, location }),
    }
}

/// The guard of every open: the pending key before the stamp.
pub fn guard(input: &GuardInput) -> Result<(), Refusal> {
    if let Some(pending) = &input.pending {
        return Err(Refusal::Pending {
            attempt: pending_attempt(pending),
            location: input.location.clone(),
        });
    }
    guard_stamp(input)
}

/// The attempt id inside a pending value, when it can be read.
fn pending_attempt(pending: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Attempt {
        attempt: String,
    }
    serde_json::from_str::<Attempt>(pending)
        .ok()
        .map(|a| a.attempt)
        .filter(|a| crate::ulids::is_canonical(a))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn input(stamp: Option<&str>, pending: Option<&str>, columns: bool) -> GuardInput {
        GuardInput {
            stamp: StampReading::parse(stamp),
            pending: pending.map(str::to_string),
            has_graph_columns: columns,
            location: "/data/my graph".into(),
        }
    }

    #[test]
    fn only_fourteen_is_served() {
        assert_eq!(guard(&input(Some("14"), None, true)), Ok(()));
        for (stamp, words) in [
            (
                Some("8"),
                vec!["0.11.x", "upgrade '/data/my graph' --check", "cluster"],
            ),
            (Some("9"), vec!["0.11.x", "--check"]),
            (Some("13"), vec!["unreleased", "--check"]),
            (Some("6"), vec!["0.9.x or 0.10.x", "omnigraph export"]),
            (Some("12"), vec!["unreleased", "omnigraph export"]),
            (Some("15"), vec!["newer"]),
            (Some("x8"), vec!["'x8'"]),
            (Some("+8"), vec!["'+8'"]),
            (None, vec!["no stamp"]),
        ] {
            let refusal = guard(&input(stamp, None, true)).expect_err("refused");
            let text = refusal.to_string();
            for word in words {
                assert!(text.contains(word), "{stamp:?}: {text}");
            }
        }
        let old = guard(&input(None, None, false))
            .expect_err("refused")
            .to_string();
        assert!(old.contains("0.3.1 or earlier"), "{old}");
    }

    #[test]
    fn rebuild_only_stamps_never_name_upgrade() {
        for stamp in (0..14).filter(|s| !UPGRADE_SOURCES.contains(s)) {
            let text = guard(&input(Some(&stamp.to_string()), None, true))
                .expect_err("refused")
                .to_string();
            assert!(text.contains("omnigraph export"), "{text}");
            assert!(!text.contains("omnigraph upgrade"), "{text}");
        }
    }

    #[test]
    fn pending_comes_before_the_stamp() {
        for stamp in [Some("14"), Some("99"), None] {
            let refusal = guard(&input(stamp, Some("{}"), true)).expect_err("refused");
            assert!(matches!(refusal, Refusal::Pending { attempt: None, .. }));
        }
    }
}
