//! Commit ids that the reference calls fresh.
//!
//! They are derived from the operation, so that a run stopped between its publish and its record finds its own commit
//! again instead of making a second one.

use sha2::{Digest as _, Sha256};
use ulid::Ulid;

/// What a minted commit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Roll-forward of a kind without an id of its own.
    Forward,
    /// Roll-back of such a kind.
    Back,
    /// The stale path.
    Stale,
    /// A branch that is gone.
    Orphan,
}

/// The id: the time of the operation, and 80 bits of a digest of operation and purpose.
pub fn minted(operation_id: &str, purpose: Purpose) -> String {
    let text = format!("omnigraph recover {purpose:?} {operation_id}");
    let digest = Sha256::digest(text.as_bytes());
    let mut low = [0_u8; 16];
    low[..10].copy_from_slice(&digest[..10]);
    let time = Ulid::from_string(operation_id).map_or(0, |u| u.timestamp_ms());
    Ulid::from_parts(time, u128::from_be_bytes(low) >> 48).to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn one_id_for_each_operation_and_purpose() {
        let operation = "01M8PHX3XEW52EE6TQ1EPCMTSV";
        let all = [
            Purpose::Forward,
            Purpose::Back,
            Purpose::Stale,
            Purpose::Orphan,
        ];
        let ids: std::collections::BTreeSet<String> =
            all.iter().map(|p| minted(operation, *p)).collect();
        assert_eq!(ids.len(), 4);
        for id in &ids {
            assert!(
                graph::ulids::is_canonical(id) && id.starts_with("01M8PHX3XE"),
                "{id}"
            );
        }
        assert_eq!(
            minted(operation, Purpose::Back),
            minted(operation, Purpose::Back)
        );
        assert!(graph::ulids::is_canonical(&minted(
            "no ulid",
            Purpose::Back
        )));
    }
}
