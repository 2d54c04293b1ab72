//! The cell bound (`docs/format/legacy-manifest.md` 8.2): how many rows the filter column of all version
//! reads together holds, known from head scans and one listing per ref, before a version is read.

use legacy::HeadScan;

/// Versions of everything in a head that is dated: its commits, pins and drops. Ascending.
pub(crate) fn dated(scan: &HeadScan) -> Vec<u64> {
    let mut dated: Vec<u64> = scan
        .commits
        .iter()
        .map(|c| c.version)
        .chain(scan.pins.keys().map(|(_, clock)| *clock))
        .chain(scan.tombstones.keys().map(|(_, clock)| *clock))
        .collect();
    dated.sort_unstable();
    dated
}

/// Cells of one ref: every version read meets the undated rows (tables, head pointers, contract) and the
/// dated ones at or below it. Saturates.
pub(crate) fn cells(rows: u64, dated: &[u64], versions: &[u64]) -> u64 {
    let undated = rows.saturating_sub(dated.len() as u64);
    versions.iter().fold(0, |sum: u64, version| {
        let below = dated.partition_point(|at| at <= version) as u64;
        sum.saturating_add(undated.saturating_add(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{drop, head, pin, table};
    use legacy::row::Row;
    use proptest::prelude::*;

    #[test]
    fn counts_what_each_version_would_scan() {
        for (rows, dated, versions, want) in [
            (0, vec![], vec![], 0),
            (5, vec![1, 2, 2], vec![1, 2, 3], 2 * 3 + 1 + 3 + 3),
            (5, vec![1, 2, 2], vec![], 0),
            (3, vec![9, 9, 9], vec![1, 8], 0),
            (u64::MAX, vec![], vec![1, 2], u64::MAX),
        ] {
            assert_eq!(
                cells(rows, &dated, &versions),
                want,
                "{rows} {dated:?} {versions:?}"
            );
        }
    }

    #[test]
    fn inherited_commits_pins_and_drops_are_dated() {
        let rows = vec![
            Row::Table(table(1, "node:A")),
            pin(1, 4),
            drop(1, "node:A", 6),
            Row::Commit(crate::testing::commit(1, None, 2)),
            Row::Commit(crate::testing::commit(2, Some("f"), 5)),
        ];
        let head = head(Some("f"), 3, 6, rows);
        assert_eq!(dated(&head.scan), [2, 4, 5, 6]);
    }

    proptest! {
        #[test]
        fn equals_the_naive_sum(
            mut dated in proptest::collection::vec(0_u64..20, 0..30),
            versions in proptest::collection::vec(0_u64..20, 0..20),
            undated in 0_u64..10,
        ) {
            dated.sort_unstable();
            let rows = undated + dated.len() as u64;
            let naive: u64 = versions
                .iter()
                .map(|v| undated + dated.iter().filter(|d| *d <= v).count() as u64)
                .sum();
            prop_assert_eq!(cells(rows, &dated, &versions), naive);
        }
    }
}
