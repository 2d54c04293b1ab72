//! What the index commands print; member order is the stored order of their JSON.

use serde::Serialize;

use super::declared::IndexKind;

/// An index that was built, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BuiltIndex {
    /// `node:{Type}` or `edge:{Type}`.
    pub type_key: String,
    /// Physical column.
    pub column: String,
    /// Its kind.
    pub kind: IndexKind,
}

/// A declared index that cannot be built yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingIndex {
    /// `node:{Type}` or `edge:{Type}`.
    pub type_key: String,
    /// Column.
    pub property: String,
    /// Why.
    pub reason: String,
}

/// The result of `build-indexes` (`docs/format/maintenance.md` 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BuildReport {
    /// Root.
    pub uri: String,
    /// Logical branch.
    pub branch: String,
    /// The commit; `None` when nothing was missing.
    pub graph_commit_id: Option<String>,
    /// Built by this run.
    pub built_indexes: Vec<BuiltIndex>,
    /// Declared and not buildable.
    pub pending_indexes: Vec<PendingIndex>,
}

/// What `build-indexes` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BuildPlan {
    /// Root.
    pub uri: String,
    /// Logical branch.
    pub branch: String,
    /// Declared, missing and buildable.
    pub missing_indexes: Vec<BuiltIndex>,
    /// Declared and not buildable.
    pub pending_indexes: Vec<PendingIndex>,
}

/// A full-text index that was rebuilt, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuiltIndex {
    /// `node:{Type}` or `edge:{Type}`.
    pub type_key: String,
    /// Column.
    pub property: String,
}

/// The result of `rebuild-full-text-indexes` (`docs/format/maintenance.md` 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuildReport {
    /// Root.
    pub uri: String,
    /// Logical branch.
    pub branch: String,
    /// The commit; `None` when there is no full-text index.
    pub graph_commit_id: Option<String>,
    /// Empty on a no-op, otherwise that custom tokenizer settings were replaced.
    pub warnings: Vec<String>,
    /// Rebuilt by this run.
    pub rebuilt_indexes: Vec<RebuiltIndex>,
}

/// What `rebuild-full-text-indexes` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RebuildPlan {
    /// Root.
    pub uri: String,
    /// Logical branch.
    pub branch: String,
    /// Full-text indexes that are declared on nodes or exist.
    pub full_text_indexes: Vec<RebuiltIndex>,
}
