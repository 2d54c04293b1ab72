//! Folding the tail of a table that grows by small loads.
//!
//! Every load adds a fragment, and every manifest names all of them: thousands of loads of a row each would make the
//! next one slow. So once [`FAN`] small neighbours at the end of a table hold about as many rows as the next size up, a
//! load chains one compaction of them behind its own commit. A row is moved at most once a size, and a table keeps a
//! few fragments of each size. Row ids and row versions stay (a compaction keeps them); what an index covers is left
//! alone. `optimize` remains what makes a table tidy.

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

/// Fragments of one size that become one of the next.
pub const FAN: u64 = 4;
/// A fragment with this many rows is never folded.
pub const LARGE_ROWS: u64 = FAN.pow(6);
/// Most bytes of data files that one load moves.
const FOLD_BYTES: u64 = 16 << 20;

/// A fragment as far as folding looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    rows: u64,
    bytes: u64,
    /// Nothing keeps it where it is.
    free: bool,
}

/// How many fragments at the end of `sizes` to fold, if any: the largest size of which the tail holds enough.
fn tail(sizes: &[Size]) -> Option<usize> {
    let mut found = None;
    let mut limit = FAN;
    while limit <= LARGE_ROWS {
        let small = |s: &&Size| s.free && s.rows < limit;
        let run: Vec<&Size> = sizes.iter().rev().take_while(small).collect();
        let rows: u64 = run.iter().map(|s| s.rows).sum();
        let bytes: u64 = run.iter().map(|s| s.bytes).sum();
        if run.len() as u64 >= FAN && rows >= limit && bytes <= FOLD_BYTES {
            found = Some(run.len());
        }
        limit *= FAN;
    }
    found
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
    if (fragments.len() as u64) < FAN || dataset.schema().fields_pre_order().any(|f| f.is_blob()) {
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
    fn a_tail_folds_when_it_fills_the_next_size() {
        assert_eq!(tail(&of(&[1; 3])), None);
        assert_eq!(tail(&of(&[1; 4])), Some(4));
        assert_eq!(tail(&of(&[4, 1, 1, 1, 1])), Some(4));
        // Three of four rows and four of one fill the size after.
        let mut cascade = vec![4; 3];
        cascade.extend([1; 4]);
        assert_eq!(tail(&of(&cascade)), Some(7));
        assert_eq!(tail(&of(&[LARGE_ROWS, 1, 1])), None);
        assert_eq!(tail(&of(&[4_000; 8])), Some(8));
        assert_eq!(tail(&of(&[LARGE_ROWS; 20])), None);
        assert_eq!(tail(&of(&[0; 40])), None);
        assert_eq!(tail(&of(&[])), None);
    }

    #[test]
    fn what_is_covered_or_wide_stays() {
        let mut sizes = of(&[1; 12]);
        sizes[9].free = false;
        assert_eq!(tail(&sizes), None);
        sizes[7].free = false;
        sizes[9].free = true;
        assert_eq!(tail(&sizes), Some(4));
        sizes[11].bytes = FOLD_BYTES;
        assert_eq!(tail(&sizes), None);
    }

    #[test]
    fn many_loads_leave_few_fragments() {
        let mut sizes: Vec<Size> = Vec::new();
        let (mut moved, mut most, mut small) = (0, 0, 0);
        for _ in 0..20_000 {
            sizes.extend(of(&[1]));
            if let Some(count) = tail(&sizes) {
                let rows = sizes.drain(sizes.len() - count..).map(|s| s.rows).sum();
                moved += rows;
                sizes.extend(of(&[rows]));
            }
            most = most.max(sizes.len());
            small += sizes.iter().filter(|s| s.rows < LARGE_ROWS).count();
        }
        assert_eq!(sizes.iter().map(|s| s.rows).sum::<u64>(), 20_000);
        assert!(most <= 22, "{most} fragments");
        assert!(
            small <= 9 * 20_000,
            "{small} fragments to look into, all loads together"
        );
        assert!(moved <= 6 * 20_000, "{moved} rows moved");
    }
}
