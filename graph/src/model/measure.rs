//! The byte measures (`docs/format/history.md` 5, `docs/format/manifest-v14.md` 8). All lengths are
//! UTF-8 bytes, absent values count 0, sums saturate.

use super::{Commit, HistoryRecord, PinMetadata, TableRow};

/// Slots of one history block; also the row ceiling of any extent file.
pub const HISTORY_BLOCK_SLOTS: u32 = 16_384;
/// Byte budget of a branch's buffer and bound of one commit's own fields.
pub const HISTORY_RELEASE_BYTES: u64 = 262_144;
/// Commit ceiling of the buffer.
pub const TAIL_MAX_COMMITS: usize = 16_384;
/// Cap of every object under `__history`.
pub const MAX_OBJECT_BYTES: u64 = 67_108_864;
/// Bound of one record.
pub const MAX_RECORD_BYTES: u64 = MAX_OBJECT_BYTES / 4;
/// Suffix one lineage read fetches, and the size bound of every locator object.
pub const TAIL_BYTES: u64 = 2 * HISTORY_RELEASE_BYTES;
/// Per-commit allowance.
pub const COMMIT_ROW_BYTES: u64 = 128;
/// Per-table allowance.
pub const TABLE_ROW_BYTES: u64 = 256;
/// Length of `,"manifest_size":18446744073709551615`, charged whatever is stored.
pub const MANIFEST_SIZE_MEASURE_BYTES: u64 = 37;

fn text(value: Option<&str>) -> u64 {
    value.map_or(0, |v| v.len() as u64)
}

/// `commit_bytes`: 128 plus the lengths of the nine texts.
pub fn commit_bytes(c: &Commit) -> u64 {
    [
        c.graph_commit_id.len() as u64,
        text(c.graph_branch.as_deref()),
        text(c.native_branch.as_deref()),
        text(c.parent_commit_id.as_deref()),
        text(c.merged_parent_commit_id.as_deref()),
        text(c.actor_id.as_deref()),
        text(
            c.schema_contract
                .as_ref()
                .map(|h| h.schema_ir_hash.as_str()),
        ),
        text(
            c.schema_contract
                .as_ref()
                .map(|h| h.schema_identity_domain.as_str()),
        ),
        text(c.schema_content_hash.as_deref()),
    ]
    .iter()
    .fold(COMMIT_ROW_BYTES, |sum, n| sum.saturating_add(*n))
}

/// `metadata_measure` without a base: the compact JSON without `manifest_size`, plus 37.
pub fn metadata_measure(metadata: &PinMetadata) -> u64 {
    let json = metadata.to_json().len() as u64;
    let size_member = match metadata.manifest_size {
        Some(n) => r#""manifest_size":,"#.len() + n.to_string().len(),
        None => r#""manifest_size":null,"#.len(),
    } as u64;
    (json - size_member).saturating_add(MANIFEST_SIZE_MEASURE_BYTES)
}

/// `table_bytes`: 256 plus key and path, and for a pinned row its branch and metadata measure.
pub fn table_bytes(t: &TableRow) -> u64 {
    let base = TABLE_ROW_BYTES
        .saturating_add(t.table_key.len() as u64)
        .saturating_add(t.table_path.len() as u64);
    match t.state.pin() {
        None => base,
        Some(pin) => base
            .saturating_add(text(pin.table_branch.as_deref()))
            .saturating_add(metadata_measure(&pin.metadata)),
    }
}

/// `record_bytes`: commit and tables together.
pub fn record_bytes(r: &HistoryRecord) -> u64 {
    r.tables.iter().fold(commit_bytes(&r.commit), |sum, t| {
        sum.saturating_add(table_bytes(t))
    })
}
