//! From released commits to extents (`docs/format/history.md` 4).
//!
//! Placement is a pure function; the writer then creates one object after the other, each
//! put-if-absent, so a repeated or racing release ends in the same objects.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ulid::Ulid;

use super::commit_id::BlockAddress;
use super::extent::{Stored, create_within};
use super::path::ExtentKey;
use crate::error::{Error, Result};
use crate::model::measure::MAX_OBJECT_BYTES;
use crate::model::{Commit, HistoryRecord};
use crate::store::Root;

/// Blocks known complete, each with its last slot.
pub type ClosedBlocks = BTreeMap<Ulid, u16>;

/// The blocks a first-parent run closes, `run` oldest first: a block is closed at the slot of a commit
/// that is followed by one of the same `native_branch` whose id has another block or none.
pub fn closed_blocks<'a>(run: impl IntoIterator<Item = &'a Commit>) -> Result<ClosedBlocks> {
    let mut closed = ClosedBlocks::new();
    let mut before: Option<(&Commit, Option<BlockAddress>)> = None;
    for commit in run {
        let address = BlockAddress::parse(&commit.graph_commit_id)?;
        if let Some((previous, Some(last))) = before
            && previous.native_branch == commit.native_branch
            && address.is_none_or(|a| a.block != last.block)
        {
            closed.insert(last.block, last.slot);
        }
        before = Some((commit, address));
    }
    Ok(closed)
}

/// One object to write: its key and its canonical records in row order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where it goes.
    pub key: ExtentKey,
    /// What it holds.
    pub records: Vec<HistoryRecord>,
}

impl Placed {
    /// Cut a run that does not fit in two: the lower half (rounded down) first, both under range names.
    /// A single record is [`Error::Internal`]: the record bound should have refused it.
    pub fn halve(self) -> Result<(Self, Self)> {
        let slot = |r: &HistoryRecord| match BlockAddress::parse(&r.commit.graph_commit_id) {
            Ok(Some(address)) => Ok(address),
            Ok(None) | Err(_) => Err(Error::internal(format!(
                "commit {} has no block address",
                r.commit.graph_commit_id
            ))),
        };
        let name = self.key.key();
        let mut lower = self.records;
        let upper = lower.split_off(lower.len() / 2);
        let range = |part: &[HistoryRecord]| match (part.first(), part.last()) {
            (Some(first), Some(last)) => {
                let (first, last) = (slot(first)?, slot(last)?);
                Ok(ExtentKey::Range {
                    block: first.block,
                    start: first.slot,
                    end: last.slot,
                })
            }
            _ => Err(Error::internal(format!(
                "commit {} does not fit one object of {MAX_OBJECT_BYTES} bytes ({name})",
                upper
                    .first()
                    .map_or("(none)", |r| r.commit.graph_commit_id.as_str())
            ))),
        };
        let (low, high) = (range(&lower)?, range(&upper)?);
        Ok((
            Self {
                key: low,
                records: lower,
            },
            Self {
                key: high,
                records: upper,
            },
        ))
    }
}

/// Place released records: blocks in token order, runs of consecutive slots in each, then singletons in
/// text order. Two different records for one slot or one id are [`Error::Internal`].
pub fn place(records: Vec<HistoryRecord>, closed: &ClosedBlocks) -> Result<Vec<Placed>> {
    let mut blocks: BTreeMap<(Ulid, u16), HistoryRecord> = BTreeMap::new();
    let mut singles: BTreeMap<String, HistoryRecord> = BTreeMap::new();
    for record in records {
        let record = record.canonicalize()?;
        match BlockAddress::parse(&record.commit.graph_commit_id)? {
            Some(a) => insert_equal(blocks.entry((a.block, a.slot)), record)?,
            None => insert_equal(singles.entry(record.commit.graph_commit_id.clone()), record)?,
        }
    }
    let mut runs: Vec<(Ulid, u16, u16, Vec<HistoryRecord>)> = Vec::new();
    for ((block, slot), record) in blocks {
        match runs.last_mut() {
            Some((b, _, end, run)) if *b == block && end.checked_add(1) == Some(slot) => {
                *end = slot;
                run.push(record);
            }
            _ => runs.push((block, slot, slot, vec![record])),
        }
    }
    let mut out = Vec::with_capacity(runs.len() + singles.len());
    for (block, start, end, records) in runs {
        let key = if is_whole(block, end, &records, closed)? {
            ExtentKey::Whole(block)
        } else {
            ExtentKey::Range { block, start, end }
        };
        out.push(Placed { key, records });
    }
    out.extend(singles.into_iter().map(|(id, record)| Placed {
        key: ExtentKey::singleton(&id),
        records: vec![record],
    }));
    Ok(out)
}

fn insert_equal<K: Ord>(entry: Entry<'_, K, HistoryRecord>, record: HistoryRecord) -> Result<()> {
    match entry {
        Entry::Vacant(free) => {
            free.insert(record);
            Ok(())
        }
        Entry::Occupied(held) if *held.get() == record => Ok(()),
        Entry::Occupied(held) => Err(Error::internal(format!(
            "two released records differ where one may stand: commits {} and {}",
            held.get().commit.graph_commit_id,
            record.commit.graph_commit_id
        ))),
    }
}

fn is_whole(block: Ulid, end: u16, run: &[HistoryRecord], closed: &ClosedBlocks) -> Result<bool> {
    let Some(first) = run.first() else {
        return Ok(false);
    };
    let opens =
        BlockAddress::parse(&first.commit.graph_commit_id)?.is_some_and(|a| a.nonce == block);
    let parent_outside = match &first.commit.parent_commit_id {
        None => true,
        Some(parent) => BlockAddress::parse(parent)?.is_none_or(|a| a.block != block),
    };
    Ok(opens && parent_outside && closed.get(&block) == Some(&end))
}

