//! The result of a census: chains, heads, contracts (`docs/format/legacy-manifest.md` 7.2 step 6, 7.7).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ::graph::history::legacy::{Chain, ChainKind};
use ::graph::model::HistoryRecord;
use legacy::SourceContract;
use ulid::Ulid;

use crate::counts::Counts;
use crate::finding::Finding;
use crate::heads::Head;
use crate::input::RefKind;

/// Everything the plan of legacy objects and the conversion need.
#[derive(Debug, Clone)]
pub struct Census {
    /// Attempt id it was made for.
    pub attempt: Ulid,
    /// Stamp main's head was admitted as.
    pub source_stamp: u32,
    /// Main, live refs, retired refs, orphaned writers; by name inside each.
    pub chains: Vec<Chain>,
    /// Merged parents that no ref holds.
    pub absent_parents: BTreeSet<Ulid>,
    /// Contracts the records name, by digest ascending.
    pub contracts: Vec<Arc<SourceContract>>,
    /// Main first, then live refs by native name.
    pub heads: Vec<CensusHead>,
    /// What was counted.
    pub counts: Counts,
}

/// What a live ref is converted to.
#[derive(Debug, Clone)]
pub struct CensusHead {
    /// Native name; `None` is main.
    pub native: Option<String>,
    /// Version that was read.
    pub pinned: u64,
    /// The record of its head commit, unchanged: a fork's may have been written by its parent.
    pub record: Arc<HistoryRecord>,
    /// Tables of the head version, dropped ones included.
    pub tables: Vec<::graph::model::TableRow>,
}

/// The chain of one ref, or `None` when it has no own commit.
pub(crate) fn of_ref(head: &Head, records: Vec<HistoryRecord>) -> Result<Option<Chain>, Finding> {
    if records.is_empty() {
        return match head.kind {
            RefKind::Main => Err(Finding::incomplete(
                "main holds no commit of its own, so the graph has no history to convert",
            )),
            RefKind::Live | RefKind::Retired => Ok(None),
        };
    }
    Ok(Some(Chain {
        kind: match head.kind {
            RefKind::Main => ChainKind::Main,
            RefKind::Live => ChainKind::Live,
            RefKind::Retired => ChainKind::Retired,
        },
        native: head.input.native.clone(),
        parent: head.input.parent.clone(),
        parent_version: head.input.parent_version,
        head_version: head.input.pinned,
        records: records.into_iter().map(Arc::new).collect(),
    }))
}

/// All records by commit id.
pub(crate) fn by_id(chains: &[Chain]) -> HashMap<&str, &Arc<HistoryRecord>> {
    chains
        .iter()
        .flat_map(|chain| &chain.records)
        .map(|record| (record.commit.graph_commit_id.as_str(), record))
        .collect()
}

/// The contracts that records really name, by digest.
pub(crate) fn named(
    chains: &[Chain],
    known: BTreeMap<String, Arc<SourceContract>>,
) -> Vec<Arc<SourceContract>> {
    let named: BTreeSet<&str> = chains
        .iter()
        .flat_map(|chain| &chain.records)
        .filter_map(|record| record.commit.schema_content_hash.as_deref())
        .collect();
    known
        .into_iter()
        .filter(|(digest, _)| named.contains(digest.as_str()))
        .map(|(_, contract)| contract)
        .collect()
}
