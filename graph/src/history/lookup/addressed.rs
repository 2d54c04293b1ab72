//! Commits with a block address (`docs/format/history.md` 9.2, addressed ids).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt as _;
use ulid::Ulid;

use super::budget::Budget;
use super::found::Found;
use super::{HistoryReader, Row};
use crate::error::{Error, Result};
use crate::history::commit_id::BlockAddress;
use crate::history::path::{ExtentKey, Listed, Listing};

/// Range extents read for each wanted slot.
const COPIES_READ: usize = 3;

fn gone(key: &ExtentKey) -> Error {
    Error::internal(format!("{} was listed and is gone", key.key()))
}

/// Whether every wanted id stands at its place in a whole-block extent.
fn serves_all<R: Row>(rows: &[R], wanted: &[BlockAddress]) -> Result<bool> {
    let Some(first) = rows.first() else {
        return Ok(false);
    };
    let Some(start) = BlockAddress::parse(&first.commit().graph_commit_id)? else {
        return Ok(false);
    };
    Ok(wanted.iter().all(|a| {
        a.slot
            .checked_sub(start.slot)
            .and_then(|row| rows.get(usize::from(row)))
            .is_some_and(|row| row.commit().graph_commit_id == a.to_string())
    }))
}

/// Of the listed ranges those to read: for each wanted slot the three with the fewest slots that cover
/// it, ties in key order.
fn kept_ranges(ranges: &[(u16, u16)], slots: &BTreeSet<u16>) -> BTreeSet<(u16, u16)> {
    let mut sorted: Vec<(u16, u16)> = ranges.to_vec();
    sorted.sort_by_key(|(start, end)| (end - start, *start, *end));
    let mut reads: BTreeMap<u16, usize> = slots.iter().map(|s| (*s, 0)).collect();
    let mut kept = BTreeSet::new();
    for (start, end) in sorted {
        for (_, count) in reads.range_mut(start..=end) {
            if *count < COPIES_READ {
                *count += 1;
                kept.insert((start, end));
            }
        }
    }
    kept
}

impl HistoryReader {
    /// Find the wanted commits of one block.
    pub(super) async fn find_in_block<R: Row>(
        &self,
        block: Ulid,
        wanted: &[BlockAddress],
        budget: &mut Budget,
        found: &mut Found<R>,
    ) -> Result<()> {
        let slots: BTreeSet<u16> = wanted.iter().map(|a| a.slot).collect();
        let whole_key = ExtentKey::Whole(block);
        let whole = R::fetch(self, &whole_key, budget).await?;
        if let Some(rows) = &whole
            && serves_all(rows, wanted)?
        {
            return take(found, &whole_key, rows, R::WHOLE.then_some(&slots));
        }
        let (whole_listed, ranges) = self.list_block(block).await?;
        let mut objects: Vec<(ExtentKey, Arc<Vec<R>>)> = Vec::new();
        match whole {
            Some(rows) => objects.push((whole_key, rows)),
            None if whole_listed => {
                let rows = R::fetch(self, &whole_key, budget).await?;
                objects.push((whole_key, rows.ok_or_else(|| gone(&whole_key))?));
            }
            None => {}
        }
        for (start, end) in kept_ranges(&ranges, &slots) {
            let key = ExtentKey::Range { block, start, end };
            let rows = R::fetch(self, &key, budget).await?;
            objects.push((key, rows.ok_or_else(|| gone(&key))?));
        }
        let narrow = R::WHOLE || objects.len() > 1;
        for (key, rows) in &objects {
            take(found, key, rows, narrow.then_some(&slots))?;
        }
        Ok(())
    }

    async fn list_block(&self, block: Ulid) -> Result<(bool, Vec<(u16, u16)>)> {
        let mut listing = Listing::default();
        let (mut whole, mut ranges) = (false, Vec::new());
        let mut keys = self.root.list(&ExtentKey::block_prefix(block))?;
        while let Some((key, _)) = keys.try_next().await? {
            match listing.classify(&key)? {
                Listed::Extent(ExtentKey::Whole(b)) if b == block => whole = true,
                Listed::Extent(ExtentKey::Range {
                    block: b,
                    start,
                    end,
                }) if b == block => {
                    ranges.push((start, end));
                }
                Listed::Temporary => {}
                Listed::Extent(_) | Listed::Skipped => {
                    return Err(Error::internal(format!(
                        "the listing of block {block} answered {key}"
                    )));
                }
            }
        }
        Ok((whole, ranges))
    }
}

/// Add the rows of an extent, all of them or those in wanted slots.
fn take<R: Row>(
    found: &mut Found<R>,
    key: &ExtentKey,
    rows: &[R],
    slots: Option<&BTreeSet<u16>>,
) -> Result<()> {
    for row in rows {
        let keep = match slots {
            None => true,
            Some(slots) => BlockAddress::parse(&row.commit().graph_commit_id)?
                .is_some_and(|a| slots.contains(&a.slot)),
        };
        if keep {
            found.add(key, row)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_narrowest_ranges_of_a_slot_are_read() {
        let ranges = [(0, 15), (4, 15), (0, 7), (4, 7), (5, 5), (9, 9)];
        let kept = |slots: &[u16]| {
            kept_ranges(&ranges, &slots.iter().copied().collect())
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&[5]), [(0, 7), (4, 7), (5, 5)]);
        assert_eq!(kept(&[12]), [(0, 15), (4, 15)]);
        assert_eq!(
            kept(&[5, 9]),
            [(0, 7), (0, 15), (4, 7), (4, 15), (5, 5), (9, 9)]
        );
        assert!(kept(&[20]).is_empty());
        // Ties go by start.
        let tied = [(3, 6), (2, 5), (1, 4), (4, 7)];
        let kept = kept_ranges(&tied, &[4].into());
        assert_eq!(
            kept.into_iter().collect::<Vec<_>>(),
            [(1, 4), (2, 5), (3, 6)]
        );
    }
}
