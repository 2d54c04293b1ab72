//! Reading one version of a branch: guard, one scan, fold.

use std::sync::Arc;

use futures::TryStreamExt as _;

use super::batch;
use super::state::BranchState;
use crate::error::{Error, Result};
use crate::refs::{self, BranchIdentifier};
use crate::stamp::{GuardInput, guard, guard_stamp};
use crate::store::{ManifestVersion, Root, guarded};

/// Times a branch is opened again when its identity changed meanwhile.
const OPEN_TRIES: u32 = 8;

/// Which columns a read takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Rows only.
    State,
    /// Rows and the contract's texts.
    WithContract,
}

/// Open a branch by logical name (`None` = main) at its latest version and guard it. The branch's
/// identity must be the same before and after the open.
pub async fn open_branch(root: &Root, logical: Option<&str>) -> Result<ManifestVersion> {
    Ok(open_identified(root, logical).await?.0)
}

/// [`open_branch`], with the identifier of the branch's ref; main's is empty.
pub async fn open_identified(
    root: &Root,
    logical: Option<&str>,
) -> Result<(ManifestVersion, BranchIdentifier)> {
    open_by(root, logical, Search::Listed).await
}

/// [`open_identified`] for what ends in a publish, whose create of the next version decides once more. On a local
/// disk it spares reading the whole folder of versions ([`Root::open_latest_manifest`]).
pub async fn open_captured(
    root: &Root,
    logical: Option<&str>,
) -> Result<(ManifestVersion, BranchIdentifier)> {
    open_by(root, logical, Search::Followed).await
}

/// How the latest version is found.
#[derive(Debug, Clone, Copy)]
enum Search {
    Listed,
    Followed,
}

impl Search {
    async fn open(self, root: &Root, native: Option<&str>) -> Result<ManifestVersion> {
        match self {
            Self::Listed => root.open_manifest(native, None).await,
            Self::Followed => root.open_latest_manifest(native).await,
        }
    }
}

async fn open_by(
    root: &Root,
    logical: Option<&str>,
    search: Search,
) -> Result<(ManifestVersion, BranchIdentifier)> {
    for _ in 0..OPEN_TRIES {
        let Some(before) = refs::resolve_branch(root, logical).await? else {
            let version = search.open(root, None).await?;
            guard(&GuardInput::of(&version, root.uri()))?;
            return Ok((version, BranchIdentifier::main()));
        };
        let version = search.open(root, Some(&before.native)).await?;
        guard(&GuardInput::of(&version, root.uri()))?;
        let after = refs::read_ref(root, &before.native).await?;
        if after.is_some_and(|a| a.identifier == before.contents.identifier) {
            return Ok((version, before.contents.identifier));
        }
    }
    Err(Error::Conflict(format!(
        "branch '{}' was recreated {OPEN_TRIES} times while it was opened; run the command again",
        logical.unwrap_or("main")
    )))
}

/// The state, with the contract's texts, of an opened and guarded version that a write rests on. One that this process
/// read or published itself is not read again.
pub async fn read_captured(root: &Root, version: &ManifestVersion) -> Result<Arc<BranchState>> {
    if let Some(kept) = root.states().find(version) {
        return Ok(kept);
    }
    let state = Arc::new(read_state(version, ReadMode::WithContract).await?);
    root.states().keep(version, &state);
    Ok(state)
}

/// Fold one opened, guarded version into its state.
pub async fn read_state(version: &ManifestVersion, mode: ReadMode) -> Result<BranchState> {
    let described = version.describe();
    let (scanned, name) = (version.clone(), described.clone());
    guarded(&described, async move {
        for column in ["schema_source", "schema_ir"] {
            let field = scanned.dataset.schema().field(column);
            if field.map(|f| f.data_type()) != Some(arrow_schema::DataType::LargeUtf8) {
                return Err(Error::internal(format!(
                    "{name}: column {column} is missing or not LargeUtf8"
                )));
            }
        }
        let mut columns = vec!["object_id", "object_type", "record"];
        if mode == ReadMode::WithContract {
            columns.extend(["schema_source", "schema_ir"]);
        }
        let mut scanner = scanned.dataset.scan();
        scanner
            .project(&columns)
            .map_err(|e| Error::lance(name.clone(), e))?;
        let mut stream = scanner
            .try_into_stream()
            .await
            .map_err(|e| Error::lance(name.clone(), e))?;
        let mut rows = Vec::new();
        while let Some(found) = stream
            .try_next()
            .await
            .map_err(|e| Error::lance(name.clone(), e))?
        {
            rows.extend(batch::decode(&found).map_err(|e| e.within(&name))?);
        }
        BranchState::from_rows(rows, scanned.version, scanned.native.clone())
            .map_err(|e| e.within(&name))
    })
    .await
}

/// Open a branch at its latest version and read its state.
pub async fn read_branch(
    root: &Root,
    logical: Option<&str>,
    mode: ReadMode,
) -> Result<(ManifestVersion, BranchState)> {
    let version = open_branch(root, logical).await?;
    let state = read_state(&version, mode).await?;
    Ok((version, state))
}

/// Open one retained version of a ref whose stamp alone must be served: versions that hold the pending
/// key belong to an upgrade and are refused by the caller's rules.
pub async fn open_stamped_version(
    root: &Root,
    native: Option<&str>,
    version: u64,
) -> Result<ManifestVersion> {
    let opened = root.open_manifest(native, Some(version)).await?;
    guard_stamp(&GuardInput::of(&opened, root.uri()))?;
    Ok(opened)
}
