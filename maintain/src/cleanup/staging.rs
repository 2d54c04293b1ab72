//! Unpublished staging: detached versions that nothing names, judged by the witness their writer left
//! (`docs/format/maintenance.md` 5.6). Pure. Age never decides.

use std::collections::{BTreeSet, HashMap};

use graph::history::BlockAddress;
use graph::refs::BranchIdentifier;
use graph::ulids;
use serde::Serialize;

use super::lineage::Ledger;

const INCARNATION: &str = "omnigraph.staged_against_branch_incarnation";
const HEAD: &str = "omnigraph.staged_against_graph_head";

/// A valid witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Compact JSON of the branch identifier it was staged against.
    pub incarnation: String,
    /// The head it was staged against; `None` when the branch had none.
    pub head: Option<String>,
}

impl Witness {
    /// The witness among transaction properties; `None` when there is none that is valid.
    pub fn read(properties: &HashMap<String, String>) -> Option<Self> {
        let (incarnation, head) = (properties.get(INCARNATION)?, properties.get(HEAD)?);
        let identifier: BranchIdentifier = serde_json::from_str(incarnation).ok()?;
        let uuids = identifier.version_mapping.iter().map(|(_, uuid)| uuid);
        let valid = serde_json::to_string(&identifier).ok()? == *incarnation
            && identifier != BranchIdentifier::sentinel()
            && uuids.into_iter().all(|uuid| is_uuid(uuid))
            && (head.is_empty() || is_commit_id(head));
        valid.then(|| Self {
            incarnation: incarnation.clone(),
            head: (!head.is_empty()).then(|| head.clone()),
        })
    }
}

fn is_uuid(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == 32 && text.bytes().all(hex) && text.bytes().any(|b| b != b'0')
}

/// A commit id as heads have it: of a history block, or a canonical ULID.
pub fn is_commit_id(text: &str) -> bool {
    ulids::is_canonical(text) || matches!(BlockAddress::parse(text), Ok(Some(_)))
}

/// What becomes of a staged version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its head is still the branch's: kept.
    Live,
    /// Its branch moved on, or is gone: removed.
    Dead,
    /// It cannot be told: kept.
    Undecidable,
}

/// A captured live branch, as verdicts see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveBranch {
    /// Compact JSON of its identifier.
    pub incarnation: String,
    /// The head that this incarnation wrote; `None` for a fork without a publish.
    pub exact_head: Option<String>,
    /// The head that it shows.
    pub head: String,
}

/// What verdicts rest on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The captured live branches.
    pub branches: &'a [LiveBranch],
    /// All commits.
    pub ledger: &'a Ledger,
    /// Identifiers of the live branches, read after the versions were listed.
    pub live_after: &'a BTreeSet<String>,
}

