//! What a plan rests on, read once: branches at their heads, refs and trees of `__manifest`, tags, all commits
//! (`docs/format/maintenance.md` 5.2 steps 2 to 4). Reads only.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use futures::TryStreamExt as _;
use graph::history::HistoryReader;
use graph::history::numeric::ForkPoint;
use graph::history::path::HISTORY_DIR;
use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, open_branch, open_identified, read_state};
use graph::model::names::MAIN;
use graph::refs::{self, BranchIdentifier, NativeRef, RefInventory, Trees};
use graph::store::{MANIFEST_DIR, Root};
use graph::view::VersionReader;
use graph::{Error, Result};

use super::lineage::Ledger;
use super::listing::{TableListing, Total, list_table};
use super::staging::LiveBranch;
use super::tags::{self, Tag};

/// A live branch at its head.
#[derive(Debug, Clone)]
pub struct Branch {
    /// Logical name; `None` is main.
    pub logical: Option<String>,
    /// Native ref; `None` is main.
    pub native: Option<String>,
    /// Identifier of its ref.
    pub identifier: BranchIdentifier,
    /// Its head version and what that says.
    pub state: BranchState,
}

impl Branch {
    /// The name in messages.
    pub fn name(&self) -> &str {
        self.logical.as_deref().unwrap_or(MAIN)
    }
}

/// Everything a plan rests on.
#[derive(Debug)]
pub struct Capture {
    /// Main first, then by native name. Internal system branches are among them: they protect what they pin.
    pub branches: Vec<Branch>,
    /// The same, as verdicts see them.
    pub live: Vec<LiveBranch>,
    /// Refs of `__manifest`.
    pub inventory: RefInventory,
    /// One listing of `__manifest`.
    pub catalog: TableListing,
    /// Tags of `__manifest`, by name.
    pub tags: Vec<Tag>,
    /// Every commit.
    pub ledger: Ledger,
    /// History of the root.
    pub history: HistoryReader,
    /// Reads old versions.
    pub versions: VersionReader,
    /// Everything under `__history`.
    pub history_total: Total,
    /// Retired refs whose commits had to be read from their trees.
    pub imported: BTreeSet<String>,
    /// When the capture began, in microseconds.
    pub now: i64,
}

/// Microseconds since the epoch.
pub fn now_micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The compact JSON of an identifier, as witnesses hold it.
pub fn incarnation(identifier: &BranchIdentifier) -> Result<String> {
    serde_json::to_string(identifier)
        .map_err(|e| Error::internal(format!("a branch identifier cannot be encoded: {e}")))
}

/// Read what a plan rests on. A branch that is deleted meanwhile is [`Error::Conflict`]; a root that is no served graph,
/// a ref, tag or commit that cannot be understood is an error: nothing may be deleted then.
pub async fn capture(root: &Root) -> Result<Capture> {
    let now = now_micros();
    open_branch(root, None).await?;
    let catalog = list_table(root, MANIFEST_DIR, &BTreeSet::new()).await?;
    let mut trees = Trees::default();
    for (native, location) in &catalog.locations {
        let Some(native) = native else { continue };
        if location
            .manifests
            .keys()
            .any(|v| !graph::table::is_detached(*v))
        {
            trees.add(&format!("{native}/_versions/1.manifest"));
        }
        if location.archived {
            trees.add(&format!("{native}/_omnigraph_retired_branch.json"));
        }
    }
    let inventory = refs::inventory_of(root, trees).await?;
    let mut branches = Vec::new();
    for native in std::iter::once(None).chain(inventory.live.iter().map(Some)) {
        branches.push(branch(root, native).await?);
    }
    let live = branches
        .iter()
        .map(|b| {
            Ok(LiveBranch {
                incarnation: incarnation(&b.identifier)?,
                exact_head: b.state.exact_head().map(|c| c.graph_commit_id.clone()),
                head: b.state.head.graph_commit_id.clone(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let tags = tags::read_all(root, MANIFEST_DIR).await?;
    let history = HistoryReader::new(root.clone());
    let mut ledger = Ledger::default();
    for branch in &branches {
        branch.state.held_commits().for_each(|c| ledger.add(c));
    }
    for commit in history.full_lineage().await?.values() {
        ledger.add(commit);
    }
    if let Some(directory) = history.directory().await? {
        for id in &directory.absent_parents {
            ledger.add_absent(&id.to_string());
        }
    }
    let imported = import(root, &inventory, &mut ledger).await?;
    let forks = inventory
        .live
        .iter()
        .chain(&inventory.retired)
        .map(|r| (r.native.clone(), fork_point(r)))
        .collect();
    let mut history_total = Total::default();
    let mut objects = root.list(HISTORY_DIR)?;
    while let Some((_, size)) = objects.try_next().await? {
        history_total.add(size);
    }
    Ok(Capture {
        branches,
        live,
        inventory,
        catalog,
        tags,
        ledger,
        versions: VersionReader::new(root.clone(), Some(forks)),
        history,
        history_total,
        imported,
        now,
    })
}

fn fork_point(native: &NativeRef) -> ForkPoint {
    ForkPoint {
        parent: native.contents.parent_branch.clone(),
        version: native.contents.parent_version,
    }
}

async fn branch(root: &Root, native: Option<&NativeRef>) -> Result<Branch> {
    let logical = native.map(|n| n.logical().to_string());
    let conflict = |e: Error| match (&e, &logical) {
        (Error::NotFound(_), Some(name)) => Error::Conflict(format!(
            "branch '{name}' was deleted while the plan was made; nothing was deleted, run the command again"
        )),
        _ => e,
    };
    let (opened, identifier) = open_identified(root, logical.as_deref())
        .await
        .map_err(conflict)?;
    if native.is_some_and(|n| n.contents.identifier != identifier) {
        return Err(Error::Conflict(format!(
            "branch '{}' was recreated while the plan was made; nothing was deleted, run the command again",
            logical.as_deref().unwrap_or(MAIN)
        )));
    }
    Ok(Branch {
        state: read_state(&opened, ReadMode::State).await?,
        native: opened.native,
        logical,
        identifier,
    })
}

/// Read the commits that live heads descend from and that neither they nor the history hold, from the trees of retired
/// refs. Returns the refs that had one.
async fn import(
    root: &Root,
    inventory: &RefInventory,
    ledger: &mut Ledger,
) -> Result<BTreeSet<String>> {
    let mut imported = BTreeSet::new();
    if ledger.missing().is_empty() {
        return Ok(imported);
    }
    for retired in &inventory.retired {
        let Ok(opened) = root.open_manifest(Some(&retired.native), None).await else {
            continue;
        };
        let Ok(state) = read_state(&opened, ReadMode::State).await else {
            continue;
        };
        let missing: BTreeSet<String> = ledger.missing().iter().map(|m| m.to_string()).collect();
        let held: Vec<_> = state.held_commits().collect();
        if held.iter().any(|c| missing.contains(&c.graph_commit_id)) {
            held.iter().for_each(|c| ledger.add(c));
            imported.insert(retired.native.clone());
        }
    }
    Ok(imported)
}

/// Names of live branches with their identifiers, as they stand now.
pub async fn live_now(root: &Root) -> Result<BTreeMap<String, BranchIdentifier>> {
    Ok(refs::live_refs(root)
        .await?
        .into_iter()
        .map(|r| (r.native, r.contents.identifier))
        .collect())
}
