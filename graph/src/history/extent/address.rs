//! Whether the rows of an extent belong where the extent stands (`docs/format/history.md` 3.6).

use std::collections::HashSet;

use ulid::Ulid;

use crate::error::{Error, Result};
use crate::history::commit_id::BlockAddress;
use crate::history::path::ExtentKey;
use crate::model::Commit;

/// Check the ids of an extent's rows, in row order, against its key.
pub fn check_address(key: &ExtentKey, commits: &[&Commit]) -> Result<()> {
    let Some(first) = commits.first() else {
        return Err(Error::internal(format!("{} holds no rows", key.key())));
    };
    match key {
        ExtentKey::Whole(block) => {
            let start = match BlockAddress::parse(&first.graph_commit_id)? {
                Some(a) if a.nonce == *block => a.slot,
                _ => {
                    return Err(Error::internal(format!(
                        "{} starts with commit {}, which did not open the block",
                        key.key(),
                        first.graph_commit_id
                    )));
                }
            };
            check_slots(key, *block, start, commits)
        }
        ExtentKey::Range { block, start, end } => {
            let expected = usize::from(end.saturating_sub(*start)) + 1;
            if commits.len() != expected {
                return Err(Error::internal(format!(
                    "{} holds {} rows, expected {expected}",
                    key.key(),
                    commits.len()
                )));
            }
            check_slots(key, *block, *start, commits)
        }
        ExtentKey::Singleton(_) => {
            let id = &first.graph_commit_id;
            if commits.len() != 1
                || ExtentKey::singleton(id) != *key
                || BlockAddress::parse(id)?.is_some()
            {
                return Err(Error::internal(format!(
                    "{} holds {} rows, the first is commit {id}, which belongs elsewhere",
                    key.key(),
                    commits.len()
                )));
            }
            Ok(())
        }
        ExtentKey::LegacyData(_) => check_legacy(key, first, commits),
    }
}

fn check_slots(key: &ExtentKey, block: Ulid, start: u16, commits: &[&Commit]) -> Result<()> {
    for (row, commit) in commits.iter().enumerate() {
        let fits = BlockAddress::parse(&commit.graph_commit_id)?
            .is_some_and(|a| a.block == block && usize::from(a.slot) == usize::from(start) + row);
        if !fits {
            return Err(Error::internal(format!(
                "{}: row {row} holds commit {}, expected slot {} of block {block}",
                key.key(),
                commit.graph_commit_id,
                usize::from(start) + row
            )));
        }
    }
    Ok(())
}

fn check_legacy(key: &ExtentKey, first: &Commit, commits: &[&Commit]) -> Result<()> {
    let mut seen = HashSet::with_capacity(commits.len());
    let mut before: Option<&Commit> = None;
    for commit in commits {
        let id = commit.graph_commit_id.as_str();
        let wrong = |what: &str| Error::internal(format!("{}: commit {id} {what}", key.key()));
        if BlockAddress::parse(id)?.is_some() {
            return Err(wrong("has a block address"));
        }
        if !seen.insert(id) {
            return Err(wrong("stands twice"));
        }
        if commit.native_branch != first.native_branch {
            return Err(wrong("was written by another ref than the first row"));
        }
        if let Some(before) = before
            && commit.parent_commit_id.as_deref() != Some(before.graph_commit_id.as_str())
        {
            return Err(wrong("does not name the row before it as its parent"));
        }
        before = Some(commit);
    }
    Ok(())
}
