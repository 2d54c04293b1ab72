//! What must stay readable, and everything live branches ever registered, by location
//! (`docs/format/maintenance.md` 5.3 and 5.4). Reads only.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::history::numeric::Served;
use graph::history::path::ExtentKey;
use graph::manifest::scan::{ReadMode, read_state};
use graph::model::{Commit, HistoryRecord, Pin, TableRow, TableState};
use graph::store::{MANIFEST_DIR, Root};
use graph::table::table_location;
use graph::{Error, Result};

use super::capture::{Branch, Capture};
use super::facts::place;
use super::listing::manifest_name;
use super::location_plan::{Registered, Target, Wanted};
use super::policy::{Policy, retained};
use super::reason::Reason;
use super::tags;

/// Versions of `__manifest` read at once.
const CONCURRENT_READS: usize = 8;

/// What one location must keep, and what was ever registered there.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Every row of every live branch.
    pub registered: Registered,
    /// What must stay.
    pub wanted: Wanted,
}

/// One table path.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its alias; the newest one that main, else a branch, knows.
    pub type_key: String,
    /// Whether main has a row for it, a dropped one too.
    pub on_main: bool,
    /// Its locations, by native branch; `None` is the root lineage.
    pub locations: BTreeMap<Option<String>, Needs>,
}

/// The retained versions of one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchVersions {
    /// Logical name; `None` is main.
    pub branch: Option<String>,
    /// Versions the policy retains.
    pub retained: Vec<u64>,
    /// Versions outside of it. They are reported; no cleanup removes one.
    pub would_prune: Vec<u64>,
}

/// Roots and registrations of a graph.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    /// By table path. Registered tables without a pin have no location.
    pub tables: BTreeMap<String, Table>,
    /// By branch.
    pub versions: Vec<BranchVersions>,
    /// Names of merge-input tags that protect nothing any more.
    pub dead_tags: Vec<String>,
    /// Native refs of `__manifest` that a base came from.
    pub base_refs: BTreeSet<String>,
}

impl Roots {
    fn table(&mut self, row: &TableRow, newest: bool, on_main: bool) -> &mut Table {
        let table = self.tables.entry(row.table_path.clone()).or_default();
        if newest || table.type_key.is_empty() {
            table.type_key.clone_from(&row.table_key);
        }
        table.on_main |= on_main;
        table
    }

    fn needs(&mut self, row: &TableRow, pin: &Pin) -> &mut Needs {
        let (_, native) = table_location(row, pin);
        self.table(row, false, false)
            .locations
            .entry(native)
            .or_default()
    }

    /// Note a row that a live branch held.
    fn register(&mut self, row: &TableRow) {
        self.table(row, false, false);
        let Some(pin) = row.state.pin() else { return };
        let registered = &mut self.needs(row, pin).registered;
        registered.published.insert(pin.table_version);
        registered.staged.extend(pin.metadata.staged_version);
        registered.last_linear = registered.last_linear.max(pin.metadata.last_linear_version);
    }

    /// Note that a commit from before an upgrade pins a row.
    fn keep_linear(&mut self, row: &TableRow) {
        if let Some(pin) = row.state.pin() {
            let legacy = &mut self.needs(row, pin).registered.legacy;
            legacy.insert(pin.table_version);
        }
    }

    /// Everything a state pins must stay. The row counts as registered too.
    fn want(&mut self, tables: &[TableRow], reasons: &BTreeSet<Reason>, who: &str) {
        for row in tables {
            let TableState::Pinned(pin) = &row.state else {
                continue;
            };
            self.register(row);
            let target = Target::Pin(
                pin.metadata.staged_version,
                pin.table_version,
                pin.metadata.last_linear_version,
            );
            let named = self.needs(row, pin).wanted.entry(target).or_default();
            for reason in reasons {
                named.entry(*reason).or_insert_with(|| who.to_string());
            }
        }
    }
}

/// Collect the roots of a captured graph under a policy. A version, tag or base that cannot be read is an error: the
/// plan is refused, nothing is deleted.
pub async fn collect(root: &Root, capture: &Capture, policy: &Policy) -> Result<Roots> {
    let mut roots = Roots::default();
    register_history(capture, &mut roots).await?;
    for branch in &capture.branches {
        register_head(branch, &mut roots);
        retained_versions(root, capture, branch, policy, &mut roots).await?;
    }
    let tagged = tagged_snapshots(root, capture, &mut roots).await?;
    merge_bases(root, capture, tagged, &mut roots).await?;
    // Aliases as heads have them, main's last.
    for branch in capture.branches.iter().rev() {
        for row in &branch.state.tables {
            roots.table(row, true, branch.native.is_none());
        }
    }
    Ok(roots)
}

