//! Why something stays. The order is the order in which a version or file that stays for several reasons is counted.

use serde::Serialize;

/// One reason to keep a version, a file or a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A live branch's head pins it.
    Head,
    /// The version a live named branch was created at pins it.
    Base,
    /// The merge base of two branches pins it.
    MergeBase,
    /// A tag names it, or names a graph version that pins it.
    Tag,
    /// One of the newest `--keep` versions of a branch pins it.
    Keep,
    /// A version younger than `--older-than` pins it.
    Age,
    /// The last linear version of its location.
    LastLinear,
    /// A linear version above the last one that a pin recorded: written by something else.
    Foreign,
    /// A linear version that a commit from before an upgrade pins.
    Legacy,
    /// A linear version that no registration ever named.
    Unnamed,
    /// Staged against a head that is still current.
    Staging,
    /// What it belongs to cannot be told.
    Undecidable,
    /// Another tree reads it through a base path.
    Borrowed,
    /// Named by nothing, and younger than seven days.
    Recent,
    /// The table, or another table, carries an error: no file is removed.
    Error,
    /// An object that no cleanup ever touches: refs, hints, names outside of the layout.
    Layout,
}

impl Reason {
    /// In words, as the human report prints it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Base => "base",
            Self::MergeBase => "merge base",
            Self::Tag => "tag",
            Self::Keep => "keep",
            Self::Age => "age",
            Self::LastLinear => "last linear",
            Self::Foreign => "foreign",
            Self::Legacy => "legacy",
            Self::Unnamed => "unnamed",
            Self::Staging => "staging",
            Self::Undecidable => "undecidable",
            Self::Borrowed => "borrowed",
            Self::Recent => "recent",
            Self::Error => "error",
            Self::Layout => "layout",
        }
    }
}
