//! Whether the tables of a commit follow from those of its parent (`docs/format/manifest-v14.md` 9 step 4).
//!
//! Extents carry no checksum, but each record repeats every row of its parent that its publish did not
//! change, and a row that was changed is dated above the parent. So the parent is a second copy.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use graph::history::BlockAddress;
use graph::history::extent::{check_address, decode_records};
use graph::history::path::ExtentKey;
use graph::model::measure::MAX_OBJECT_BYTES;
use graph::model::{HistoryRecord, TableIdentity, TableState};
use graph::store::Root;
use graph::{Error, Result};

use crate::finding::Code;
use crate::ledger::{Ledger, Origin, short};
use crate::run::Run;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    identity: TableIdentity,
    /// When the state was written; `None` when registered.
    clock: Option<u64>,
    dropped: bool,
    key: [u8; 16],
    state: [u8; 16],
}

/// The tables of one commit, short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The version its publish wrote.
    version: u64,
    contract: Option<[u8; 16]>,
    /// Whether this stamp wrote it. All commits from before a conversion share one contract.
    addressed: bool,
    lines: Vec<Line>,
}

impl Outline {
    /// Of a canonical record.
    pub(crate) fn of(record: &HistoryRecord) -> Self {
        let commit = &record.commit;
        Self {
            version: commit.graph_manifest_version,
            contract: commit.schema_content_hash.as_deref().map(short),
            addressed: matches!(BlockAddress::parse(&commit.graph_commit_id), Ok(Some(_))),
            lines: record
                .tables
                .iter()
                .map(|t| Line {
                    identity: t.identity,
                    clock: match &t.state {
                        TableState::Registered => None,
                        TableState::Pinned(pin) => Some(pin.manifest_version),
                        TableState::Dropped { dropped_at, .. } => Some(*dropped_at),
                    },
                    dropped: matches!(t.state, TableState::Dropped { .. }),
                    key: short(&t.table_key),
                    state: short(&serde_json::to_string(&t.state).unwrap_or_default()),
                })
                .collect(),
        }
    }
}

/// A step from a commit to a parent that stands elsewhere.
#[derive(Debug)]
pub(crate) struct Boundary {
    pub(crate) branch: Option<String>,
    pub(crate) child: Arc<str>,
    pub(crate) parent: Box<str>,
    pub(crate) tables: Outline,
    pub(crate) origin: Origin,
}

/// Why the tables of a child do not follow from its parent's.
pub(crate) fn step(before: &Outline, after: &Outline) -> Option<String> {
    let (from, to) = (before.version, after.version);
    // A rename is part of a schema change.
    let renames = !after.addressed || before.contract != after.contract;
    let held: BTreeMap<TableIdentity, &Line> =
        before.lines.iter().map(|l| (l.identity, l)).collect();
    let now: BTreeSet<TableIdentity> = after.lines.iter().map(|l| l.identity).collect();
    if let Some(gone) = before.lines.iter().find(|l| !now.contains(&l.identity)) {
        return Some(format!("table {} is not there any more", gone.identity));
    }
    for line in &after.lines {
        let identity = line.identity;
        if let Some(earlier) = held.get(&identity) {
            if earlier.dropped && line != *earlier {
                return Some(format!("table {identity} changed after it was dropped"));
            }
            if earlier.key != line.key && !renames {
                return Some(format!(
                    "table {identity} is renamed, but the contract is the same"
                ));
            }
            // A rename keeps the state.
            if earlier.state == line.state {
                continue;
            }
            if line.clock.is_none() {
                return Some(format!("table {identity} lost its state"));
            }
        }
        if let Some(clock) = line.clock
            && !(from < clock && clock <= to)
        {
            return Some(format!(
                "table {identity} changed, but is dated at version {clock}, outside {from} (excluded) to {to}"
            ));
        }
    }
    None
}

/// Check the steps between objects: the parents' records are read again, one extent at a time.
pub(crate) async fn check_boundaries(run: &Run<'_>, ledger: &mut Ledger) {
    let boundaries = std::mem::take(&mut ledger.boundaries);
    let mut by_extent: BTreeMap<ExtentKey, HashMap<&str, Vec<&Boundary>>> = BTreeMap::new();
    for boundary in &boundaries {
        // A parent that stands in a branch only is the row before in that branch.
        if let Some(parent) = ledger.get(&boundary.parent)
            && let Origin::Extent(key) = &parent.origin
        {
            let wanted = by_extent.entry(*key).or_default();
            wanted.entry(&boundary.parent).or_default().push(boundary);
        }
    }
    let total = by_extent.len() as u64;
    for (done, (key, wanted)) in by_extent.into_iter().enumerate() {
        run.progress("comparing tables of parents", done as u64, total);
        // It was read before, so an error was reported before.
        let Ok(Some(records)) = read_extent(run.root, &key).await else {
            continue;
        };
        for record in &records {
            let id = record.commit.graph_commit_id.as_str();
            let Some(children) = wanted.get(id) else {
                continue;
            };
            let tables = Outline::of(record);
            for child in children {
                if let Some(why) = step(&tables, &child.tables) {
                    run.findings.add(
                        Code::RecordInconsistent,
                        child.branch.as_deref(),
                        child.origin.to_string(),
                        format!(
                            "the tables of commit {} do not follow from those of its parent {id} in {}: \
                             {why}",
                            child.child,
                            key.key()
                        ),
                    );
                }
            }
        }
    }
}

/// The canonical records of an extent with every check of `docs/format/history.md` 3.5 and 3.6; `None` when it
/// does not exist.
pub(crate) async fn read_extent(
    root: &Root,
    key: &ExtentKey,
) -> Result<Option<Vec<HistoryRecord>>> {
    let object = key.key();
    let bytes = match root.get(&object, MAX_OBJECT_BYTES).await {
        Ok(None) => return Ok(None),
        Ok(Some(bytes)) => bytes,
        Err(limit @ Error::Limit { .. }) => return Err(Error::internal(limit.to_string())),
        Err(e) => return Err(e),
    };
    let records = decode_records(&object, bytes).await?;
    let commits: Vec<_> = records.iter().map(|r| &r.commit).collect();
    check_address(key, &commits)?;
    records
        .into_iter()
        .map(HistoryRecord::canonicalize)
        .collect::<Result<Vec<_>>>()
        .map(Some)
        .map_err(|e| e.within(&object))
}
