//! Publishes on a stamp-14 branch, as `docs/format/manifest-v14.md` 9 orders them, and versions that break
//! its rules.

use std::collections::HashMap;

use graph::history::BlockAddress;
use graph::history::block::{closed_blocks, place, write_placed};
use graph::manifest::BranchState;
use graph::manifest::batch;
use graph::manifest::row::LogicalRow;
use graph::manifest::scan::{ReadMode, read_state};
use graph::manifest::state::Replaced;
use graph::model::names::logical_name;
use graph::model::{Commit, TableState};
use graph::store::{CommitOutcome, ManifestVersion, Root};
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use lance_file::version::LanceFileVersion;
use ulid::Ulid;

/// The latest version of a ref and its state.
pub async fn head(root: &Root, native: Option<&str>) -> (ManifestVersion, BranchState) {
    let version = root.open_manifest(native, None).await.unwrap();
    let state = read_state(&version, ReadMode::WithContract).await.unwrap();
    (version, state)
}

/// Commit `rows` as the next version, with the schema metadata of the one before unless given.
pub async fn overwrite(
    root: &Root,
    version: &ManifestVersion,
    rows: &[LogicalRow],
    metadata: Option<HashMap<String, String>>,
) {
    let metadata = metadata.unwrap_or_else(|| version.dataset.schema().metadata.clone());
    let staged = InsertBuilder::new(version.dataset.clone())
        .with_params(&WriteParams {
            mode: WriteMode::Overwrite,
            data_storage_version: Some(LanceFileVersion::V2_2),
            auto_cleanup: None,
            skip_auto_cleanup: true,
            ..WriteParams::default()
        })
        .execute_uncommitted(vec![batch::encode(rows, metadata).unwrap()])
        .await
        .unwrap();
    let outcome = root
        .commit_exact("a test version", version.dataset.clone(), staged)
        .await;
    assert!(matches!(outcome, CommitOutcome::Landed(_)), "{outcome:?}");
}

/// Pin one table again under a new clock, with one more commit. A buffer of `cap` commits closes its block.
pub async fn publish(root: &Root, native: Option<&str>, cap: usize) -> String {
    let (version, mut state) = head(root, native).await;
    let old = state.head.clone();
    let n = version.version + 1;
    let nonce = Ulid::from_parts(1_800_000_000_000 + n, u128::from(n) << 8);
    let address = BlockAddress::parse(&old.graph_commit_id).unwrap();
    let full = match (state.buffer.is_empty(), address) {
        (true, _) => false,
        (false, Some(a)) => a.slot == 0,
        (false, None) => state.buffer.len() >= cap,
    };
    let slot = if full {
        1
    } else if state.buffer.len() + 1 >= cap {
        0
    } else {
        state.buffer.len() as u16 + 1
    };
    let block = match address {
        Some(a) if old.native_branch.as_deref() == native && a.slot + 1 == slot => a.block,
        _ => nonce,
    };
    if full {
        let run: Vec<&Commit> = state.buffer.iter().chain([&old]).collect();
        let closed = closed_blocks(run).unwrap();
        let records = state
            .buffer
            .iter()
            .map(|c| state.held_record(&c.graph_commit_id).unwrap())
            .collect();
        write_placed(root, place(records, &closed).unwrap())
            .await
            .unwrap();
        state.buffer.clear();
    }
    state.buffer.push(old.clone());
    let pinned: Vec<usize> = (0..state.tables.len())
        .filter(|i| matches!(state.tables[*i].state, TableState::Pinned(_)))
        .collect();
    let at = pinned[n as usize % pinned.len()];
    state.replaced.push(Replaced {
        before: state.tables[at].clone(),
        replaced_at: n,
        registered: false,
    });
    if let TableState::Pinned(pin) = &mut state.tables[at].state {
        pin.manifest_version = n;
    }
    let oldest = state.buffer[0].graph_manifest_version;
    state.replaced.retain(|r| r.replaced_at > oldest);
    let id = BlockAddress { block, slot, nonce }.to_string();
    state.head = Commit {
        graph_commit_id: id.clone(),
        graph_branch: native.map(|n| logical_name(n).to_string()),
        native_branch: native.map(str::to_string),
        graph_manifest_version: n,
        generation: old.generation + 1,
        parent_commit_id: Some(old.graph_commit_id.clone()),
        merged_parent_commit_id: None,
        actor_id: Some("actor".into()),
        created_at: 1_800_000_000_000_000 + n as i64,
        ..old
    };
    overwrite(root, &version, &state.to_rows().unwrap(), None).await;
    id
}

/// Write the state of a ref again, changed, as its next version.
pub async fn rewrite(root: &Root, native: Option<&str>, change: impl FnOnce(&mut BranchState)) {
    let (version, mut state) = head(root, native).await;
    change(&mut state);
    overwrite(root, &version, &state.to_rows().unwrap(), None).await;
}
