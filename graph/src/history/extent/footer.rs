//! The 40-byte footer of an extent, checked before Lance sees the bytes
//! (`docs/format/history.md` 3.5): Lance sizes allocations and slices from it.

use crate::error::{Error, Result};

/// Bytes of the footer.
pub(super) const FOOTER_BYTES: usize = 40;
/// Bytes of one entry of the two offset tables.
const TABLE_ENTRY_BYTES: u64 = 16;

/// Check the footer at the end of `held`, the last bytes of an object of `size` bytes.
pub(super) fn check(object: &str, held: &[u8], size: u64) -> Result<()> {
    let bad = |what: String| Error::internal(format!("{object} is not an extent file: {what}"));
    let Some(footer) = held
        .len()
        .checked_sub(FOOTER_BYTES)
        .and_then(|at| held.get(at..))
        .filter(|_| size >= FOOTER_BYTES as u64)
    else {
        return Err(bad(format!(
            "{size} bytes, less than a footer of {FOOTER_BYTES}"
        )));
    };
    let long = |at: usize| u64::from_le_bytes(array(footer, at));
    let word = |at: usize| u64::from(u32::from_le_bytes(array(footer, at)));
    let half = |at: usize| u16::from_le_bytes(array(footer, at));
    if footer[36..] != *b"LANC" {
        return Err(bad("no magic LANC at the end".into()));
    }
    let (major, minor) = (half(32), half(34));
    if (major, minor) != (2, 2) {
        return Err(bad(format!("file format {major}.{minor}, expected 2.2")));
    }
    let (metadata, columns_at, buffers_at) = (long(0), long(8), long(16));
    let end = size - FOOTER_BYTES as u64;
    if metadata > columns_at || columns_at > buffers_at || buffers_at > end {
        return Err(bad(format!(
            "its offsets {metadata}, {columns_at}, {buffers_at} do not ascend below {end}"
        )));
    }
    let (buffers, columns) = (word(24), word(28));
    if buffers.saturating_mul(TABLE_ENTRY_BYTES) > end - buffers_at {
        return Err(bad(format!("{buffers} global buffers cannot fit")));
    }
    if columns.saturating_mul(TABLE_ENTRY_BYTES) > buffers_at - columns_at {
        return Err(bad(format!("{columns} columns cannot fit")));
    }
    Ok(())
}

/// The `N` bytes at `at`; the footer's length was checked.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        out.copy_from_slice(found);
    }
    out
}
