//! Chains: what a census hands over, one per writer with own commits (`docs/format/history.md` 7.1).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::HistoryRecord;

/// The kind of a writer. Orders as the chains are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainKind {
    /// The main branch.
    Main,
    /// A native ref that is live.
    Live,
    /// A native ref that is retired.
    Retired,
    /// A logical branch whose commits survive in another ref's rows while no ref that wrote them is
    /// left.
    Orphaned,
}

impl ChainKind {
    /// The stored byte.
    pub fn code(self) -> u8 {
        match self {
            Self::Main => 0,
            Self::Live => 1,
            Self::Retired => 2,
            Self::Orphaned => 3,
        }
    }

    /// The kind of a stored byte.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Main, Self::Live, Self::Retired, Self::Orphaned]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// One writer and its own commits.
#[derive(Debug, Clone)]
pub struct Chain {
    /// What kind of writer.
    pub kind: ChainKind,
    /// Native ref, the logical name when orphaned, `None` for main.
    pub native: Option<String>,
    /// Native ref it forked from; `None` when that is main, and for main and orphans.
    pub parent: Option<String>,
    /// Version it forked at; 0 for main and orphans.
    pub parent_version: u64,
    /// Pinned head version; of an orphan the version of its last record.
    pub head_version: u64,
    /// Its records, oldest first. Shared, so that a plan holds no second copy.
    pub records: Vec<Arc<HistoryRecord>>,
}

impl Chain {
    /// The writer's name in messages.
    pub fn describe(&self) -> &str {
        self.native.as_deref().unwrap_or("main")
    }

    /// Number order: main, live refs, retired refs, orphans; by name inside each.
    fn order(&self) -> (ChainKind, &[u8]) {
        (
            self.kind,
            self.native.as_deref().unwrap_or_default().as_bytes(),
        )
    }

    fn check(&self) -> Result<()> {
        let bad = |what: String| Error::internal(format!("chain of {}: {what}", self.describe()));
        let Some(last) = self.records.last() else {
            return Err(bad("has no record".into()));
        };
        if self.kind == ChainKind::Orphaned
            && self.head_version != last.commit.graph_manifest_version
        {
            return Err(bad("head version is not that of its last record".into()));
        }
        // Numeric reads search a writer's records by version (9.5).
        for pair in self.records.windows(2) {
            let (a, b) = (&pair[0].commit, &pair[1].commit);
            if a.graph_manifest_version > b.graph_manifest_version {
                return Err(bad(format!(
                    "commit {} of version {} follows {} of version {}",
                    b.graph_commit_id,
                    b.graph_manifest_version,
                    a.graph_commit_id,
                    a.graph_manifest_version
                )));
            }
        }
        if last.commit.graph_manifest_version > self.head_version {
            return Err(bad(format!(
                "commit {} lies above head version {}",
                last.commit.graph_commit_id, self.head_version
            )));
        }
        if let Some(foreign) = self
            .records
            .iter()
            .find(|r| r.commit.native_branch != self.native)
        {
            return Err(bad(format!(
                "commit {} was written by {}",
                foreign.commit.graph_commit_id,
                foreign.commit.native_branch.as_deref().unwrap_or("main")
            )));
        }
        Ok(())
    }
}

/// The chains in number order, each checked; main must be there once.
pub(super) fn ordered(chains: &[Chain]) -> Result<Vec<&Chain>> {
    let mut ordered: Vec<&Chain> = chains.iter().collect();
    ordered.sort_by(|a, b| a.order().cmp(&b.order()));
    let mains = ordered.iter().filter(|c| c.kind == ChainKind::Main).count();
    if mains != 1 {
        return Err(Error::internal(format!(
            "the census yields {mains} chains of main, expected 1"
        )));
    }
    for chain in &ordered {
        chain.check()?;
    }
    Ok(ordered)
}
