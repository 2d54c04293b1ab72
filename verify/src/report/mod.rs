//! What a verification reports: one serializable value, rendered twice. Every key is always there.

mod human;

pub use human::render;

use serde::Serialize;

use crate::finding::Finding;

/// How a verification ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was found.
    Ok,
    /// There are findings.
    Damaged,
}

impl Outcome {
    /// As reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Damaged => "damaged",
        }
    }
}

/// The report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The graph.
    pub location: String,
    /// Whether history's pins and all table data were read.
    pub deep: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// What is wrong, sorted.
    pub findings: Vec<Finding>,
    /// Findings above the number a report lists.
    pub findings_omitted: u64,
    /// What was read.
    pub checked: Checked,
}

/// What was read; each count is of objects that were looked at, damaged ones included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Live branches, main included.
    pub branches: u64,
    /// Retired refs.
    pub retired_refs: u64,
    /// Tags on `__manifest`.
    pub tags: u64,
    /// Distinct commits.
    pub commits: u64,
    /// Copies of commits beyond the first of each; all were compared.
    pub commit_copies: u64,
    /// Objects under `__history/`, by kind.
    pub history: HistoryObjects,
    /// Pins of the heads, opened and counted.
    pub head_pins: u64,
    /// Pins of the heads whose manifest has another ETag than recorded and no transaction to vouch for it:
    /// a copied or restored root. No damage.
    pub head_pins_with_other_etag: u64,
    /// Rows of the heads' pins.
    pub head_rows: u64,
    /// What only a deep verification reads; null otherwise.
    pub deep: Option<DeepChecked>,
}

/// Objects under `__history/`, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HistoryObjects {
    /// Whole blocks and ranges of blocks.
    pub block_extents: u64,
    /// Singletons.
    pub singletons: u64,
    /// Legacy data files.
    pub legacy_data_files: u64,
    /// Id shards.
    pub id_shards: u64,
    /// Writer shards.
    pub writer_shards: u64,
    /// Legacy directories: one on a converted root.
    pub directories: u64,
    /// Schema archives.
    pub schema_archives: u64,
}

/// What a deep verification read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DeepChecked {
    /// Older versions of `__manifest` that were read and compared with history.
    pub manifest_versions: u64,
    /// Distinct pins that only history names.
    pub history_pins: u64,
    /// Of these, pins whose table version an earlier cleanup removed. No damage.
    pub history_pins_removed_by_retention: u64,
    /// Table versions opened, those of the heads included.
    pub table_versions: u64,
    /// Data files read.
    pub data_files: u64,
    /// Rows read.
    pub rows: u64,
    /// Bytes of the data files read.
    pub bytes: u64,
}
