//! Reading a numeric `__manifest` version from before the upgrade (`docs/format/history.md` 9.5).
//!
//! The caller decides by stamp and pending key that the version is served from the legacy area; this is
//! the walk from a ref and version to the commit that was current there.

use std::collections::HashSet;

use super::legacy::{ChainKind, WriterEntry};
use super::lookup::HistoryReader;
use crate::error::{Error, Result};
use crate::model::names::logical_name;
use crate::model::{Commit, HistoryRecord};

/// Versions of main above its legacy head that the conversion itself wrote: the fence and the
/// conversion commit.
const FENCED_VERSIONS: u64 = 2;

/// Where a ref of `__manifest` forked from, as Lance's branch contents record it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// Native parent; `None` is main.
    pub parent: Option<String>,
    /// Version it forked at.
    pub version: u64,
}

/// What the legacy area serves for a numeric version. `C` is a [`Commit`] or a [`HistoryRecord`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served<C> {
    /// The commit that wrote exactly this version of this ref.
    Exact(C),
    /// The commit that was current at this version.
    Nearest(C),
    /// The legacy area records nothing of this version; the text says why.
    NotFound(String),
    /// The version precedes the genesis commit.
    PreGenesis,
}

impl<C> Served<C> {
    /// The commit, exact or nearest. [`Error::NotFound`] otherwise.
    pub fn into_found(self) -> Result<C> {
        match self {
            Self::Exact(found) | Self::Nearest(found) => Ok(found),
            Self::NotFound(why) => Err(Error::not_found(why)),
            Self::PreGenesis => Err(Error::not_found(
                "the version precedes the genesis commit of the graph",
            )),
        }
    }
}

/// One step of the walk.
enum Step {
    Done(Box<Served<Commit>>),
    On(Option<String>, u64),
}

impl Step {
    fn done(served: Served<Commit>) -> Self {
        Self::Done(Box::new(served))
    }
}

impl HistoryReader {
    /// The commit current at `version` of `native` (`None` is main). `fenced` says that the version
    /// carries stamp 14 and the pending key. `fork_point` answers for refs of `__manifest`, live or
    /// retired. `head` is the head of a live ref: where the walk comes to a ref that is gone, its first parents
    /// decide. `None` when the root has no legacy area: the version is then left to the stamp guard.
    pub async fn numeric(
        &self,
        native: Option<&str>,
        version: u64,
        fenced: bool,
        fork_point: &(dyn Fn(&str) -> Option<ForkPoint> + Sync),
        head: Option<&Commit>,
    ) -> Result<Option<Served<Commit>>> {
        if self.directory().await?.is_none() {
            return Ok(None);
        }
        let mut visited: HashSet<Option<String>> = HashSet::new();
        let (mut at, mut upto) = (native.map(str::to_string), version);
        let mut first = Some(fenced);
        loop {
            if !visited.insert(at.clone()) {
                return Err(Error::internal(format!(
                    "the forks below '{}' form a cycle through '{}'",
                    native.unwrap_or("main"),
                    at.as_deref().unwrap_or("main")
                )));
            }
            match self
                .numeric_step(at.as_deref(), upto, first, fork_point, head)
                .await?
            {
                Step::Done(served) => {
                    return Ok(Some(match *served {
                        Served::Exact(commit)
                            if first.is_none() || commit.graph_manifest_version != version =>
                        {
                            Served::Nearest(commit)
                        }
                        other => other,
                    }));
                }
                Step::On(parent, bound) => {
                    (at, upto) = (parent, upto.min(bound));
                    first = None;
                }
            }
        }
    }

    /// [`HistoryReader::numeric`] with the record of the commit.
    pub async fn numeric_record(
        &self,
        native: Option<&str>,
        version: u64,
        fenced: bool,
        fork_point: &(dyn Fn(&str) -> Option<ForkPoint> + Sync),
        head: Option<&Commit>,
    ) -> Result<Option<Served<HistoryRecord>>> {
        Ok(
            match self
                .numeric(native, version, fenced, fork_point, head)
                .await?
            {
                None => None,
                Some(Served::Exact(c)) => Some(Served::Exact(self.record_of(&c).await?)),
                Some(Served::Nearest(c)) => Some(Served::Nearest(self.record_of(&c).await?)),
                Some(Served::NotFound(why)) => Some(Served::NotFound(why)),
                Some(Served::PreGenesis) => Some(Served::PreGenesis),
            },
        )
    }