fn register_head(branch: &Branch, roots: &mut Roots) {
    let state = &branch.state;
    state.tables.iter().for_each(|row| roots.register(row));
    for replaced in state.replaced.iter().filter(|r| !r.registered) {
        roots.register(&replaced.before);
    }
}

/// The pins of every commit on a live first-parent lineage.
async fn register_history(capture: &Capture, roots: &mut Roots) -> Result<()> {
    let mut reachable: HashSet<Arc<str>> = HashSet::new();
    for branch in &capture.branches {
        for id in capture
            .ledger
            .first_parents(&branch.state.head.graph_commit_id)
        {
            if !reachable.insert(id.clone()) {
                break;
            }
        }
    }
    capture
        .history
        .for_each_extent(|extent, records| {
            let legacy = matches!(extent, ExtentKey::LegacyData(_));
            for record in records {
                if reachable.contains(record.commit.graph_commit_id.as_str()) {
                    for row in &record.tables {
                        roots.register(row);
                        if legacy {
                            roots.keep_linear(row);
                        }
                    }
                }
            }
            Ok(())
        })
        .await
}

async fn retained_versions(
    root: &Root,
    capture: &Capture,
    branch: &Branch,
    policy: &Policy,
    roots: &mut Roots,
) -> Result<()> {
    let head = branch.state.version;
    let native = branch.native.as_deref();
    let listed = capture.catalog.locations.get(&branch.native);
    // A head that the listing lacks means that versions between are missing from it too.
    if listed.is_none_or(|l| !l.manifests.contains_key(&head)) {
        return Err(Error::Conflict(format!(
            "branch '{}' moved to version {head} while the plan was made; nothing was deleted, run the command again",
            branch.name()
        )));
    }
    let versions: Vec<u64> = listed
        .iter()
        .flat_map(|l| l.manifests.keys().copied())
        .filter(|v| *v <= head)
        .collect();
    let cutoff = policy.cutoff(capture.now);
    let times = match cutoff {
        None => BTreeMap::new(),
        Some(_) => timestamps(root, native, &versions).await?,
    };
    let kept = retained(&versions, native.is_some(), policy.keep(), cutoff, |v| {
        times.get(&v).copied()
    });
    let records: Vec<(u64, Option<HistoryRecord>)> = futures::stream::iter(kept.keys().copied())
        .map(|version| async move {
            let record = match version == head {
                true => None,
                false => {
                    record_at(root, capture, native, version, Some(&branch.state.head)).await?
                }
            };
            Ok::<_, Error>((version, record))
        })
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await?;
    for (version, record) in records {
        let reasons = kept.get(&version).cloned().unwrap_or_default();
        let who = format!("version {version} of branch {} pins it", branch.name());
        if version == head {
            roots.want(&branch.state.tables, &reasons, &who);
        } else if let Some(record) = record {
            roots.want(&record.tables, &reasons, &who);
        }
    }
    roots.versions.push(BranchVersions {
        branch: branch.logical.clone(),
        would_prune: versions
            .iter()
            .copied()
            .filter(|v| !kept.contains_key(v))
            .collect(),
        retained: kept.into_keys().collect(),
    });
    Ok(())
}

/// What a version shows; `None` for one from before genesis, which shows nothing.
async fn record_at(
    root: &Root,
    capture: &Capture,
    native: Option<&str>,
    version: u64,
    head: Option<&Commit>,
) -> Result<Option<HistoryRecord>> {
    let name = || {
        format!(
            "version {version} of {} must stay readable and cannot be read, so what it needs cannot be told; nothing \
             was deleted",
            native.unwrap_or("main")
        )
    };
    let opened = root
        .open_manifest(native, Some(version))
        .await
        .map_err(|e| e.within(name()))?;
    match capture
        .versions
        .record(&opened, head)
        .await
        .map_err(|e| e.within(name()))?
    {
        Served::Exact(record) | Served::Nearest(record) => Ok(Some(record)),
        Served::PreGenesis => Ok(None),
        Served::NotFound(why) => Err(Error::not_found(why).within(name())),
    }
}

