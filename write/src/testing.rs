//! Small states for unit tests.
#![allow(clippy::unwrap_used)]

use graph::manifest::BranchState;
use graph::model::{Commit, ContractHead, Pin, PinMetadata, TableIdentity, TableRow, TableState};

/// A first-parent chain of commits, oldest first, at versions 1, 2, …
pub fn chain(ids: &[&str]) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        commits.push(Commit {
            graph_commit_id: (*id).into(),
            schema_contract: Some(contract()),
            schema_content_hash: Some("c".repeat(64)),
            graph_branch: None,
            native_branch: None,
            graph_manifest_version: index as u64 + 1,
            generation: index as u64,
            parent_commit_id: commits.last().map(|c| c.graph_commit_id.clone()),
            merged_parent_commit_id: None,
            actor_id: None,
            created_at: 0,
        });
    }
    commits
}

/// The contract of [`chain`].
pub fn contract() -> ContractHead {
    ContractHead {
        schema_ir_hash: format!("sha256:{}", "a".repeat(64)),
        schema_identity_version: 2,
        schema_identity_domain: "01ARZ3NDEKTSV4RRFFQ69G5FAV".into(),
    }
}

/// The state of main whose newest commit is the last of `commits`.
pub fn state(mut commits: Vec<Commit>) -> BranchState {
    let head = commits.pop().unwrap();
    BranchState {
        version: head.graph_manifest_version,
        native: None,
        tables: Vec::new(),
        head,
        buffer: commits,
        replaced: Vec::new(),
        contract: contract(),
        contract_texts: None,
    }
}

/// A table pinned at `table_version` by the publish of version `at`.
pub fn pinned(stable: u64, key: &str, table_version: u64, at: u64) -> TableRow {
    let identity = TableIdentity::new(stable, stable + 100).unwrap();
    TableRow {
        identity,
        table_key: key.into(),
        table_path: graph::model::table::canonical_path(key, identity).unwrap(),
        state: TableState::Pinned(pin(table_version, at)),
    }
}

/// A pin of [`pinned`].
pub fn pin(table_version: u64, at: u64) -> Pin {
    Pin {
        table_version,
        table_branch: None,
        row_count: 1,
        metadata: PinMetadata {
            manifest_path: format!("r/t/_versions/{table_version}.manifest"),
            last_linear_version: Some(1),
            ..PinMetadata::default()
        },
        manifest_version: at,
    }
}