/// The verdict over a version with this witness.
pub fn judge(witness: Option<&Witness>, evidence: Evidence<'_>) -> Verdict {
    let Some(witness) = witness else {
        return Verdict::Undecidable;
    };
    let captured = evidence
        .branches
        .iter()
        .find(|b| b.incarnation == witness.incarnation);
    let Some(branch) = captured else {
        return if evidence.live_after.contains(&witness.incarnation) {
            Verdict::Undecidable
        } else {
            Verdict::Dead
        };
    };
    match (&witness.head, &branch.exact_head) {
        (None, None) => Verdict::Live,
        (None, Some(_)) => Verdict::Dead,
        // A writer may have recorded the head that an unpublished fork inherits: it is current all the same.
        (Some(recorded), _) if *recorded == branch.head => Verdict::Live,
        (Some(recorded), Some(head)) if evidence.ledger.is_below(head, recorded) => Verdict::Dead,
        (Some(_), _) => Verdict::Undecidable,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use graph::model::Commit;

    const OLD: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA0";
    const NOW: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA1";
    const SIDE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA2";

    fn properties(incarnation: &str, head: &str) -> HashMap<String, String> {
        [(INCARNATION, incarnation), (HEAD, head)]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into()
    }

    fn mapping(version: u64, uuid: &str) -> String {
        format!(r#"{{"version_mapping":[[{version},"{uuid}"]]}}"#)
    }

    #[test]
    fn only_exact_witnesses_count() {
        let main = r#"{"version_mapping":[]}"#;
        let uuid = "0123456789abcdef".repeat(2);
        let block = format!("hb1.{OLD}.5.{NOW}");
        for (incarnation, head) in [
            (main.to_string(), ""),
            (main.to_string(), OLD),
            (main.to_string(), &block),
            (mapping(3, &uuid), OLD),
            // Version 0 alone is not the sentinel.
            (mapping(0, &uuid), OLD),
        ] {
            let read = Witness::read(&properties(&incarnation, head)).unwrap();
            assert_eq!(read.incarnation, incarnation);
            assert_eq!(read.head.as_deref().unwrap_or(""), head);
        }
        let zeros = "0".repeat(32);
        for (incarnation, head) in [
            (r#"{"version_mapping": []}"#.to_string(), OLD),
            (r#"{"version_mapping":[],"x":1}"#.into(), OLD),
            ("main".into(), OLD),
            (mapping(0, &zeros), OLD),
            (mapping(4, &zeros), OLD),
            (mapping(4, &uuid.to_uppercase()), OLD),
            (mapping(4, &uuid[1..]), OLD),
            (main.into(), "head"),
            (main.into(), &OLD.to_lowercase()),
        ] {
            let found = Witness::read(&properties(&incarnation, head));
            assert_eq!(found, None, "{incarnation} {head}");
        }
        let mut half = properties(main, OLD);
        half.remove(HEAD);
        assert_eq!(Witness::read(&half), None);
    }

    #[test]
    fn verdicts() {
        let mut ledger = Ledger::default();
        for (id, parent, generation) in [(OLD, None, 0), (NOW, Some(OLD), 1), (SIDE, Some(OLD), 1)]
        {
            ledger.add(&Commit {
                graph_commit_id: id.into(),
                schema_contract: None,
                schema_content_hash: None,
                graph_branch: None,
                native_branch: None,
                graph_manifest_version: generation + 1,
                generation,
                parent_commit_id: parent.map(str::to_string),
                merged_parent_commit_id: None,
                actor_id: None,
                created_at: 0,
            });
        }
        let branches = [
            LiveBranch {
                incarnation: "main".into(),
                exact_head: Some(NOW.into()),
                head: NOW.into(),
            },
            LiveBranch {
                incarnation: "fork".into(),
                exact_head: None,
                head: NOW.into(),
            },
        ];
        let live_after = BTreeSet::from(["main".to_string(), "new".into()]);
        let evidence = Evidence {
            branches: &branches,
            ledger: &ledger,
            live_after: &live_after,
        };
        for (incarnation, head, want) in [
            ("main", Some(NOW), Verdict::Live),
            ("main", None, Verdict::Dead),
            ("main", Some(OLD), Verdict::Dead),
            ("main", Some(SIDE), Verdict::Undecidable),
            (
                "main",
                Some("01ARZ3NDEKTSV4RRFFQ69G5FA9"),
                Verdict::Undecidable,
            ),
            ("fork", None, Verdict::Live),
            ("fork", Some(NOW), Verdict::Live),
            ("fork", Some(OLD), Verdict::Undecidable),
            ("gone", Some(OLD), Verdict::Dead),
            ("gone", None, Verdict::Dead),
            ("new", Some(OLD), Verdict::Undecidable),
        ] {
            let witness = Witness {
                incarnation: incarnation.into(),
                head: head.map(str::to_string),
            };
            assert_eq!(
                judge(Some(&witness), evidence),
                want,
                "{incarnation} {head:?}"
            );
        }
        assert_eq!(judge(None, evidence), Verdict::Undecidable);
    }
}