/// Write placed extents in order, cutting those that do not fit. An existing object must hold equal
/// records. Returns the keys written or found, in order.
pub async fn write_placed(root: &Root, placed: Vec<Placed>) -> Result<Vec<ExtentKey>> {
    write_within(root, placed, MAX_OBJECT_BYTES).await
}

async fn write_within(root: &Root, placed: Vec<Placed>, limit: u64) -> Result<Vec<ExtentKey>> {
    let mut keys = Vec::with_capacity(placed.len());
    let mut queue = placed;
    queue.reverse();
    while let Some(next) = queue.pop() {
        match create_within(root, &next.key, &next.records, limit).await? {
            Stored::New | Stored::Equal => keys.push(next.key),
            Stored::TooLarge => {
                let (lower, upper) = next.halve()?;
                queue.push(upper);
                queue.push(lower);
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::history::testing::{addressed, block_id, example_records, root, ulid};

    fn names(placed: &[Placed]) -> Vec<String> {
        placed.iter().map(|p| p.key.to_string()).collect()
    }

    /// Slots `from..=to` of block `b`; the first carries the block token as nonce when it opens it.
    fn run(b: u128, from: u16, to: u16, opens: bool) -> Vec<HistoryRecord> {
        (from..=to)
            .map(|slot| {
                let nonce = if opens && slot == from {
                    b
                } else {
                    b + 1_000 + u128::from(slot)
                };
                let parent = (slot > from).then(|| {
                    let nonce = if opens && slot - 1 == from {
                        b
                    } else {
                        b + 1_000 + u128::from(slot - 1)
                    };
                    block_id(b, slot - 1, nonce)
                });
                addressed(b, slot, nonce, parent.as_deref())
            })
            .collect()
    }

    #[test]
    fn a_block_closes_where_the_next_commit_leaves_it() {
        let mut all = run(7, 1, 3, true);
        all.extend(run(9, 0, 1, true));
        let closed = closed_blocks(all.iter().map(|r| &r.commit)).unwrap();
        assert_eq!(closed, [(ulid(7), 3)].into());
        let mut other = all.clone();
        other[3].commit.native_branch = Some("b".into());
        assert!(
            closed_blocks(other.iter().map(|r| &r.commit))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn whole_runs_ranges_gaps_and_singletons() {
        let mut all = run(7, 1, 3, true);
        all.extend(run(9, 4, 5, false));
        all.extend(run(9, 8, 8, false));
        all.extend(example_records());
        all.extend(run(7, 2, 2, false).into_iter().map(|mut r| {
            r.commit.parent_commit_id = Some(block_id(7, 1, 7));
            r
        }));
        let closed: ClosedBlocks = [(ulid(7), 3), (ulid(9), 5)].into();
        let placed = place(all.clone(), &closed).unwrap();
        assert_eq!(
            names(&placed)[..3],
            [
                format!("blocks/{}/all.lance", ulid(7)),
                format!("blocks/{}/4-5.lance", ulid(9)),
                format!("blocks/{}/8-8.lance", ulid(9)),
            ]
        );
        assert_eq!(placed.len(), 6);
        assert_eq!(
            placed[3].records[0].commit.graph_commit_id,
            "01K6R2Q0S0AAAAAAAAAAAAAAA1"
        );
        // Not closed at its last slot: a range.
        let placed = place(run(7, 1, 3, true), &[(ulid(7), 4)].into()).unwrap();
        assert_eq!(names(&placed), [format!("blocks/{}/1-3.lance", ulid(7))]);
        // A parent inside the block: a range.
        let mut inside = run(7, 1, 3, true);
        inside[0].commit.parent_commit_id = Some(block_id(7, 0, 77));
        let placed = place(inside, &closed).unwrap();
        assert_eq!(names(&placed), [format!("blocks/{}/1-3.lance", ulid(7))]);
        // Copies differ.
        let mut twice = run(7, 1, 1, true);
        twice.push(twice[0].clone());
        twice[1].commit.created_at += 1;
        assert!(matches!(place(twice, &closed), Err(Error::Internal(_))));
    }

    #[tokio::test]
    async fn runs_that_do_not_fit_are_halved_and_rewrites_compare_equal() {
        let (_dir, root) = root().await;
        let mut records = run(7, 1, 5, true);
        for record in &mut records {
            // Large enough for the arrays' own overhead not to count.
            record.commit.actor_id = Some("x".repeat(20_000));
        }
        let closed: ClosedBlocks = [(ulid(7), 5)].into();
        let one = crate::model::measure::record_bytes(&records[0]);
        // Room for two records in half the limit, and almost for three.
        let limit = 2 * (3 * one - 1_000);
        let place = || place(records.clone(), &closed).unwrap();
        let keys = write_within(&root, place(), limit).await;
        let keys: Vec<String> = keys.unwrap().iter().map(ToString::to_string).collect();
        let name = |part: &str| format!("blocks/{}/{part}.lance", ulid(7));
        assert_eq!(keys, [name("1-2"), name("3-3"), name("4-5")]);
        let again = write_within(&root, place(), limit).await.unwrap();
        assert_eq!(again.len(), keys.len());
        let whole = write_placed(&root, place()).await.unwrap();
        assert_eq!(whole, [ExtentKey::Whole(ulid(7))]);
        // Another record under an existing name is refused.
        let mut other = place();
        other[0].records[1].commit.actor_id = Some("eve".into());
        let refused = write_placed(&root, other).await;
        assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("copies differ")));
        // A record alone cannot be cut.
        let refused = write_within(&root, place(), 10).await;
        assert!(
            matches!(refused, Err(Error::Internal(ref m)) if m.contains("does not fit")),
            "{refused:?}"
        );
    }
}
