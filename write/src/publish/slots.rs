//! The id of the next commit (`docs/format/manifest-v14.md` 7.1).

use graph::history::commit_id::BlockAddress;
use graph::manifest::BranchState;
use graph::manifest::accounting::buffered_bytes;
use graph::model::measure::{HISTORY_BLOCK_SLOTS, TAIL_MAX_COMMITS};
use graph::{Error, Result};
use ulid::Ulid;

/// What one publish does to the buffer and how its commit is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The buffer is released to `__history` by this publish.
    pub full: bool,
    /// The commit's address.
    pub address: BlockAddress,
}

/// The address of the commit that follows `state`, published on the branch `state` was read from. `nonce` is the
/// intent's, `budget` the session's release budget in bytes.
pub fn next_slot(state: &BranchState, nonce: Ulid, budget: u64) -> Result<Slot> {
    let held = state.buffer.len();
    let measured = buffered_bytes(state)?;
    let head = BlockAddress::parse(&state.head.graph_commit_id)?;
    let full = match (held, head) {
        (0, _) => false,
        (n, _) if n >= TAIL_MAX_COMMITS => true,
        (_, Some(address)) => address.slot == 0,
        (_, None) => measured >= budget,
    };
    let closes = measured >= budget || held + 1 >= TAIL_MAX_COMMITS;
    let slot = if full {
        1
    } else if closes {
        0
    } else {
        held + 1
    };
    let slot = u16::try_from(slot)
        .ok()
        .filter(|s| u32::from(*s) < HISTORY_BLOCK_SLOTS)
        .ok_or_else(|| Error::internal(format!("slot {slot} is past the end of a block")))?;
    let block = match head {
        Some(address)
            if state.head.native_branch == state.native
                && address.slot.checked_add(1) == Some(slot) =>
        {
            address.block
        }
        _ => nonce,
    };
    Ok(Slot {
        full,
        address: BlockAddress { block, slot, nonce },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::testing::{chain, state};

    const BUDGET: u64 = 262_144;

    fn ulid(n: u128) -> Ulid {
        Ulid(n)
    }

    fn id(block: u128, slot: u16, nonce: u128) -> String {
        BlockAddress {
            block: ulid(block),
            slot,
            nonce: ulid(nonce),
        }
        .to_string()
    }

    #[test]
    fn a_first_block_starts_at_one_and_goes_on() {
        let genesis = state(chain(&[&ulid(1).to_string()]));
        let first = next_slot(&genesis, ulid(2), BUDGET).unwrap();
        assert_eq!(first.address.to_string(), id(2, 1, 2));
        let second = state(chain(&[&ulid(1).to_string(), &id(2, 1, 2)]));
        let next = next_slot(&second, ulid(3), BUDGET).unwrap();
        assert_eq!((next.full, next.address.to_string()), (false, id(2, 2, 3)));
    }

    #[test]
    fn the_budget_closes_a_block_and_the_publish_after_it_releases() {
        let held = state(chain(&[&ulid(1).to_string(), &id(2, 1, 2), &id(2, 2, 3)]));
        let measured = buffered_bytes(&held).unwrap();
        for (budget, slot) in [(measured + 1, id(2, 3, 9)), (measured, id(9, 0, 9))] {
            let next = next_slot(&held, ulid(9), budget).unwrap();
            assert_eq!((next.full, next.address.to_string()), (false, slot));
        }
        let closed = state(chain(&[&id(2, 1, 2), &id(2, 2, 3), &id(9, 0, 9)]));
        // Whatever the budget says.
        for budget in [1, BUDGET] {
            let next = next_slot(&closed, ulid(10), budget).unwrap();
            assert_eq!((next.full, next.address.to_string()), (true, id(9, 1, 10)));
        }
    }

    #[test]
    fn an_opaque_head_is_full_by_bytes() {
        let held = state(chain(&[&ulid(1).to_string(), &ulid(2).to_string()]));
        let measured = buffered_bytes(&held).unwrap();
        let full = next_slot(&held, ulid(9), measured).unwrap();
        assert_eq!((full.full, full.address.to_string()), (true, id(9, 1, 9)));
        let more = next_slot(&held, ulid(9), measured + 1).unwrap();
        assert_eq!((more.full, more.address.to_string()), (false, id(9, 2, 9)));
    }

    #[test]
    fn a_fork_opens_its_own_block() {
        let mut fork = state(chain(&[&ulid(1).to_string(), &id(2, 1, 2), &id(2, 2, 3)]));
        fork.native = Some("b".into());
        let next = next_slot(&fork, ulid(9), BUDGET).unwrap();
        assert_eq!(next.address.to_string(), id(9, 3, 9));
    }
}
