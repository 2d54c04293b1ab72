//! Plain data for unit tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use ::graph::model::{ContractHead, Pin, PinMetadata, TableIdentity};
use ::graph::schema::Contract;
use legacy::row::Row;
use legacy::{HeadScan, LegacyCommit, LegacySource, Registration, SourceContract};
use ulid::Ulid;

use crate::heads::Head;
use crate::input::{RefInput, RefKind};

pub(crate) fn ulid(n: u64) -> String {
    Ulid::from_parts(n, 1).to_string()
}

/// Commit `n` of a branch (`None` is main) at a version, without parents.
pub(crate) fn commit(n: u64, branch: Option<&str>, version: u64) -> LegacyCommit {
    LegacyCommit {
        id: ulid(n),
        branch: branch.map(str::to_string),
        version,
        parent: None,
        merged_parent: None,
        actor: None,
        created_at: i64::try_from(n).unwrap(),
    }
}

pub(crate) fn child(mut commit: LegacyCommit, parent: u64) -> LegacyCommit {
    commit.parent = Some(ulid(parent));
    commit
}

pub(crate) fn merged(mut commit: LegacyCommit, parent: u64) -> LegacyCommit {
    commit.merged_parent = Some(ulid(parent));
    commit
}

pub(crate) fn contract(name: &str) -> Arc<SourceContract> {
    Arc::new(
        SourceContract::new(Contract {
            head: ContractHead {
                schema_ir_hash: format!("sha256:{name}"),
                schema_identity_version: 2,
                schema_identity_domain: ulid(999),
            },
            source: name.to_string(),
            ir: "{}".to_string(),
        })
        .unwrap(),
    )
}

pub(crate) fn source() -> LegacySource {
    LegacySource::RootContract {
        stamp: 9,
        contract: contract("root"),
    }
}

pub(crate) fn identity(n: u64) -> TableIdentity {
    TableIdentity::new(n, n).unwrap()
}

pub(crate) fn table(n: u64, key: &str) -> Registration {
    Registration {
        identity: identity(n),
        table_key: key.to_string(),
        table_path: ::graph::model::table::canonical_path(key, identity(n)).unwrap(),
    }
}

pub(crate) fn pin(n: u64, clock: u64) -> Row {
    Row::Pin {
        identity: identity(n),
        pin: Pin {
            table_version: clock * 10,
            table_branch: None,
            row_count: clock,
            metadata: PinMetadata {
                manifest_path: format!("p/{clock}"),
                ..PinMetadata::default()
            },
            manifest_version: clock,
        },
    }
}

pub(crate) fn drop(n: u64, key: &str, clock: u64) -> Row {
    Row::Tombstone {
        identity: identity(n),
        table_key: key.to_string(),
        clock,
        sealed_version: clock * 100,
    }
}

pub(crate) fn pointer(branch: &str, n: u64) -> Row {
    Row::Head {
        branch: branch.to_string(),
        commit: ulid(n),
    }
}

/// A scanned head; `native` `None` is main.
pub(crate) fn head(native: Option<&str>, fork: u64, pinned: u64, rows: Vec<Row>) -> Head {
    let mut scan = HeadScan::of_rows(pinned, rows).unwrap();
    source().complete(&mut scan);
    let kind = if native.is_some() {
        RefKind::Live
    } else {
        RefKind::Main
    };
    let input = RefInput {
        native: native.map(str::to_string),
        pinned,
        parent: None,
        parent_version: fork,
    };
    Head::new(kind, input, 9, scan).unwrap()
}

/// A head that holds these commits and nothing else.
pub(crate) fn commits(
    native: Option<&str>,
    fork: u64,
    pinned: u64,
    commits: &[LegacyCommit],
) -> Head {
    let rows = commits.iter().cloned().map(Row::Commit).collect();
    head(native, fork, pinned, rows)
}
