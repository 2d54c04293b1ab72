//! Records and roots for the tests of this folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use tempfile::TempDir;
use ulid::Ulid;

use crate::model::{
    Commit, ContractHead, HistoryRecord, Pin, PinMetadata, TableIdentity, TableRow, TableState,
};
use crate::store::{Root, RootOptions};

pub(crate) const A1: &str = "01K6R2Q0S0AAAAAAAAAAAAAAA1";
pub(crate) const B2: &str = "01K6R2Q1W0BBBBBBBBBBBBBBB2";
pub(crate) const C3: &str = "01K6R2Q0Z0CCCCCCCCCCCCCCC3";
pub(crate) const FEATURE: &str = "feature.01K6R2Q0Y0DDDDDDDDDDDDDDD4";
pub(crate) const ABSENT: &str = "01K6R2PZZZ00000000000000X9";
pub(crate) const SCHEMA: &str = "e9e00d33c8aa7352daf079ee5ee173ab505b2c8477fd876fb15a3502b2233a4b";

pub(crate) fn ulid(n: u128) -> Ulid {
    Ulid::from((0x0199_b02b_8320_u128 << 80) | n)
}

pub(crate) fn block_id(block: u128, slot: u16, nonce: u128) -> String {
    format!("hb1.{}.{slot}.{}", ulid(block), ulid(nonce))
}

/// A root in a new folder.
pub(crate) async fn root() -> (TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let root = Root::open(path.to_str().unwrap(), RootOptions::default()).await;
    (dir, root.unwrap())
}

fn pinned(version: u64, rows: u64) -> TableRow {
    let manifest = u64::MAX - version;
    TableRow {
        identity: TableIdentity::new(1, 1).unwrap(),
        table_key: "node:A".into(),
        table_path: "nodes/0000000000000001-0000000000000001".into(),
        state: TableState::Pinned(Pin {
            table_version: version,
            table_branch: None,
            row_count: rows,
            metadata: PinMetadata {
                manifest_path: format!(
                    "g/nodes/0000000000000001-0000000000000001/_versions/{manifest}.manifest"
                ),
                manifest_size: Some(512),
                naming_scheme: Some("V2".into()),
                last_linear_version: Some(version),
                ..PinMetadata::default()
            },
            manifest_version: version,
        }),
    }
}

fn edge(state: TableState) -> TableRow {
    TableRow {
        identity: TableIdentity::new(2, 2).unwrap(),
        table_key: "edge:B".into(),
        table_path: "edges/0000000000000002-0000000000000002".into(),
        state,
    }
}

pub(crate) fn commit(id: &str, version: u64, parent: Option<&str>) -> Commit {
    Commit {
        graph_commit_id: id.into(),
        schema_contract: Some(ContractHead {
            schema_ir_hash: "ir1".into(),
            schema_identity_version: 1,
            schema_identity_domain: "dom1".into(),
        }),
        schema_content_hash: Some(SCHEMA.into()),
        graph_branch: None,
        native_branch: None,
        graph_manifest_version: version,
        generation: version.saturating_sub(1),
        parent_commit_id: parent.map(str::to_string),
        merged_parent_commit_id: None,
        actor_id: None,
        created_at: 1_759_622_400_000_000 + (version as i64 - 1) * 1_000_000,
    }
}

/// The three records of the worked example in 7.6: two of main, one of the fork.
pub(crate) fn example_records() -> Vec<HistoryRecord> {
    let a1 = commit(A1, 1, None);
    let mut b2 = commit(B2, 2, Some(A1));
    b2.actor_id = Some("alice".into());
    let mut c3 = commit(C3, 3, Some(B2));
    c3.graph_branch = Some("feature".into());
    c3.native_branch = Some(FEATURE.into());
    c3.merged_parent_commit_id = Some(ABSENT.into());
    let dropped = TableState::Dropped {
        dropped_at: 3,
        sealed_version: 1,
    };
    vec![
        HistoryRecord {
            commit: a1,
            tables: vec![pinned(1, 0)],
        },
        HistoryRecord {
            commit: b2,
            tables: vec![pinned(2, 3), edge(TableState::Registered)],
        },
        HistoryRecord {
            commit: c3,
            tables: vec![pinned(2, 3), edge(dropped)],
        },
    ]
}

/// A record at a block address.
pub(crate) fn addressed(
    block: u128,
    slot: u16,
    nonce: u128,
    parent: Option<&str>,
) -> HistoryRecord {
    let id = block_id(block, slot, nonce);
    HistoryRecord {
        commit: commit(&id, u64::from(slot) + 10, parent),
        tables: vec![pinned(2, 3), edge(TableState::Registered)],
    }
}