    async fn record_of(&self, commit: &Commit) -> Result<HistoryRecord> {
        match self.record(&commit.graph_commit_id).await? {
            Some(record) if record.commit == *commit => Ok(record),
            Some(_) => Err(Error::internal(format!(
                "two copies of commit {} differ",
                commit.graph_commit_id
            ))),
            None => Err(Error::internal(format!(
                "commit {} stands in a legacy data file and the locator does not list it",
                commit.graph_commit_id
            ))),
        }
    }

    /// One step at ref `at`; `first` carries the fenced flag on the first step. A found commit comes
    /// back as [`Served::Exact`]; the caller tells exact from nearest.
    async fn numeric_step(
        &self,
        at: Option<&str>,
        upto: u64,
        first: Option<bool>,
        fork_point: &(dyn Fn(&str) -> Option<ForkPoint> + Sync),
        head: Option<&Commit>,
    ) -> Result<Step> {
        let writers = self.writers(at).await?;
        let (orphans, refs): (Vec<_>, Vec<_>) = writers
            .into_iter()
            .partition(|w| w.kind == ChainKind::Orphaned);
        if let Some(writer) = refs.first() {
            return self.step_at_writer(writer, upto, first).await;
        }
        let Some(name) = at else {
            return Err(Error::internal("the legacy locator does not list main"));
        };
        if let Some(fork) = fork_point(name) {
            return Ok(Step::On(fork.parent, fork.version));
        }
        if let Some(head) = head
            && let Some(commit) = self.first_parent_at(head, upto).await?
        {
            return Ok(Step::done(Served::Exact(commit)));
        }
        self.step_at_orphan(name, orphans, upto).await
    }

    /// The newest commit at or below `upto` among `head` and its first parents: legacy publishes chose the
    /// head of their version as first parent, so these are the heads of all versions of the lineage.
    async fn first_parent_at(&self, head: &Commit, upto: u64) -> Result<Option<Commit>> {
        let mut seen = HashSet::new();
        let mut at = head.clone();
        while at.graph_manifest_version > upto {
            let Some(parent) = at.parent_commit_id.clone() else {
                return Ok(None);
            };
            if !seen.insert(parent.clone()) {
                return Err(Error::internal(format!(
                    "the first parents of {} form a cycle through {parent}",
                    head.graph_commit_id
                )));
            }
            match self.commit(&parent).await? {
                Some(found) => at = found,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    async fn step_at_writer(
        &self,
        writer: &WriterEntry,
        upto: u64,
        first: Option<bool>,
    ) -> Result<Step> {
        let name = writer.native.as_deref().unwrap_or("main");
        let main = writer.kind == ChainKind::Main;
        let converted = main
            && first == Some(true)
            && upto.saturating_sub(writer.head_version) <= FENCED_VERSIONS;
        if upto > writer.head_version && !converted {
            return Ok(Step::done(Served::NotFound(format!(
                "version {upto} of '{name}' lies above version {}, the last the legacy area records",
                writer.head_version
            ))));
        }
        if upto > writer.parent_version {
            let directory = self.directory().await?;
            if let Some(directory) = directory
                && let Some(commit) = self.writer_commit_at(&directory, writer, upto).await?
            {
                return Ok(Step::done(Served::Exact(commit)));
            }
        }
        Ok(if main {
            Step::done(Served::PreGenesis)
        } else {
            Step::On(writer.parent.clone(), writer.parent_version)
        })
    }

    async fn step_at_orphan(
        &self,
        name: &str,
        mut orphans: Vec<WriterEntry>,
        upto: u64,
    ) -> Result<Step> {
        let logical = logical_name(name);
        if orphans.is_empty() && logical != name {
            // Orphaned entries carry the logical name. INFERRED for the product; without this second
            // look a live ref whose suffixed parent is gone could not be read at all.
            orphans = self.writers(Some(logical)).await?;
            orphans.retain(|w| w.kind == ChainKind::Orphaned);
        }
        if let Some(orphan) = orphans.first()
            && let Some(directory) = self.directory().await?
            && let Some(commit) = self.writer_commit_at(&directory, orphan, upto).await?
        {
            return Ok(Step::done(Served::Exact(commit)));
        }
        Ok(Step::done(Served::NotFound(format!(
            "nothing of version {upto} of '{name}' is left: the ref is gone and the legacy area \
             records no commit of it"
        ))))
    }
}

#[cfg(test)]
mod tests;
