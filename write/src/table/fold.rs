//! Folding the tail of a table that grows by small loads.
//!
//! Every load adds a fragment, every manifest names all of them, and a load of rows with a key asks each of them:
//! thousands of loads of a row each would make the next one slow. So once [`FAN`] small fragments stand at the end of a
//! table, a load chains one compaction of them behind its own commit. What comes of it stays the first of the small
//! ones and is folded again until it has [`SMALL_ROWS`] rows; it then goes into the middling one before it, until that
//! has [`LARGE_ROWS`]. A table that grows by rows one by one so ends in one middling fragment and fewer than [`FAN`]
//! small ones, and a row is moved some fifty times on its way. Row ids and row versions stay (a compaction keeps them);
//! what an index covers is left alone. `optimize` remains what makes a table tidy.
//!
//! Reads the fragments that it folds; writes their rows to new data files and a detached version over what was staged.
//! Nothing names either before the publish, and a fold that fails leaves the load as it was staged.

use std::collections::HashSet;
use std::sync::Arc;

use graph::store::{Root, guarded};
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::optimize::{CompactionOptions, CompactionTask, TaskData};
use lance::index::DatasetIndexExt as _;
use lance_table::format::Fragment;

use super::rewrite::{rewrite, run_task};
use super::stage::{Staged, commit_detached};
use super::witness::Witness;

/// Fragments at the end of a table that are folded into one.
pub const FAN: usize = 3;
/// A fragment with this many rows is not small.
const SMALL_ROWS: u64 = 128;
/// A fragment whose data files have this many bytes is not small.
const SMALL_BYTES: u64 = 128 << 10;
/// A fragment with this many rows is never folded.
pub const LARGE_ROWS: u64 = 4_096;
/// Most bytes of data files that one load moves.
const FOLD_BYTES: u64 = 16 << 20;
/// Most fragments that one load reads for it; a table that came with more of them has to wait for `optimize`.
const FOLD_FRAGMENTS: usize = 64;

/// A fragment as far as folding looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    rows: u64,
    bytes: u64,
    /// Nothing keeps it where it is.
    free: bool,
}

impl Size {
    fn is_small(&self) -> bool {
        self.free && self.rows < SMALL_ROWS && self.bytes < SMALL_BYTES
    }

    fn is_foldable(&self) -> bool {
        self.free && self.rows < LARGE_ROWS && self.bytes < FOLD_BYTES / 2
    }
}

/// How many fragments at the end of `sizes` to fold, if any.
fn tail(sizes: &[Size]) -> Option<usize> {
    let last = sizes.iter().rev().take(FOLD_FRAGMENTS);
    let run = |counts: fn(&Size) -> bool| last.clone().take_while(|s| counts(s)).count();
    let sum = |count: usize, of: fn(&Size) -> u64| -> u64 {
        sizes[sizes.len() - count..].iter().map(of).sum()
    };
    let (small, foldable) = (run(Size::is_small), run(Size::is_foldable));
    let fits =
        |count: &usize| sum(*count, |s| s.bytes) <= FOLD_BYTES && sum(*count, |s| s.rows) > 0;
    // The small ones are enough for a middling one, or so many middling ones have gathered that they become one.
    let full = sum(small, |s| s.rows) >= SMALL_ROWS || sum(small, |s| s.bytes) >= SMALL_BYTES;
    if (small >= FAN && full) || foldable - small >= FAN {
        let most = (FAN..=foldable).rev().find(fits);
        if most.is_some() {
            return most;
        }
    }
    (small >= FAN).then_some(small).filter(fits)
}

/// Fold the tail of what was just staged, when that is due. The rows are the same; without a fold, or when it fails,
/// the staged version itself is what a pin should name.
pub async fn fold(root: &Root, staged: Staged, witness: &Witness) -> Staged {
    match try_fold(root, &staged, witness).await {
        Ok(Some(folded)) if folded.row_count == staged.row_count => folded,
        // Whatever a fold ran into, the load itself is staged and whole.
        Ok(_) | Err(_) => staged,
    }
}

async fn try_fold(root: &Root, staged: &Staged, witness: &Witness) -> Result<Option<Staged>> {
    let dataset = &staged.dataset;
    let fragments = dataset.manifest().fragments.clone();
    // Blobs lie beside their data file, and moving them costs their bytes.
    if fragments.len() < FAN || dataset.schema().fields_pre_order().any(|f| f.is_blob()) {
        return Ok(None);
    }
    if tail(&sizes(&fragments, &HashSet::new())).is_none() {
        return Ok(None);
    }
    let covered = covered(dataset).await?;
    let Some(count) = tail(&sizes(&fragments, &covered)) else {
        return Ok(None);
    };
    let task = CompactionTask {
        task: TaskData {
            fragments: fragments[fragments.len() - count..].to_vec(),
        },
        read_version: dataset.manifest().version,
        options: CompactionOptions::default(),
    };
    let result = run_task(dataset, &task).await?;
    let (transaction, _) = rewrite(dataset, vec![result])?;
    commit_detached(root, dataset.clone(), transaction, witness)
        .await
        .map(Some)
}

fn sizes(fragments: &[Fragment], covered: &HashSet<u64>) -> Vec<Size> {
    fragments
        .iter()
        .map(|fragment| {
            let bytes: Option<u64> = fragment
                .files
                .iter()
                .map(|f| f.file_size_bytes.get().map(u64::from))
                .sum();
            let borrowed = fragment.files.iter().any(|f| f.base_id.is_some());
            Size {
                rows: fragment.num_rows().unwrap_or(usize::MAX) as u64,
                bytes: bytes.unwrap_or(u64::MAX >> 16),
                free: !borrowed && !covered.contains(&fragment.id),
            }
        })
        .collect()
}

