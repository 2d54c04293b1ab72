//! Commit ids and their block addresses (`docs/format/history.md` 2.1).
//!
//! An id is *addressed* (`hb1.<block>.<slot>.<nonce>`) or *opaque* (anything else that is not reserved).

use std::fmt;

use ulid::Ulid;

use crate::error::{Error, Result};
use crate::model::measure::HISTORY_BLOCK_SLOTS;
use crate::ulids;

/// The reserved first part of an addressed id.
const SCHEME: &str = "hb1";

/// The parts of an addressed commit id. Orders by block, then slot, then nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// Nonce of the commit that opened the block.
    pub block: Ulid,
    /// Slot inside the block, below [`HISTORY_BLOCK_SLOTS`].
    pub slot: u16,
    /// The commit's own nonce.
    pub nonce: Ulid,
}

impl BlockAddress {
    /// The address in a commit id; `None` for an opaque id. Text in the reserved space (`hb1`, `hb1.…`)
    /// that is not a well-formed address is [`Error::Internal`].
    pub fn parse(id: &str) -> Result<Option<Self>> {
        if !is_reserved(id) {
            return Ok(None);
        }
        Self::parts(id)
            .map(Some)
            .ok_or_else(|| Error::internal(format!("'{id}' is not a well-formed block commit id")))
    }

    fn parts(id: &str) -> Option<Self> {
        let mut parts = id.split('.');
        let (scheme, block, slot, nonce) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if scheme != SCHEME || parts.next().is_some() {
            return None;
        }
        let slot = parse_slot(slot)?;
        Some(Self {
            block: ulids::parse_canonical(block)?,
            slot,
            nonce: ulids::parse_canonical(nonce)?,
        })
    }
}

impl fmt::Display for BlockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}.{}.{}.{}", self.block, self.slot, self.nonce)
    }
}

/// A slot number: decimal, no sign, no leading zero, below the slots of a block.
pub(super) fn parse_slot(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    let slot: u32 = text.parse().ok()?;
    if slot >= HISTORY_BLOCK_SLOTS {
        return None;
    }
    u16::try_from(slot).ok()
}

/// True for `hb1` and every text starting with `hb1.`.
pub fn is_reserved(id: &str) -> bool {
    id == SCHEME || id.starts_with("hb1.")
}

/// True for the ids a public request may name: canonical ULIDs and well-formed addressed ids.
pub fn is_public(id: &str) -> bool {
    ulids::is_canonical(id) || matches!(BlockAddress::parse(id), Ok(Some(_)))
}

/// The nonce of the publish that wrote the commit: the nonce part of an addressed id, an opaque id
/// itself.
pub fn intent_nonce(id: &str) -> Result<String> {
    Ok(match BlockAddress::parse(id)? {
        Some(address) => address.nonce.to_string(),
        None => id.to_string(),
    })
}

/// Whether the commit published as `published` answers a request for `requested`: the ids are equal, or
/// `published` is addressed and its nonce text equals `requested`.
pub fn answers(published: &str, requested: &str) -> bool {
    if published == requested {
        return true;
    }
    match BlockAddress::parse(published) {
        Ok(Some(address)) => address.nonce.to_string() == requested,
        Ok(None) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const ID: &str = "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.5.01BX5ZZKBKACTAV9WEVGEMMVRZ";

    #[test]
    fn the_example_round_trips() {
        let address = BlockAddress::parse(ID).unwrap().unwrap();
        assert_eq!(address.slot, 5);
        assert_eq!(address.block.to_string(), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_eq!(address.to_string(), ID);
        assert_eq!(intent_nonce(ID).unwrap(), "01BX5ZZKBKACTAV9WEVGEMMVRZ");
        assert!(answers(ID, ID));
        assert!(answers(ID, "01BX5ZZKBKACTAV9WEVGEMMVRZ"));
        assert!(!answers(ID, "01ARZ3NDEKTSV4RRFFQ69G5FAV"));
        assert!(is_public(ID) && is_public("01BX5ZZKBKACTAV9WEVGEMMVRZ") && !is_public("genesis"));
    }

    #[test]
    fn the_reserved_space_is_strict() {
        for opaque in ["hb1x", "genesis", "HB1.x", "hb", "hb2.a.0.b"] {
            assert_eq!(BlockAddress::parse(opaque).unwrap(), None, "{opaque}");
        }
        for bad in [
            "hb1",
            "hb1.",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.5",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.05.01BX5ZZKBKACTAV9WEVGEMMVRZ",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.+5.01BX5ZZKBKACTAV9WEVGEMMVRZ",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.-1.01BX5ZZKBKACTAV9WEVGEMMVRZ",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.16384.01BX5ZZKBKACTAV9WEVGEMMVRZ",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV..01BX5ZZKBKACTAV9WEVGEMMVRZ",
            "hb1.01arz3ndektsv4rrffq69g5fav.5.01BX5ZZKBKACTAV9WEVGEMMVRZ",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.5.8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.5.01BX5ZZKBKACTAV9WEVGEMMVRZ.",
        ] {
            assert!(
                matches!(BlockAddress::parse(bad), Err(Error::Internal(_))),
                "{bad}"
            );
        }
        let last = "hb1.01ARZ3NDEKTSV4RRFFQ69G5FAV.16383.01BX5ZZKBKACTAV9WEVGEMMVRZ";
        assert_eq!(
            BlockAddress::parse(last).unwrap().unwrap().to_string(),
            last
        );
    }
}
