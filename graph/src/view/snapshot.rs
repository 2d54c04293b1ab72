//! One state of a graph: tables and commit.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::history::commit_id::{answers, is_public};
use crate::history::lookup::HistoryReader;
use crate::history::numeric::ForkPoint;
use crate::manifest::BranchState;
use crate::manifest::scan::{ReadMode, read_branch, read_state};
use crate::model::{Commit, HistoryRecord, TableRow};
use crate::refs::{self, NativeRef};
use crate::stamp::{CURRENT, GuardInput};
use crate::store::Root;
use crate::view::version::VersionReader;

/// Which state of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// Its latest version.
    Head,
    /// A numeric `__manifest` version of the branch.
    Version(u64),
    /// A commit, wherever in the graph it was written.
    Commit(String),
}

impl At {
    /// Read what a person typed: all digits are a version, anything else must be a public commit id.
    pub fn parse(text: &str) -> Result<Self> {
        if !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_digit())
            && let Ok(version) = text.parse()
        {
            return Ok(Self::Version(version));
        }
        if is_public(text) {
            return Ok(Self::Commit(text.to_string()));
        }
        Err(Error::refused(format!(
            "'{text}' is neither a version number nor a commit id; commit ids are listed by: omnigraph \
             commit list"
        )))
    }
}

/// The state of a graph at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Logical branch; `None` is main. At a commit it is the branch that wrote it.
    pub branch: Option<String>,
    /// The version shown; at a commit the version its publish wrote.
    pub manifest_version: u64,
    /// Stamp of the graph that serves it.
    pub internal_schema_version: u32,
    /// The head commit of the state.
    pub head: Commit,
    /// Every table row, dropped and registered ones included, ascending by identity.
    pub tables: Vec<TableRow>,
}

/// Read a state of `branch` (`None` = main).
pub async fn snapshot(root: &Root, branch: Option<&str>, at: &At) -> Result<Snapshot> {
    let (_, state) = read_branch(root, branch, ReadMode::State).await?;
    match at {
        At::Head => Ok(of_state(branch, state)),
        At::Commit(id) => at_commit(root, &state, id).await,
        At::Version(version) => at_version(root, branch, &state, *version).await,
    }
}

fn of_state(branch: Option<&str>, state: BranchState) -> Snapshot {
    Snapshot {
        branch: branch
            .filter(|b| *b != crate::model::names::MAIN)
            .map(str::to_string),
        manifest_version: state.version,
        internal_schema_version: CURRENT,
        head: state.head,
        tables: state.tables,
    }
}

fn of_record(record: HistoryRecord) -> Snapshot {
    Snapshot {
        branch: record.commit.graph_branch.clone(),
        manifest_version: record.commit.graph_manifest_version,
        internal_schema_version: CURRENT,
        head: record.commit,
        tables: record.tables,
    }
}

/// The record of a commit held by a branch, head or buffer, that answers `id`.
fn held(state: &BranchState, id: &str) -> Option<HistoryRecord> {
    let found = state
        .held_commits()
        .find(|c| answers(&c.graph_commit_id, id))?;
    state.held_record(&found.graph_commit_id)
}

/// The caller's branch, then `__history`, then main and the other live branches, newest first.
async fn at_commit(root: &Root, state: &BranchState, id: &str) -> Result<Snapshot> {
    if let Some(record) = held(state, id) {
        return Ok(of_record(record));
    }
    let reader = HistoryReader::new(root.clone());
    if let Some(record) = reader.record(id).await? {
        return Ok(of_record(record));
    }
    let mut others = refs::live_refs(root).await?;
    others
        .sort_by(|a, b| (b.contents.create_at, &a.native).cmp(&(a.contents.create_at, &b.native)));
    let mut natives: Vec<Option<String>> = vec![None];
    natives.extend(others.into_iter().map(|r| Some(r.native)));
    for native in natives {
        if native == state.native {
            continue;
        }
        let version = root.open_manifest(native.as_deref(), None).await?;
        crate::stamp::guard(&GuardInput::of(&version, root.uri()))?;
        let other = read_state(&version, ReadMode::State).await?;
        if let Some(record) = held(&other, id) {
            return Ok(of_record(record));
        }
    }
    Err(Error::not_found(format!(
        "no branch and no history object of this graph holds commit {id}"
    )))
}

/// A numeric version of the branch. Versions from before the conversion are served from the legacy
/// area, relabelled to the number that was asked for (`docs/format/history.md` 9.5).
async fn at_version(
    root: &Root,
    branch: Option<&str>,
    state: &BranchState,
    version: u64,
) -> Result<Snapshot> {
    let native = state.native.as_deref();
    let opened = root
        .open_manifest(native, Some(version))
        .await
        .map_err(|e| {
            if e.is_not_found() {
                Error::not_found(format!(
                    "branch '{}' has no version {version}; its latest is {}",
                    branch.unwrap_or("main"),
                    state.version
                ))
            } else {
                e
            }
        })?;
    let record = VersionReader::new(root.clone(), None)
        .record(&opened, Some(&state.head))
        .await?
        .into_found()?;
    Ok(Snapshot {
        branch: branch
            .filter(|b| *b != crate::model::names::MAIN)
            .map(str::to_string),
        manifest_version: version,
        ..of_record(record)
    })
}

/// Where every ref of `__manifest`, live or retired, forked from.
pub(crate) async fn fork_points(root: &Root) -> Result<BTreeMap<String, ForkPoint>> {
    let inventory = refs::inventory(root).await?;
    Ok(inventory
        .live
        .into_iter()
        .chain(inventory.retired)
        .map(|NativeRef { native, contents }| {
            (
                native,
                ForkPoint {
                    parent: contents.parent_branch,
                    version: contents.parent_version,
                },
            )
        })
        .collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types() {
        assert_eq!(At::parse("12").unwrap(), At::Version(12));
        let ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        assert_eq!(At::parse(ulid).unwrap(), At::Commit(ulid.into()));
        // A ULID of digits alone is too large for a version number.
        let wide = "01111111111111111111111111";
        assert_eq!(At::parse(wide).unwrap(), At::Commit(wide.into()));
        for bad in ["", "head", "-1", "hb1.x", "01arz3ndektsv4rrffq69g5fav"] {
            assert!(At::parse(bad).is_err(), "{bad}");
        }
    }
}
