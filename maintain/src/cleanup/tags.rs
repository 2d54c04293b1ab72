//! Lance tags of a dataset, and the engine's own on `__manifest` (`docs/format/maintenance.md` 4.3 and 5.4).

use bytes::Bytes;
use graph::digest::{is_sha256_hex, sha256_hex};
use graph::history::BlockAddress;
use graph::model::names::MAIN;
use graph::store::Root;
use graph::{Error, Result, ulids};
use serde::Deserialize;

use super::lineage::Ledger;
use super::staging::LiveBranch;

/// Name prefix of tags that protect the inputs of a merge.
const MERGE_INPUT: &str = "__omnigraph_merge_input_v1_";
const MAX_TAG_BYTES: u64 = 4 << 20;

/// What the name of a merge-input tag says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeInput {
    /// SHA-256 of the target branch's incarnation.
    pub digest: String,
    /// Head of the target when the merge began.
    pub head: Option<String>,
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// Its object, relative to the root.
    pub key: String,
    /// The object as it stands: a tag that changed in any way is another tag.
    pub bytes: Bytes,
    /// Native ref it names; `None` is main.
    pub branch: Option<String>,
    /// Version it names.
    pub version: u64,
    /// Set for the engine's own.
    pub merge_input: Option<MergeInput>,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    branch: Option<String>,
    version: u64,
}

/// Key of a tag of `dataset`.
pub fn tag_key(dataset: &str, name: &str) -> String {
    format!("{dataset}/_refs/tags/{name}.json")
}

/// Read one tag; `None` when it is gone. One that cannot be understood is [`Error::Internal`]: what it protects cannot
/// be told.
pub async fn read(root: &Root, dataset: &str, name: &str) -> Result<Option<Tag>> {
    let key = tag_key(dataset, name);
    let Some(bytes) = root.get(&key, MAX_TAG_BYTES).await? else {
        return Ok(None);
    };
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|e| {
        Error::internal(format!(
            "{key} is not a valid tag object ({e}), so what it protects cannot be told; nothing was deleted"
        ))
    })?;
    Ok(Some(Tag {
        name: name.to_string(),
        key,
        bytes,
        branch: stored.branch.filter(|b| b != MAIN),
        version: stored.version,
        merge_input: merge_input(name)?,
    }))
}

/// Every tag of `__manifest`, or of a table, by name.
pub async fn read_all(root: &Root, dataset: &str) -> Result<Vec<Tag>> {
    let mut out = Vec::new();
    for file in root.list_names(&format!("{dataset}/_refs/tags")).await? {
        if let Some(name) = file.strip_suffix(".json")
            && let Some(tag) = read(root, dataset, name).await?
        {
            out.push(tag);
        }
    }
    Ok(out)
}

/// Decode the name of a merge-input tag; `None` for any other. A name with the prefix that does not decode is
/// [`Error::Internal`] and stops a cleanup.
pub fn merge_input(name: &str) -> Result<Option<MergeInput>> {
    let Some(rest) = name.strip_prefix(MERGE_INPUT) else {
        return Ok(None);
    };
    let malformed = || {
        Error::internal(format!(
            "tag '{name}' of __manifest has the prefix of a merge-input tag and does not parse as one; nothing was \
             deleted, look with: omnigraph verify"
        ))
    };
    let parts: Vec<&str> = rest.split('_').collect();
    let [digest, head, nonce] = parts[..] else {
        return Err(malformed());
    };
    let head = match head.split_at_checked(1) {
        Some(("n", "")) => None,
        Some(("b", id)) if matches!(BlockAddress::parse(id), Ok(Some(_))) => Some(id.to_string()),
        Some(("s", text)) => {
            let lower = text.bytes().all(|b| !b.is_ascii_uppercase());
            let id = hex::decode(text)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .filter(|id| !id.is_empty() && lower);
            Some(id.ok_or_else(malformed)?)
        }
        _ => return Err(malformed()),
    };
    if !is_sha256_hex(digest) || !ulids::is_canonical(nonce) {
        return Err(malformed());
    }
    Ok(Some(MergeInput {
        digest: digest.to_string(),
        head,
    }))
}

/// Whether the merge that a tag protects can no longer end: its target is gone, or moved past the head it began on.
pub fn is_dead(input: &MergeInput, branches: &[LiveBranch], ledger: &Ledger) -> bool {
    let target = branches
        .iter()
        .find(|b| sha256_hex(b.incarnation.as_bytes()) == input.digest);
    let Some(target) = target else {
        return true;
    };
    match (&input.head, &target.exact_head) {
        (None, None) => false,
        (None, Some(_)) => true,
        (Some(head), _) if *head == target.head => false,
        (Some(head), Some(now)) => ledger.is_below(now, head),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use graph::model::Commit;

    const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    #[test]
    fn names_decode_or_stop() {
        let digest = "a".repeat(64);
        let block = format!("hb1.{ULID}.5.{ULID}");
        for (head, want) in [
            ("n".to_string(), None),
            (format!("b{block}"), Some(block.clone())),
            (format!("s{}", hex::encode(ULID)), Some(ULID.to_string())),
            (format!("s{}", hex::encode(&block)), Some(block.clone())),
        ] {
            let name = format!("{MERGE_INPUT}{digest}_{head}_{ULID}");
            assert_eq!(merge_input(&name).unwrap().unwrap().head, want);
        }
        assert_eq!(merge_input("release").unwrap(), None);
        for bad in [
            format!("{digest}_n"),
            format!("{digest}_x_{ULID}"),
            format!("{digest}_s_{ULID}"),
            format!("{digest}_sZZ_{ULID}"),
            format!("{digest}_sAB_{ULID}"),
            format!("{digest}_n_{}", ULID.to_lowercase()),
            format!("A{}_n_{ULID}", &digest[1..]),
            format!("{digest}_n_{ULID}_x"),
        ] {
            assert!(
                merge_input(&format!("{MERGE_INPUT}{bad}")).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn dead_and_alive() {
        let mut ledger = Ledger::default();
        for (id, parent, generation) in [("old", None, 0), ("now", Some("old"), 1)] {
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
        let branch = |incarnation: &str, exact: Option<&str>| LiveBranch {
            incarnation: incarnation.into(),
            exact_head: exact.map(str::to_string),
            head: "now".into(),
        };
        let branches = [branch("main", Some("now")), branch("fork", None)];
        for (incarnation, head, dead) in [
            ("main", Some("now"), false),
            ("main", Some("old"), true),
            ("main", Some("elsewhere"), false),
            ("main", None, true),
            ("fork", None, false),
            ("fork", Some("now"), false),
            ("fork", Some("old"), false),
            ("gone", Some("now"), true),
            ("gone", None, true),
        ] {
            let input = MergeInput {
                digest: sha256_hex(incarnation.as_bytes()),
                head: head.map(str::to_string),
            };
            assert_eq!(
                is_dead(&input, &branches, &ledger),
                dead,
                "{incarnation} {head:?}"
            );
        }
    }
}
