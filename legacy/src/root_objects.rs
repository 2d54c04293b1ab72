//! The three root schema objects of a stamp 8 or 9 root (`docs/format/upgrade-protocol.md` 6.3,
//! `docs/format/tables-and-schema.md` 6.1 to 6.3).
//!
//! Reads `_schema.pg`, `_schema.ir.json`, `__schema_state.json`, each in one read of at most 64 MiB, after
//! probing for their staging copies: a staging copy means an unfinished schema apply, whose release
//! alone can tell which contract is the accepted one. Nothing is written, promoted or removed.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use graph::model::{TableIdentity, TableRow, TableState};
use graph::schema::{
    ContractObject, MAX_SCHEMA_BYTES, RootContractError, RootObjects, SchemaIr, Vintage,
    read_root_contract,
};
use graph::store::Root;
use graph::{Error, Result};

use crate::contract::SourceContract;

/// The contract of a root at stamps 8 and 9, with its parsed IR.
#[derive(Debug, Clone)]
pub struct RootContract {
    /// The contract, texts byte-exact.
    pub contract: Arc<SourceContract>,
    /// Its IR.
    pub ir: SchemaIr,
}

/// Why the root objects give no contract. The text is that of the finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootRefusal {
    /// A schema apply was interrupted: `source_recovery_required`.
    Staged(ContractObject),
    /// `unsupported_source`.
    Unsupported {
        /// Stamp of the root.
        stamp: u32,
        /// What is wrong.
        cause: Cause,
    },
}

/// What is wrong with the root objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// A rule of the format does not hold.
    #[error("{0}")]
    Contract(RootContractError),
    /// Stamp 8 predates the spelling of the system columns that the IR uses.
    #[error(
        "_schema.ir.json spells the system columns __id, __src and __dst, which no graph of stamp 8 does"
    )]
    Vintage,
    /// The texts do not fit the object that would archive them.
    #[error("{0}")]
    Archive(String),
}

impl std::fmt::Display for RootRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Staged(object) => write!(
                f,
                "{} exists: a schema apply was interrupted and its outcome is not settled. Open the graph \
                 read-write with the release that wrote it, which settles it, then run the check again",
                object.staging_name()
            ),
            Self::Unsupported { stamp, cause } => {
                let [source, ir, state] = ContractObject::ALL;
                write!(
                    f,
                    "{source}, {ir} and {state} do not hold the accepted schema of this graph of stamp \
                     {stamp}: {cause}. Restore the whole root from a backup; do not mend one object by hand"
                )
            }
        }
    }
}

/// Read the contract of a root whose main is stamped `stamp` (8 or 9). What is wrong with the objects is
/// a [`RootRefusal`]; a store that does not answer is an error.
pub async fn read(
    root: &Root,
    stamp: u32,
) -> Result<std::result::Result<RootContract, RootRefusal>> {
    for object in ContractObject::ALL {
        if root.exists(object.staging_name()).await? {
            return Ok(Err(RootRefusal::Staged(object)));
        }
    }
    let unsupported = |cause| Ok(Err(RootRefusal::Unsupported { stamp, cause }));
    // The source comes alone: when it is absent, nothing else is read.
    let mut objects = RootObjects::default();
    for object in ContractObject::ALL {
        let bytes = match read_object(root, object).await? {
            Ok(bytes) => bytes,
            Err(cause) => return unsupported(Cause::Contract(cause)),
        };
        match object {
            ContractObject::Source if bytes.is_none() => {
                return unsupported(Cause::Contract(RootContractError::SourceMissing));
            }
            ContractObject::Source => objects.source = bytes,
            ContractObject::Ir => objects.ir = bytes,
            ContractObject::State => objects.state = bytes,
        }
    }
    let (contract, ir) = match read_root_contract(&objects) {
        Ok(read) => read,
        Err(cause) => return unsupported(Cause::Contract(cause)),
    };
    if stamp == 8 && ir.vintage() == Vintage::Current {
        return unsupported(Cause::Vintage);
    }
    match SourceContract::new(contract) {
        Ok(contract) => Ok(Ok(RootContract {
            contract: Arc::new(contract),
            ir,
        })),
        Err(e) => unsupported(Cause::Archive(e.to_string())),
    }
}

async fn read_object(
    root: &Root,
    object: ContractObject,
) -> Result<std::result::Result<Option<Bytes>, RootContractError>> {
    let limit = MAX_SCHEMA_BYTES as u64;
    match root.get(object.name(), limit).await {
        Ok(bytes) => Ok(Ok(bytes)),
        Err(Error::Limit { actual, .. }) => Ok(Err(RootContractError::TooLarge {
            object,
            size: actual,
            limit,
        })),
        Err(e) => Err(e),
    }
}

