//! A long history in one block, over several extents: it verifies clean, and its memory stays bounded.

use graph::history::BlockAddress;
use graph::history::block::{ClosedBlocks, place, write_placed};
use graph::model::measure::HISTORY_BLOCK_SLOTS;
use graph::model::{HistoryRecord, TableState};
use ulid::Ulid;

use crate::support::publish::head;
use crate::support::{converted, run, verify};

/// The most memory this process ever held, in bytes; `None` where the system does not say.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Commits by default; `OMNIGRAPH_VERIFY_COMMITS` sets another number, up to the slots of a block.
const COMMITS: u32 = 2_800;

#[test]
fn a_long_history_in_bounded_memory() {
    let asked = std::env::var("OMNIGRAPH_VERIFY_COMMITS");
    let commits = asked.map_or(COMMITS, |text| text.parse().unwrap());
    assert!(commits < HISTORY_BLOCK_SLOTS);
    run(|| async {
        let case = converted(9).await.copy();
        let root = case.root().await;
        let (version, state) = head(&root, None).await;
        let block = Ulid::from_parts(1_900_000_000_000, 1);
        let mut before = state.held_record(&state.head.graph_commit_id).unwrap();
        let mut batch: Vec<HistoryRecord> = Vec::new();
        for n in 1..=commits {
            let mut record = before.clone();
            let nonce = Ulid::from_parts(1_900_000_000_000, u128::from(n));
            let address = BlockAddress {
                block,
                slot: n as u16,
                nonce,
            };
            let commit = &mut record.commit;
            commit.parent_commit_id = Some(before.commit.graph_commit_id.clone());
            commit.graph_commit_id = address.to_string();
            commit.graph_manifest_version = version.version + u64::from(n);
            commit.generation += 1;
            let at = n as usize % record.tables.len();
            if let TableState::Pinned(pin) = &mut record.tables[at].state {
                pin.manifest_version = version.version + u64::from(n);
            }
            before = record.clone();
            batch.push(record);
            if batch.len() == 1_300 || n == commits {
                let whole = std::mem::take(&mut batch);
                let placed = place(whole, &ClosedBlocks::new()).unwrap();
                write_placed(&root, placed).await.unwrap();
            }
        }
        let base = peak();
        let report = verify(&case.path(), false).await;
        let grown = peak().zip(base).map(|(now, then)| now - then);
        eprintln!(
            "{} commits, memory grew by {grown:?}",
            report.checked.commits
        );
        assert_eq!(report.findings, []);
        assert!(report.checked.commits > u64::from(commits));
        assert!(peak().is_none_or(|bytes| bytes < 400 << 20), "{:?}", peak());
    });
}
