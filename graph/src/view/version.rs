//! The record current at a numeric version of a ref: the version's own rows, or for one from before the upgrade what
//! the legacy area serves (`docs/format/history.md` 9.5).

use std::collections::BTreeMap;

use tokio::sync::OnceCell;

use super::snapshot::fork_points;
use crate::error::Result;
use crate::history::lookup::HistoryReader;
use crate::history::numeric::{ForkPoint, Served};
use crate::manifest::scan::{ReadMode, read_state};
use crate::model::{Commit, HistoryRecord};
use crate::stamp::{CURRENT, GuardInput, PENDING_KEY, StampReading, guard_stamp};
use crate::store::{ManifestVersion, Root};

/// Reads numeric versions of one root; where its refs forked is read once.
#[derive(Debug)]
pub struct VersionReader {
    root: Root,
    history: HistoryReader,
    forks: OnceCell<BTreeMap<String, ForkPoint>>,
}

impl VersionReader {
    /// A reader over `root`. `forks` says where every ref forked, live or retired; `None` reads it when it is needed.
    pub fn new(root: Root, forks: Option<BTreeMap<String, ForkPoint>>) -> Self {
        Self {
            history: HistoryReader::new(root.clone()),
            root,
            forks: OnceCell::new_with(forks),
        }
    }

    /// The commit and tables current at `opened`. `head` is the head of its ref, when that is live. A version of
    /// another stamp that no legacy area serves is [`crate::Error::Refused`].
    pub async fn record(
        &self,
        opened: &ManifestVersion,
        head: Option<&Commit>,
    ) -> Result<Served<HistoryRecord>> {
        let fenced = opened.metadata(PENDING_KEY).is_some();
        let stamp = StampReading::of(opened);
        let legacy = match stamp {
            StampReading::Absent => true,
            StampReading::Number(n) => n < CURRENT || (n == CURRENT && fenced),
            StampReading::NotANumber(_) => false,
        };
        if legacy {
            let forks = self
                .forks
                .get_or_try_init(|| fork_points(&self.root))
                .await?;
            let fork_point = |name: &str| forks.get(name).cloned();
            let after_fence = fenced && stamp == StampReading::Number(CURRENT);
            let native = opened.native.as_deref();
            if let Some(served) = self
                .history
                .numeric_record(native, opened.version, after_fence, &fork_point, head)
                .await?
            {
                return Ok(served);
            }
        }
        guard_stamp(&GuardInput::of(opened, self.root.uri()))?;
        let state = read_state(opened, ReadMode::State).await?;
        Ok(Served::Exact(HistoryRecord {
            commit: state.head,
            tables: state.tables,
        }))
    }
}