/// Lance times of versions, in microseconds. One that cannot be read has none, which keeps it.
async fn timestamps(
    root: &Root,
    native: Option<&str>,
    versions: &[u64],
) -> Result<BTreeMap<u64, i64>> {
    let place = place(MANIFEST_DIR, native);
    let place = place.as_str();
    futures::stream::iter(versions.iter().copied())
        .map(|version| async move {
            let key = format!("{place}/_versions/{}", manifest_name(version));
            match root.read_manifest_parts(place, &key, native, version).await {
                Ok(parts) => {
                    let micros = parts.manifest.timestamp_nanos / 1_000;
                    Ok(Some((version, i64::try_from(micros).unwrap_or(i64::MAX))))
                }
                Err(e) if e.is_storage() => Err(e),
                Err(_) => Ok(None),
            }
        })
        .buffer_unordered(2 * CONCURRENT_READS)
        .try_filter_map(|found| async move { Ok(found) })
        .try_collect()
        .await
}

/// Root what live tags of `__manifest` name. Returns the heads of those states.
async fn tagged_snapshots(
    root: &Root,
    capture: &Capture,
    roots: &mut Roots,
) -> Result<Vec<HistoryRecord>> {
    let mut out = Vec::new();
    for tag in &capture.tags {
        if let Some(input) = &tag.merge_input
            && tags::is_dead(input, &capture.live, &capture.ledger)
        {
            roots.dead_tags.push(tag.name.clone());
            continue;
        }
        let native = tag.branch.as_deref();
        let branch = capture.branches.iter().find(|b| b.native == tag.branch);
        let head = branch.map(|b| &b.state.head);
        let record = record_at(root, capture, native, tag.version, head)
            .await
            .map_err(|e| e.within(format!("tag '{}' of __manifest", tag.name)))?;
        if let Some(record) = record {
            let reasons = BTreeSet::from([Reason::Tag]);
            let who = format!("tag '{}' of __manifest names it", tag.name);
            roots.want(&record.tables, &reasons, &who);
            out.push(record);
        }
    }
    Ok(out)
}

async fn merge_bases(
    root: &Root,
    capture: &Capture,
    tagged: Vec<HistoryRecord>,
    roots: &mut Roots,
) -> Result<()> {
    let mut heads: BTreeMap<String, String> = BTreeMap::new();
    for branch in &capture.branches {
        let name = format!("branch {}", branch.name());
        heads
            .entry(branch.state.head.graph_commit_id.clone())
            .or_insert(name);
    }
    for record in &tagged {
        let name = format!(
            "the tagged version {}",
            record.commit.graph_manifest_version
        );
        heads
            .entry(record.commit.graph_commit_id.clone())
            .or_insert(name);
    }
    let heads: Vec<(String, String)> = heads.into_iter().collect();
    let mut bases: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for (index, (a, a_name)) in heads.iter().enumerate() {
        for (b, b_name) in &heads[index + 1..] {
            for base in capture.ledger.merge_bases(a, b)? {
                if *base != **a && *base != **b {
                    bases.entry(base).or_insert_with(|| {
                        format!("it is the merge base of {a_name} and {b_name}")
                    });
                }
            }
        }
    }
    for (base, who) in bases {
        let record = base_record(root, capture, &base).await?;
        roots.want(&record.tables, &BTreeSet::from([Reason::MergeBase]), &who);
        roots.base_refs.extend(record.commit.native_branch);
    }
    Ok(())
}

/// The record of a commit: of a live branch, of the history, or of a retired tree that had to be read.
async fn base_record(root: &Root, capture: &Capture, id: &str) -> Result<HistoryRecord> {
    for branch in &capture.branches {
        if let Some(record) = branch.state.held_record(id) {
            return Ok(record);
        }
    }
    if let Some(record) = capture.history.record(id).await? {
        return Ok(record);
    }
    for native in &capture.imported {
        let opened = root.open_manifest(Some(native), None).await?;
        let state = read_state(&opened, ReadMode::State).await?;
        if let Some(record) = state.held_record(id) {
            return Ok(record);
        }
    }
    Err(Error::internal(format!(
        "commit {id} is the merge base of two branches and its tables are recorded nowhere; nothing was deleted, look \
         with: omnigraph verify"
    )))
}
