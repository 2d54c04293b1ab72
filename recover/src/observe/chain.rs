//! The proof that a merge's chain of commits is the write's own, and nothing else
//! (`docs/format/recovery-sidecars.md` 5). Pure.

use super::ownership::Ownership;
use super::{Entry, MAX_SCAN};
use crate::sidecar::TransactionId;

/// What the chain shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Whose it is; a prefix counts as `OwnAtHead`.
    pub ownership: Ownership,
    /// Whether every planned transaction landed.
    pub full: bool,
}

const UNVERIFIABLE: Chain = Chain {
    ownership: Ownership::Unverifiable,
    full: false,
};

/// Prove the chain `planned` (not empty) on a ref whose newest version is `head`; `pinned` is the version the catalog
/// shows.
pub fn prove(planned: &[TransactionId], head: u64, pinned: u64, entries: &[Entry]) -> Chain {
    let Some(base) = planned.first().map(|t| t.read_version) else {
        return UNVERIFIABLE;
    };
    if head < base || head - base > MAX_SCAN {
        return UNVERIFIABLE;
    }
    if head == base {
        return Chain {
            ownership: Ownership::None,
            full: false,
        };
    }
    let (mut matched, mut indexed) = (0, false);
    for version in base + 1..=head {
        let Some(transaction) = entries
            .iter()
            .find(|e| e.version == version)
            .and_then(|e| e.transaction.as_ref())
        else {
            return UNVERIFIABLE;
        };
        let full = matched == planned.len();
        if version == head && matched > 0 && transaction.restores == Some(pinned) {
            return Chain {
                ownership: Ownership::OwnCompensatedAtHead,
                full,
            };
        }
        match planned.get(matched) {
            Some(next)
                if transaction.is(next) && version == next.read_version.saturating_add(1) =>
            {
                matched += 1;
            }
            None if transaction.operation == "CreateIndex" && !indexed => indexed = true,
            _ => return UNVERIFIABLE,
        }
    }
    Chain {
        ownership: match matched {
            0 => Ownership::None,
            _ => Ownership::OwnAtHead,
        },
        full: matched == planned.len(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::super::ownership::tests::entries;
    use super::*;

    #[test]
    fn only_a_contiguous_prefix_is_proved() {
        use Ownership::*;
        let planned: Vec<TransactionId> = [(2, "a"), (3, "b")]
            .map(|(read_version, uuid)| TransactionId {
                read_version,
                uuid: uuid.into(),
            })
            .to_vec();
        for (spelled, want, full) in [
            (&[][..], None, false),
            (&["a"], OwnAtHead, false),
            (&["a", "b"], OwnAtHead, true),
            (&["a", "b", "i"], OwnAtHead, true),
            (&["a", "b", "i", "i"], Unverifiable, false),
            (&["a", "b", "x"], Unverifiable, false),
            (&["a", "i"], Unverifiable, false),
            (&["a", "x"], Unverifiable, false),
            (&["b"], Unverifiable, false),
            (&["x", "a"], Unverifiable, false),
            (&["-"], Unverifiable, false),
            (&["a", "r2"], OwnCompensatedAtHead, false),
            (&["a", "b", "r2"], OwnCompensatedAtHead, true),
            (&["a", "b", "i", "r2"], OwnCompensatedAtHead, true),
            (&["a", "r1"], Unverifiable, false),
            (&["a", "r2", "x"], Unverifiable, false),
            (&["r2"], Unverifiable, false),
        ] {
            let head = 2 + spelled.len() as u64;
            let got = prove(&planned, head, 2, &entries(3, spelled));
            assert_eq!(
                got,
                Chain {
                    ownership: want,
                    full
                },
                "{spelled:?}"
            );
        }
        // The read version counts too.
        let mut shifted = entries(3, &["a", "b"]);
        shifted[1].transaction.as_mut().unwrap().read_version = 2;
        assert_eq!(prove(&planned, 4, 2, &shifted), UNVERIFIABLE);
        assert_eq!(prove(&planned, 1, 2, &[]), UNVERIFIABLE);
        assert_eq!(prove(&planned, 2 + MAX_SCAN + 1, 2, &[]), UNVERIFIABLE);
    }
}
