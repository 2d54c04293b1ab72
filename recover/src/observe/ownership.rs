//! Whether a table's newest version is the write's own (`docs/format/recovery-sidecars.md` 5). Pure.

use serde::Serialize;

use super::{Entry, MAX_SCAN};

/// Whose the versions above the pin are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Ownership {
    /// Nothing of this write is in the table.
    None,
    /// Its version is the newest.
    OwnAtHead,
    /// Its version is there, and others above it.
    OwnBeforeHead,
    /// Its version is there and an earlier rollback already restored the pin above it.
    OwnCompensatedAtHead,
    /// A record that would tell is missing.
    Unverifiable,
}

impl Ownership {
    /// Whether an effect of the write is in the table.
    pub fn is_owned(self) -> bool {
        matches!(
            self,
            Self::OwnAtHead | Self::OwnBeforeHead | Self::OwnCompensatedAtHead
        )
    }

    /// Whether it can be taken back or published: nothing foreign stands above it.
    pub fn is_at_head(self) -> bool {
        matches!(self, Self::OwnAtHead | Self::OwnCompensatedAtHead)
    }
}

/// Ownership of one planned transaction: `head` is the newest version, `post` the version it was to make, `pinned`
/// the version the catalog shows.
pub fn of_transaction(
    uuid: &str,
    head: u64,
    post: u64,
    pinned: u64,
    entries: &[Entry],
) -> Ownership {
    if head < post {
        return Ownership::None;
    }
    if head - post >= MAX_SCAN {
        return Ownership::Unverifiable;
    }
    let scanned: Vec<&Entry> = entries.iter().filter(|e| e.version >= post).collect();
    if scanned.len() as u64 != head - post + 1 {
        return Ownership::Unverifiable;
    }
    let own = scanned
        .iter()
        .find(|e| e.transaction.as_ref().is_some_and(|t| t.uuid == uuid));
    match own {
        Some(own) if own.version == head => Ownership::OwnAtHead,
        Some(_) if restores(&scanned, pinned) => Ownership::OwnCompensatedAtHead,
        Some(_) => Ownership::OwnBeforeHead,
        None if scanned.iter().any(|e| e.transaction.is_none()) => Ownership::Unverifiable,
        None => Ownership::None,
    }
}

/// Whether the newest version is a restore of exactly the pin.
fn restores(scanned: &[&Entry], pinned: u64) -> bool {
    scanned
        .last()
        .and_then(|e| e.transaction.as_ref())
        .is_some_and(|t| t.restores == Some(pinned))
}

/// The operation of the version a planned transaction made.
pub fn operation_of<'a>(uuid: &str, entries: &'a [Entry]) -> Option<&'a str> {
    entries
        .iter()
        .filter_map(|e| e.transaction.as_ref())
        .find(|t| t.uuid == uuid)
        .map(|t| t.operation.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(crate) mod tests {
    use super::*;
    use crate::observe::Recorded;

    /// Versions from `first` on: `own`, `-` (no record), `r2` (restore of 2), `i` (index), anything else foreign.
    pub(crate) fn entries(first: u64, spelled: &[&str]) -> Vec<Entry> {
        let entry = |(n, what): (usize, &&str)| {
            let version = first + n as u64;
            let (uuid, operation, restores) = match *what {
                "i" => ("index".to_string(), "CreateIndex", None),
                r if r.starts_with('r') => (r.to_string(), "Restore", r[1..].parse().ok()),
                other => (other.to_string(), "Append", None),
            };
            Entry {
                version,
                transaction: (*what != "-").then(|| Recorded {
                    read_version: version - 1,
                    uuid,
                    operation: operation.into(),
                    restores,
                }),
            }
        };
        spelled.iter().enumerate().map(entry).collect()
    }

    #[test]
    fn the_first_own_version_decides() {
        use Ownership::*;
        // Pin 2, post 3.
        for (spelled, want) in [
            (&[][..], None),
            (&["own"], OwnAtHead),
            (&["x"], None),
            (&["-"], Unverifiable),
            (&["x", "own"], OwnAtHead),
            (&["own", "x"], OwnBeforeHead),
            (&["own", "-"], OwnBeforeHead),
            (&["own", "r2"], OwnCompensatedAtHead),
            (&["own", "r1"], OwnBeforeHead),
            (&["own", "x", "r2"], OwnCompensatedAtHead),
            (&["own", "r2", "x"], OwnBeforeHead),
            (&["x", "r2"], None),
            (&["x", "-"], Unverifiable),
        ] {
            let head = 2 + spelled.len() as u64;
            let got = of_transaction("own", head, 3, 2, &entries(3, spelled));
            assert_eq!(got, want, "{spelled:?}");
        }
    }

    #[test]
    fn too_many_versions_prove_nothing() {
        assert_eq!(
            of_transaction("own", 3 + MAX_SCAN, 3, 2, &[]),
            Ownership::Unverifiable
        );
        assert_eq!(
            of_transaction("own", 4, 3, 2, &entries(3, &["own"])),
            Ownership::Unverifiable,
            "a version that was not read"
        );
    }
}
