//! The version one publish writes and the records it must append first
//! (`docs/format/manifest-v14.md` 9 steps 4 to 10). Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use graph::Error;
use graph::history::block::{ClosedBlocks, Placed, closed_blocks, place};
use graph::manifest::{BranchState, Replaced};
use graph::model::measure::{HISTORY_RELEASE_BYTES, MAX_RECORD_BYTES, commit_bytes, table_bytes};
use graph::model::{Commit, HistoryRecord, TableRow, TableState};
use graph::schema::contract::Contract;
use ulid::Ulid;

use super::changes::{Changes, apply};
use super::slots::next_slot;
use crate::error::{Result, WriteError};

/// The lineage part of a publish, minted once and kept across its attempts.
#[derive(Debug, Clone)]
pub struct Lineage {
    /// Nonce of the commit.
    pub nonce: Ulid,
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// Author.
    pub actor: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
    /// The merged branch, for a merge.
    pub merged: Option<Merged>,
    /// Release budget of the session in bytes ([`super::budget`]).
    pub budget: u64,
}

/// The source of a merge as it was captured.
#[derive(Debug, Clone)]
pub struct Merged {
    /// Its state; the head is the merged parent.
    pub state: Arc<BranchState>,
    /// The merge base, when there is one.
    pub base: Option<String>,
}

/// What a publish will write.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The version to commit.
    pub next: BranchState,
    /// Extents to create before it, in order.
    pub extents: Vec<Placed>,
    /// The contract to archive before it.
    pub archive: Option<Contract>,
}

/// Plan the publish of `changes` over `state`, which was read with its contract texts.
pub fn plan(state: &BranchState, changes: &Changes, lineage: &Lineage) -> Result<Planned> {
    let version = state
        .version
        .checked_add(1)
        .ok_or_else(|| Error::internal("the version number of __manifest is at its end"))?;
    let tables = apply(state, changes, version)?;
    let slot = next_slot(state, lineage.nonce, lineage.budget)?;
    let contract = match &changes.contract {
        Some(contract) => contract.clone(),
        None => state
            .contract_texts
            .clone()
            .ok_or_else(|| Error::internal("a publish needs the contract texts"))?,
    };
    let kept =
        changes.contract.is_none() && state.head.schema_contract.as_ref() == Some(&contract.head);
    let content_hash = match &state.head.schema_content_hash {
        Some(hash) if kept => hash.clone(),
        _ => contract.content_hash()?,
    };
    let archive =
        (state.head.schema_content_hash.as_ref() != Some(&content_hash)).then(|| contract.clone());
    let merged = lineage.merged.as_ref().map(|m| &m.state.head);
    let head = Commit {
        graph_commit_id: slot.address.to_string(),
        schema_contract: Some(contract.head.clone()),
        schema_content_hash: Some(content_hash),
        graph_branch: lineage.branch.clone(),
        native_branch: state.native.clone(),
        graph_manifest_version: version,
        generation: state
            .head
            .generation
            .max(merged.map_or(0, |m| m.generation))
            .saturating_add(1),
        parent_commit_id: Some(state.head.graph_commit_id.clone()),
        merged_parent_commit_id: merged.map(|m| m.graph_commit_id.clone()),
        actor_id: lineage.actor.clone(),
        created_at: lineage.created_at,
    };
    check_bounds(&head, &tables)?;
    let mut extents = Vec::new();
    if slot.full {
        let records = state
            .buffer
            .iter()
            .map(|commit| record(state, commit))
            .collect::<Result<Vec<_>>>()?;
        extents.extend(place(records, &closed_run(state)?)?);
    }
    if let Some(merged) = &lineage.merged {
        extents.extend(merged_extents(state, merged)?);
    }
    let mut buffer = if slot.full {
        Vec::new()
    } else {
        state.buffer.clone()
    };
    buffer.push(state.head.clone());
    let oldest = buffer.first().map_or(0, |c| c.graph_manifest_version);
    let mut replaced: Vec<Replaced> = state
        .replaced
        .iter()
        .cloned()
        .chain(changed(state, &tables, version))
        .filter(|r| r.replaced_at > oldest)
        .collect();
    replaced.sort_by_key(|r| (r.replaced_at, r.before.identity));
    Ok(Planned {
        next: BranchState {
            version,
            native: state.native.clone(),
            tables,
            head,
            buffer,
            replaced,
            contract: contract.head.clone(),
            contract_texts: Some(contract),
        },
        extents,
        archive,
    })
}

/// Refuse a commit whose record no history object could hold.
fn check_bounds(head: &Commit, tables: &[TableRow]) -> Result<()> {
    let own = commit_bytes(head);
    let whole = tables
        .iter()
        .fold(own, |sum, t| sum.saturating_add(table_bytes(t)));
    for (resource, limit, actual) in [
        (
            "the size in bytes of a commit's own fields",
            HISTORY_RELEASE_BYTES,
            own,
        ),
        (
            "the size in bytes of a commit with its tables",
            MAX_RECORD_BYTES,
            whole,
        ),
    ] {
        if actual > limit {
            return Err(WriteError::ResourceLimitExceeded {
                resource: resource.into(),
                limit,
                actual,
                advice: "shorten the actor or the branch name, or use fewer tables".into(),
            });
        }
    }
    Ok(())
}

fn record(state: &BranchState, commit: &Commit) -> Result<HistoryRecord> {
    state.held_record(&commit.graph_commit_id).ok_or_else(|| {
        Error::internal(format!("commit {} is not held", commit.graph_commit_id)).into()
    })
}

/// The blocks that the held run of a state closes.
fn closed_run(state: &BranchState) -> Result<ClosedBlocks> {
    Ok(closed_blocks(
        state.buffer.iter().chain(std::iter::once(&state.head)),
    )?)
}

/// What a merge must keep of its source: the held run after the merge base and after whatever was merged before,
/// without the target's own commits.
fn merged_extents(target: &BranchState, merged: &Merged) -> Result<Vec<Placed>> {
    let source = &merged.state;
    let run: Vec<&Commit> = source
        .buffer
        .iter()
        .chain(std::iter::once(&source.head))
        .collect();
    let held: BTreeSet<&str> = target
        .held_commits()
        .map(|c| c.graph_commit_id.as_str())
        .collect();
    let seen: BTreeSet<&str> = target
        .held_commits()
        .filter_map(|c| c.merged_parent_commit_id.as_deref())
        .chain(merged.base.as_deref())
        .collect();
    let start = run
        .iter()
        .rposition(|c| seen.contains(c.graph_commit_id.as_str()))
        .map_or(0, |at| at + 1);
    let records = run
        .into_iter()
        .skip(start)
        .filter(|c| c.native_branch != target.native && !held.contains(c.graph_commit_id.as_str()))
        .map(|commit| record(source, commit))
        .collect::<Result<Vec<_>>>()?;
    Ok(place(records, &closed_run(source)?)?)
}

/// What the publish read for every identity it changes, in identity order.
fn changed(state: &BranchState, tables: &[TableRow], version: u64) -> Vec<Replaced> {
    tables
        .iter()
        .filter_map(|now| match state.table(now.identity) {
            Some(before) if before == now => None,
            Some(before) => Some(Replaced {
                before: before.clone(),
                replaced_at: version,
                registered: false,
            }),
            None => Some(Replaced {
                before: TableRow {
                    state: TableState::Registered,
                    ..now.clone()
                },
                replaced_at: version,
                registered: true,
            }),
        })
        .collect()
}
