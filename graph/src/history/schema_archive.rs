//! `schemas/<sha256hex>.schema`: the archived schema contracts (`docs/format/history.md` 6).
//!
//! An archive is named by the SHA-256 of its own bytes, so a read proves what it got and two writers
//! can only ever write the same object.

use bytes::Bytes;

use super::limit_as_internal;
use super::path::ObjectKey;
use crate::digest;
use crate::error::{Error, Result};
use crate::model::measure::MAX_OBJECT_BYTES;
use crate::model::{Commit, ContractHead};
use crate::schema::contract::Contract;
use crate::store::Root;

/// The key, relative to the root, of the archive with this digest. Anything but 64 lower-case hex digits
/// is [`Error::Internal`].
pub fn archive_key(content_hash: &str) -> Result<String> {
    let key = ObjectKey::parse(&format!("schemas/{content_hash}.schema"));
    key.map(|key| key.key()).map_err(|_| {
        Error::internal(format!(
            "'{content_hash}' is not a schema content hash (64 lower-case hex digits)"
        ))
    })
}

/// Read the archive `content_hash` and check it: it exists, its SHA-256 is the name, it decodes.
pub async fn read_contract(root: &Root, content_hash: &str) -> Result<Contract> {
    let key = archive_key(content_hash)?;
    let bytes = root
        .get(&key, MAX_OBJECT_BYTES)
        .await
        .map_err(limit_as_internal)?
        .ok_or_else(|| Error::internal(format!("{key} is missing")))?;
    let found = digest::sha256_hex(&bytes);
    if found != content_hash {
        return Err(Error::internal(format!(
            "{key} is damaged: its bytes hash to {found}"
        )));
    }
    Contract::decode(&bytes, &key)
}

/// [`read_contract`], and its head must be `head`.
pub async fn read_contract_of(
    root: &Root,
    head: &ContractHead,
    content_hash: &str,
) -> Result<Contract> {
    let contract = read_contract(root, content_hash).await?;
    if contract.head != *head {
        return Err(Error::internal(format!(
            "{} holds contract {}, expected {}",
            archive_key(content_hash)?,
            contract.head.to_json(),
            head.to_json()
        )));
    }
    Ok(contract)
}

/// The contract a commit names; `None` when it names none.
pub async fn read_commit_contract(root: &Root, commit: &Commit) -> Result<Option<Contract>> {
    commit.check()?;
    match (&commit.schema_contract, &commit.schema_content_hash) {
        (Some(head), Some(hash)) => read_contract_of(root, head, hash)
            .await
            .map(Some)
            .map_err(|e| e.within(format!("contract of commit {}", commit.graph_commit_id))),
        _ => Ok(None),
    }
}

/// Create the archive of a contract if it is absent and return its content hash. An existing object must
/// hold the same bytes. A contract above 64 MiB is [`Error::Refused`].
pub async fn create_archive(root: &Root, contract: &Contract) -> Result<String> {
    let bytes = contract.encode()?;
    let content_hash = digest::sha256_hex(&bytes);
    let key = archive_key(&content_hash)?;
    root.create_equal(&key, Bytes::from(bytes), MAX_OBJECT_BYTES)
        .await
        .map_err(limit_as_internal)?;
    Ok(content_hash)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::history::testing::{A1, SCHEMA, commit, root};

    fn example() -> Contract {
        Contract {
            head: commit(A1, 1, None).schema_contract.unwrap(),
            source: "node A {}\n".into(),
            ir: "{}".into(),
        }
    }

    fn internal<T: std::fmt::Debug>(result: Result<T>, part: &str) {
        match result {
            Err(Error::Internal(message)) if message.contains(part) => {}
            other => panic!("expected an internal error with '{part}': {other:?}"),
        }
    }

    #[tokio::test]
    async fn the_example_is_archived_and_read() {
        let (dir, root) = root().await;
        let contract = example();
        assert_eq!(contract.encode().unwrap().len(), 128);
        let mut naming = commit(A1, 1, None);
        internal(read_commit_contract(&root, &naming).await, "is missing");
        assert_eq!(create_archive(&root, &contract).await.unwrap(), SCHEMA);
        assert_eq!(create_archive(&root, &contract).await.unwrap(), SCHEMA);
        let found = read_commit_contract(&root, &naming).await.unwrap();
        assert_eq!(found.as_ref(), Some(&contract));
        if let Some(head) = &mut naming.schema_contract {
            head.schema_identity_version = 2;
        }
        internal(read_commit_contract(&root, &naming).await, "expected");
        (naming.schema_contract, naming.schema_content_hash) = (None, None);
        assert_eq!(read_commit_contract(&root, &naming).await.unwrap(), None);
        for bad in ["", "../x", &SCHEMA.to_uppercase()] {
            internal(read_contract(&root, bad).await, "not a schema content hash");
        }
        let path = dir.path().join(archive_key(SCHEMA).unwrap());
        std::fs::write(path, b"OGSC0001").unwrap();
        internal(read_contract(&root, SCHEMA).await, "damaged");
        internal(create_archive(&root, &contract).await, "other content");
    }
}
