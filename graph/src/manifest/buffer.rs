//! The buffer: settled commits store only what differs from their neighbours
//! (`docs/format/manifest-v14.md` 5.1).

use super::row::{LogicalRow, StoredCommit, StoredContract, encode_commit, object_type};
use crate::error::{Error, Result};
use crate::model::Commit;
use crate::model::measure::TAIL_MAX_COMMITS;

/// Encode the buffered commits (oldest first) under their head.
pub fn encode(buffer: &[Commit], head: &Commit) -> Vec<LogicalRow> {
    buffer
        .iter()
        .enumerate()
        .map(|(index, commit)| {
            let child = buffer.get(index + 1).unwrap_or(head);
            let previous = index.checked_sub(1).and_then(|i| buffer.get(i));
            let mut stored = commit.clone();
            if previous
                .is_some_and(|p| Some(&p.graph_commit_id) == commit.parent_commit_id.as_ref())
            {
                stored.parent_commit_id = None;
            }
            let same = commit.schema_contract == child.schema_contract
                && commit.schema_content_hash == child.schema_content_hash;
            let contract = match (&commit.schema_contract, same) {
                (_, true) => StoredContract::Inherited,
                (Some(head), false) => StoredContract::Own(head.clone()),
                (None, false) => StoredContract::None,
            };
            encode_commit(&stored, &contract, object_type::SETTLED_COMMIT)
        })
        .collect()
}

/// Resolve the settled rows of one version under its head; the result is oldest first and
/// first-parent contiguous up to the head, else [`Error::Internal`].
pub fn resolve(mut stored: Vec<StoredCommit>, head: &Commit) -> Result<Vec<Commit>> {
    if stored.len() > TAIL_MAX_COMMITS {
        return Err(Error::limit(
            "the number of buffered commits of one __manifest version",
            TAIL_MAX_COMMITS as u64,
            stored.len() as u64,
        ));
    }
    stored.sort_by_key(|s| s.commit.graph_manifest_version);
    let mut newer = (
        head.schema_contract.clone(),
        head.schema_content_hash.clone(),
    );
    for row in stored.iter_mut().rev() {
        if row.contract == StoredContract::Inherited {
            row.commit.schema_contract.clone_from(&newer.0);
            row.commit.schema_content_hash.clone_from(&newer.1);
        } else {
            newer = (
                row.commit.schema_contract.clone(),
                row.commit.schema_content_hash.clone(),
            );
        }
    }
    let mut commits: Vec<Commit> = Vec::with_capacity(stored.len());
    for row in stored {
        let mut commit = row.commit;
        if let Some(previous) = commits.last()
            && commit.parent_commit_id.is_none()
        {
            commit.parent_commit_id = Some(previous.graph_commit_id.clone());
        }
        commits.push(commit);
    }
    for (index, commit) in commits.iter().enumerate() {
        let child = commits.get(index + 1).unwrap_or(head);
        if child.parent_commit_id.as_deref() != Some(commit.graph_commit_id.as_str()) {
            return Err(Error::internal(format!(
                "the buffer is not one lineage: commit {} follows {} but names parent {}",
                child.graph_commit_id,
                commit.graph_commit_id,
                child.parent_commit_id.as_deref().unwrap_or("none")
            )));
        }
    }
    Ok(commits)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::super::row::decode_commit;
    use super::*;
    use crate::model::ContractHead;

    fn commit(id: &str, version: u64, parent: Option<&str>, contract: Option<&str>) -> Commit {
        Commit {
            graph_commit_id: id.into(),
            schema_contract: contract.map(|hash| ContractHead {
                schema_ir_hash: hash.into(),
                schema_identity_version: 2,
                schema_identity_domain: "dom".into(),
            }),
            schema_content_hash: contract.map(|hash| format!("content-{hash}")),
            graph_branch: None,
            native_branch: None,
            graph_manifest_version: version,
            generation: version,
            parent_commit_id: parent.map(str::to_string),
            merged_parent_commit_id: None,
            actor_id: None,
            created_at: 1,
        }
    }

    fn round_trip(buffer: Vec<Commit>, head: &Commit) {
        let rows = encode(&buffer, head);
        let stored = rows
            .iter()
            .map(|r| decode_commit(r, 100).unwrap())
            .collect();
        assert_eq!(resolve(stored, head).unwrap(), buffer);
    }

    #[test]
    fn contracts_and_parents_are_inherited_both_ways() {
        let head = commit("d", 4, Some("c"), Some("y"));
        for contracts in [
            [None, None, None],
            [None, Some("x"), Some("y")],
            [Some("x"), Some("x"), Some("y")],
            [Some("y"), Some("y"), Some("y")],
            [Some("x"), None, Some("x")],
        ] {
            round_trip(
                vec![
                    commit("a", 1, None, contracts[0]),
                    commit("b", 2, Some("a"), contracts[1]),
                    commit("c", 3, Some("b"), contracts[2]),
                ],
                &head,
            );
        }
        round_trip(
            vec![commit("c", 3, Some("older"), None)],
            &commit("d", 4, Some("c"), None),
        );
    }

    #[test]
    fn a_broken_chain_is_refused() {
        let head = commit("d", 4, Some("other"), None);
        let rows = encode(&[commit("c", 3, None, None)], &head);
        let stored = rows.iter().map(|r| decode_commit(r, 9).unwrap()).collect();
        assert!(resolve(stored, &head).is_err());
    }
}