/// How the tables of a live head differ from the ones the contract declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TablesDiffer {
    /// In the head, not in the contract.
    #[error("it registers table {key} ({identity}), which the schema does not declare")]
    Undeclared {
        /// Its alias.
        key: String,
        /// Its identity.
        identity: TableIdentity,
    },
    /// In the contract, not in the head.
    #[error("it lacks table {key} ({identity}), which the schema declares")]
    Missing {
        /// Its alias.
        key: String,
        /// Its identity.
        identity: TableIdentity,
    },
}

/// Compare the tables of a live head that are not dropped with the tables a contract declares, as pairs
/// of key and identity (`docs/format/upgrade-protocol.md` 6.2 step 21). The first undeclared pair comes
/// before the first missing one.
pub fn compare_tables<'a>(
    declared: impl IntoIterator<Item = (&'a str, TableIdentity)>,
    head: &'a [TableRow],
) -> std::result::Result<(), TablesDiffer> {
    let declared: BTreeSet<_> = declared.into_iter().collect();
    let held: BTreeSet<_> = head
        .iter()
        .filter(|t| !matches!(t.state, TableState::Dropped { .. }))
        .map(|t| (t.table_key.as_str(), t.identity))
        .collect();
    if let Some((key, identity)) = held.difference(&declared).next() {
        return Err(TablesDiffer::Undeclared {
            key: (*key).to_string(),
            identity: *identity,
        });
    }
    match declared.difference(&held).next() {
        Some((key, identity)) => Err(TablesDiffer::Missing {
            key: (*key).to_string(),
            identity: *identity,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use graph::store::RootOptions;

    async fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let uri = folder.path().to_str().unwrap().to_string();
        let root = Root::open(&uri, RootOptions::default()).await.unwrap();
        (folder, root)
    }

    async fn refusal(root: &Root, stamp: u32) -> String {
        read(root, stamp)
            .await
            .unwrap()
            .expect_err("refused")
            .to_string()
    }

    #[tokio::test]
    async fn staging_copies_are_probed_in_order_and_before_anything_else() {
        let (folder, root) = root().await;
        for object in ContractObject::ALL.into_iter().rev() {
            std::fs::write(folder.path().join(object.staging_name()), "x").unwrap();
            let got = read(&root, 9).await.unwrap().expect_err("staged");
            assert_eq!(got, RootRefusal::Staged(object));
            assert!(got.to_string().contains(object.staging_name()));
        }
    }

    #[tokio::test]
    async fn refusals_name_objects_stamp_cause_and_way_out() {
        let (folder, root) = root().await;
        let text = refusal(&root, 9).await;
        for part in [
            "_schema.pg",
            "_schema.ir.json",
            "__schema_state.json",
            "stamp 9",
            "Restore the whole root",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains("_schema.pg is missing"), "{text}");

        let source = folder.path().join("_schema.pg");
        std::fs::write(&source, [0xff, b'a']).unwrap();
        assert!(refusal(&root, 8).await.contains("not UTF-8"));
        std::fs::write(&source, "this is no schema").unwrap();
        assert!(refusal(&root, 8).await.contains("does not compile"));
        std::fs::write(&source, "node A { name: String }").unwrap();
        assert!(refusal(&root, 8).await.contains("are missing"));
        std::fs::write(folder.path().join("_schema.ir.json"), "{}").unwrap();
        assert!(
            refusal(&root, 8)
                .await
                .contains("incomplete: __schema_state.json")
        );
    }

    #[tokio::test]
    async fn an_object_above_the_bound_is_named_and_not_read() {
        let (folder, root) = root().await;
        let file = std::fs::File::create(folder.path().join("_schema.pg")).unwrap();
        file.set_len(MAX_SCHEMA_BYTES as u64 + 1).unwrap();
        let text = refusal(&root, 8).await;
        assert!(text.contains("_schema.pg has 67108865 bytes"), "{text}");
        assert!(text.contains("67108864"), "{text}");
    }

    #[test]
    fn tables_are_compared_by_key_and_identity() {
        let id = |n| TableIdentity::new(n, n).unwrap();
        let row = |key: &str, n, state| TableRow {
            identity: id(n),
            table_key: key.into(),
            table_path: String::new(),
            state,
        };
        let dropped = || TableState::Dropped {
            dropped_at: 1,
            sealed_version: 1,
        };
        let head = [
            row("node:A", 1, TableState::Registered),
            row("node:B", 2, TableState::Registered),
            row("node:B", 3, dropped()),
        ];
        let (a, b, c) = (("node:A", id(1)), ("node:B", id(2)), ("node:C", id(4)));
        assert_eq!(compare_tables([b, a], &head), Ok(()));
        assert!(matches!(
            compare_tables([a, c], &head),
            Err(TablesDiffer::Undeclared { key, .. }) if key == "node:B"
        ));
        assert!(matches!(
            compare_tables([a, b, c], &head),
            Err(TablesDiffer::Missing { key, .. }) if key == "node:C"
        ));
        assert!(compare_tables([a, ("node:B", id(9))], &head).is_err());
    }
}
