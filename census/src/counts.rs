//! What the census counted (`docs/format/legacy-manifest.md` 10.3).

/// The part of the report's `work` that the census knows. Data files and shards are the plan's, table
/// opens the upgrade's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Refs to convert, main included.
    pub live_refs: u64,
    /// Refs whose commits are kept, schema-apply locks included.
    pub retired_refs: u64,
    /// Logical branches whose commits outlived every ref that wrote them.
    pub orphan_writers: u64,
    /// Records of all chains.
    pub legacy_commits: u64,
    /// Versions without a commit.
    pub bookkeeping_versions: u64,
    /// Those of them before the first commit; not part of the report.
    pub pre_genesis_versions: u64,
    /// Merged parents that no ref holds.
    pub absent_parents: u64,
    /// Distinct contracts the records name.
    pub schema_contents: u64,
    /// Heads scanned and versions read.
    pub census_reads: u64,
    /// Sum of 8.2.
    pub census_cells: u64,
    /// Sum of the record measure of 8.4.
    pub legacy_bytes: u64,
}