/// Fragments that some index covers.
async fn covered(dataset: &Arc<Dataset>) -> Result<HashSet<u64>> {
    let object = dataset.uri().to_string();
    let (dataset, context) = (
        dataset.clone(),
        format!("cannot read the indexes of {object}"),
    );
    guarded(&object, async move {
        let indexes = dataset
            .load_indices()
            .await
            .map_err(|e| Error::lance(context, e))?;
        let mut covered = HashSet::new();
        for index in indexes.iter() {
            match &index.fragment_bitmap {
                Some(bitmap) => covered.extend(bitmap.iter().map(u64::from)),
                // Nobody knows: all of them.
                None => covered.extend(dataset.manifest().fragments.iter().map(|f| f.id)),
            }
        }
        Ok(covered)
    })
    .await
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(rows: &[u64]) -> Vec<Size> {
        rows.iter()
            .map(|rows| Size {
                rows: *rows,
                bytes: 100,
                free: true,
            })
            .collect()
    }

    #[test]
    fn small_fragments_fold_when_there_are_enough() {
        assert_eq!(tail(&of(&[1; 2])), None);
        assert_eq!(tail(&of(&[1; 3])), Some(3));
        // What came of the first ones is small still.
        assert_eq!(tail(&of(&[3, 1])), None);
        assert_eq!(tail(&of(&[3, 1, 1])), Some(3));
        assert_eq!(tail(&of(&[300, 125, 1, 1])), Some(3));
        // Enough for the middling one.
        assert_eq!(tail(&of(&[300, 126, 1, 1])), Some(4));
        assert_eq!(tail(&of(&[LARGE_ROWS, 126, 1, 1])), Some(3));
        assert_eq!(tail(&of(&[LARGE_ROWS, 1, 1])), None);
        assert_eq!(tail(&of(&[0; 40])), None);
        assert_eq!(tail(&of(&[1; 40])), Some(40));
        assert_eq!(tail(&of(&[1; 400])), Some(FOLD_FRAGMENTS));
        assert_eq!(tail(&of(&[])), None);
    }

    #[test]
    fn middling_fragments_fold_when_there_are_enough() {
        assert_eq!(tail(&of(&[1_000; 2])), None);
        assert_eq!(tail(&of(&[1_000; 3])), Some(3));
        assert_eq!(tail(&of(&[4_000, 1_000])), None);
        assert_eq!(tail(&of(&[1_000, 1_000, 1_000, 1])), Some(4));
        assert_eq!(tail(&of(&[LARGE_ROWS; 20])), None);
    }

    #[test]
    fn what_is_covered_or_wide_stays() {
        let mut sizes = of(&[1; 12]);
        sizes[9].free = false;
        assert_eq!(tail(&sizes), None);
        sizes[8].free = false;
        sizes[9].free = true;
        assert_eq!(tail(&sizes), Some(3));
        sizes[11].bytes = FOLD_BYTES;
        assert_eq!(tail(&sizes), None);
        // Rows of 20 kB: seven are not small.
        let wide = |rows: u64| Size {
            rows,
            bytes: rows * 20_000,
            free: true,
        };
        assert_eq!(tail(&[wide(4), wide(1), wide(1)]), Some(3));
        assert_eq!(tail(&[wide(7), wide(1), wide(1)]), None);
        assert_eq!(tail(&[wide(7), wide(1), wide(1), wide(1)]), Some(3));
        assert_eq!(tail(&[wide(7), wide(5), wide(1), wide(1)]), Some(4));
        // As many of the middling ones as one load may move.
        assert_eq!(tail(&[wide(300); 8]), None);
        assert_eq!(tail(&[wide(150); 8]), Some(5));
    }

    /// Fragments after `loads` loads of `rows` rows of `width` bytes; the most there were below the large ones, how many
    /// that is over all loads, and the rows that were moved.
    fn grow(loads: usize, rows: u64, width: u64) -> (Vec<Size>, usize, usize, u64) {
        let sized = |rows: u64| Size {
            rows,
            bytes: rows * width,
            free: true,
        };
        let mut sizes: Vec<Size> = Vec::new();
        let (mut most, mut small, mut moved) = (0, 0, 0);
        for _ in 0..loads {
            sizes.push(sized(rows));
            if let Some(count) = tail(&sizes) {
                let run = sizes.drain(sizes.len() - count..);
                let folded = sized(run.map(|s| s.rows).sum());
                assert!(folded.bytes <= FOLD_BYTES);
                moved += folded.rows;
                sizes.push(folded);
            }
            let below = sizes.iter().filter(|s| s.is_foldable()).count();
            most = most.max(below);
            small += below;
        }
        assert_eq!(
            sizes.iter().map(|s| s.rows).sum::<u64>(),
            loads as u64 * rows
        );
        (sizes, most, small, moved)
    }

    #[test]
    fn many_loads_leave_few_fragments() {
        for (rows, width, loads, times) in [
            (1, 100, 20_000, 50),
            (1, 6_000, 20_000, 40),
            (100, 100, 2_000, 10),
            (1_000, 100, 200, 2),
        ] {
            let (sizes, most, small, moved) = grow(loads, rows, width);
            let (all, case) = (loads as u64 * rows, format!("{rows} of {width}"));
            assert!(most <= FAN, "{case}: {most} fragments");
            assert!(2 * small <= 5 * loads, "{case}: {small} to look into");
            assert!(moved <= times * all, "{case}: {moved} rows moved");
            let large = sizes.iter().filter(|s| !s.is_foldable());
            assert!(
                large
                    .clone()
                    .all(|s| s.rows >= LARGE_ROWS || s.bytes >= FOLD_BYTES / 2),
                "{case}: {large:?}"
            );
        }
    }
}
