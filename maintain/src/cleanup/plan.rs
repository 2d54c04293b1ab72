//! The whole plan of a cleanup, as a value (`docs/format/maintenance.md` 5.2 steps 2 to 5). Reads only; a preview and a
//! run share it.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use graph::refs::BranchIdentifier;
use graph::store::{MANIFEST_DIR, Root};
use graph::{Error, Result};

use super::capture::{Capture, capture, live_now};
use super::catalog;
use super::facts::{origins_of, place};
use super::listing::Total;
use super::origins::Origins;
use super::policy::Policy;
use super::reason::Reason;
use super::roots::{BranchVersions, Roots, collect};
use super::tags::{self, Tag};
use super::trace::{TablePlan, trace};
use super::trees::{Stay, Tree, close, fork_name, leaf_first};
use crate::Stop;

/// The branch a plan was made on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Native ref; `None` is main.
    pub native: Option<String>,
    /// Identifier of its ref.
    pub identifier: BranchIdentifier,
    /// Its head version.
    pub version: u64,
}

/// A tree and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePlan {
    /// `__manifest` or a table path.
    pub dataset: String,
    /// The tree.
    pub tree: Tree,
    /// Why it stays; `None` for one that goes.
    pub stay: Option<Stay>,
}

/// Everything one cleanup will do. Nothing of the root is changed by making it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Location of the graph.
    pub uri: String,
    /// The policy.
    pub policy: Policy,
    /// When the plan was made, in microseconds.
    pub now: i64,
    /// The branches it rests on.
    pub branches: Vec<Captured>,
    /// The tags of `__manifest` it rests on.
    pub tags: Vec<Tag>,
    /// Tables, by type key, then path.
    pub tables: Vec<TablePlan>,
    /// Merge-input tags to release.
    pub dead_tags: Vec<Tag>,
    /// Marked refs whose retirement is to be finished.
    pub finish: Vec<(String, BranchIdentifier)>,
    /// Trees of tables, then of `__manifest`; those that go come in the order in which they go.
    pub trees: Vec<TreePlan>,
    /// Datasets whose trees cannot be told, with why. None of theirs goes.
    pub trees_kept: Vec<(String, String)>,
    /// Retained and pruned versions by branch.
    pub versions: Vec<BranchVersions>,
    /// All of `__manifest`.
    pub manifest: Total,
    /// All of `__history`.
    pub history: Total,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Make the plan of a cleanup, and validate it. At most `concurrency` tables are traced at once. A graph that changes
/// meanwhile is [`Error::Conflict`]; what cannot be understood refuses the plan.
pub async fn plan(root: &Root, policy: Policy, concurrency: usize, stop: &Stop) -> Result<Plan> {
    let captured = capture(root).await?;
    stop.check(|| "the graph was read; nothing was deleted".into())?;
    let roots = collect(root, &captured, &policy).await?;
    let mut tables = trace_all(root, &captured, &roots, concurrency, stop).await?;
    tables.sort_by(|a, b| (&a.type_key, &a.table_path).cmp(&(&b.type_key, &b.table_path)));
    let mut plan = Plan {
        uri: root.uri().to_string(),
        policy,
        now: captured.now,
        branches: captured
            .branches
            .iter()
            .map(|b| Captured {
                native: b.native.clone(),
                identifier: b.identifier.clone(),
                version: b.state.version,
            })
            .collect(),
        dead_tags: captured
            .tags
            .iter()
            .filter(|t| roots.dead_tags.contains(&t.name))
            .cloned()
            .collect(),
        tags: captured.tags.clone(),
        tables,
        finish: Vec::new(),
        trees: Vec::new(),
        trees_kept: Vec::new(),
        versions: roots.versions.clone(),
        manifest: total(&captured),
        history: captured.history_total,
        notes: Vec::new(),
    };
    borrow(root, &captured, &mut plan).await?;
    spare_on_error(&mut plan);
    catalog::plan_trees(root, &captured, &roots, &mut plan).await?;
    validate(root, &plan).await?;
    Ok(plan)
}

fn total(captured: &Capture) -> Total {
    let mut total = Total::default();
    for location in captured.catalog.locations.values() {
        total.objects += location.all.objects;
        total.bytes = total.bytes.saturating_add(location.all.bytes);
    }
    total
}

async fn trace_all(
    root: &Root,
    captured: &Capture,
    roots: &Roots,
    concurrency: usize,
    stop: &Stop,
) -> Result<Vec<TablePlan>> {
    futures::stream::iter(roots.tables.iter().filter(|(_, t)| !t.locations.is_empty()))
        .map(|(path, table)| async move {
            stop.check(|| "the plan was not complete; nothing was deleted".into())?;
            Ok::<_, Error>(Box::pin(trace(root, captured, path, table)).await)
        })
        .buffer_unordered(concurrency.max(1))
        .try_collect()
        .await
}

/// Decide the trees of tables and spare every file that another tree reads. A tree that stays can borrow, and what is
/// borrowed keeps its tree: repeated until nothing is added.
async fn borrow(root: &Root, captured: &Capture, plan: &mut Plan) -> Result<()> {
    let mut origins = Origins::default();
    for traced in plan.tables.iter().flat_map(|t| &t.locations) {
        for base in &traced.plan.origins {
            origins.add_base(root.uri(), base);
        }
    }
    let live = live_ulids(captured);
    let failed = plan.tables.iter().find_map(|t| t.error.clone());
    let mut read: BTreeSet<String> = BTreeSet::new();
    let decided = loop {
        let mut decided = Vec::new();
        let mut again = false;
        for at in 0..plan.tables.len() {
            let stays = table_stays(&plan.tables[at], plan, &live, failed.is_some(), &origins);
            for (name, stay) in &stays {
                let key = place(&plan.tables[at].table_path, Some(name));
                if !read.insert(key.clone()) {
                    continue;
                }
                if stay.shields {
                    origins.add_key(key);
                    again = true;
                }
                let Some(listed) = plan.tables[at].untraced.get(name) else {
                    continue;
                };
                let path = plan.tables[at].table_path.clone();
                match origins_of(root, &path, name, listed).await {
                    Ok(bases) => {
                        again |= !bases.is_empty();
                        bases.iter().for_each(|b| origins.add_base(root.uri(), b));
                    }
                    Err(e) if e.is_storage() => return Err(e),
                    Err(e) => {
                        // What it borrows cannot be told: all of it may be of its own table.
                        plan.notes
                            .push(format!("{e}; no file of {path} is removed"));
                        origins.add_key(path);
                        again = true;
                    }
                }
            }
            decided.push(stays);
        }
        if !again {
            break decided;
        }
    };
    for (table, stays) in plan.tables.iter_mut().zip(decided) {
        for traced in &mut table.locations {
            let place = place(&table.table_path, traced.native.as_deref());
            traced.plan.spare_files(Reason::Borrowed, |path| {
                origins.covers(&format!("{place}/{path}"))
            });
        }
        let trees = order(&table.table_path, &table.trees, stays);
        if let Some(why) = &table.trees_error {
            plan.trees_kept
                .push((table.table_path.clone(), why.clone()));
        }
        plan.trees.extend(trees);
    }
    Ok(())
}

/// The trees of a dataset: those that stay, by name, then those that go, leaves first.
pub fn order(dataset: &str, trees: &[Tree], mut stays: BTreeMap<String, Stay>) -> Vec<TreePlan> {
    let going: Vec<Tree> = leaf_first(trees, &stays).into_iter().cloned().collect();
    for tree in trees {
        if !going.contains(tree) {
            stays.entry(tree.name.clone()).or_insert_with(|| {
                Stay::new(
                    Reason::Undecidable,
                    "trees depend on each other in a circle",
                )
            });
        }
    }
    let staying = trees.iter().filter_map(|tree| {
        stays.get(&tree.name).map(|stay| TreePlan {
            dataset: dataset.to_string(),
            tree: tree.clone(),
            stay: Some(stay.clone()),
        })
    });
    let mut out: Vec<TreePlan> = staying.collect();
    out.extend(going.into_iter().map(|tree| TreePlan {
        dataset: dataset.to_string(),
        tree,
        stay: None,
    }));
    out
}

/// The ULIDs of live branch incarnations.
fn live_ulids(captured: &Capture) -> BTreeSet<String> {
    let natives = captured.branches.iter().filter_map(|b| b.native.as_deref());
    natives
        .filter_map(|n| n.rsplit_once('.'))
        .map(|(_, ulid)| ulid.to_string())
        .collect()
}

fn table_stays(
    table: &TablePlan,
    plan: &Plan,
    live: &BTreeSet<String>,
    failed: bool,
    origins: &Origins,
) -> BTreeMap<String, Stay> {
    let cutoff = plan.policy.cutoff(plan.now);
    let mut stays = BTreeMap::new();
    for tree in &table.trees {
        let own = held(table, tree)
            .or_else(|| own_reason(table, tree, live, cutoff).map(Stay::shielding));
        let key = place(&table.table_path, Some(&tree.name));
        let stay = own.or_else(|| {
            if failed {
                Some(Stay::new(Reason::Error, "a table carries an error"))
            } else if origins.lies_below(&key) {
                Some(Stay::new(Reason::Borrowed, "another tree reads its files"))
            } else {
                None
            }
        });
        if let Some(stay) = stay {
            stays.insert(tree.name.clone(), stay);
        }
    }
    close(&table.trees, stays)
}

/// A tree with a traced location that holds something; what of it goes is that location's plan.
fn held(table: &TablePlan, tree: &Tree) -> Option<Stay> {
    let below = |native: &str| {
        native
            .strip_prefix(&tree.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    table
        .locations
        .iter()
        .any(|l| l.native.as_deref().is_some_and(below) && l.plan.holds_something())
        .then(|| Stay::new(Reason::Head, "it holds a version that stays"))
}

fn own_reason(
    table: &TablePlan,
    tree: &Tree,
    live: &BTreeSet<String>,
    cutoff: Option<i64>,
) -> Option<Stay> {
    if let Some(why) = &table.trees_error {
        return Some(Stay::new(Reason::Undecidable, why.clone()));
    }
    if !table.on_main {
        let why = "main never registered its table";
        return Some(Stay::new(Reason::Undecidable, why));
    }
    if let Some(tag) = table
        .tags
        .iter()
        .find(|t| t.branch.as_deref() == Some(&tree.name))
    {
        return Some(Stay::new(
            Reason::Tag,
            format!("tag '{}' names it", tag.name),
        ));
    }
    if tree.name == graph::model::names::MAIN {
        return Some(Stay::new(Reason::Undecidable, "it is named main"));
    }
    if let Some(stay) = fork_name(&tree.name, live) {
        return Some(stay);
    }
    young(tree, cutoff)
}

/// `--older-than` gives trees a grace.
pub fn young(tree: &Tree, cutoff: Option<i64>) -> Option<Stay> {
    cutoff.filter(|cutoff| tree.newest >= *cutoff).map(|_| {
        Stay::new(
            Reason::Age,
            "an object of it or its ref is younger than --older-than",
        )
    })
}

/// One table that cannot be told keeps the files of all: what borrows from whom cannot be told either.
fn spare_on_error(plan: &mut Plan) {
    if plan.tables.iter().all(|t| t.error.is_none()) {
        return;
    }
    for table in &mut plan.tables {
        let broken = table.error.is_some();
        for traced in &mut table.locations {
            if broken {
                traced.plan.spare_all(&traced.sizes, Reason::Error);
            } else {
                traced.plan.spare_files(Reason::Error, |_| true);
            }
        }
    }
}

/// Compare what a plan rests on with what stands there now (`docs/format/maintenance.md` 5.7, final validation). Any
/// difference is [`Error::Conflict`]: nothing may be deleted.
pub async fn validate(root: &Root, plan: &Plan) -> Result<()> {
    let changed = |what: String| {
        Error::Conflict(format!(
            "{what} since the plan was made; nothing was deleted, run the command again"
        ))
    };
    let live = live_now(root).await?;
    let expected: BTreeMap<String, BranchIdentifier> = plan
        .branches
        .iter()
        .filter_map(|b| Some((b.native.clone()?, b.identifier.clone())))
        .collect();
    if live != expected {
        return Err(changed(format!(
            "the live branches changed (there were {}, there are {})",
            expected.len(),
            live.len()
        )));
    }
    for branch in &plan.branches {
        let now = root
            .open_manifest(branch.native.as_deref(), None)
            .await?
            .version;
        if now != branch.version {
            return Err(changed(format!(
                "branch '{}' moved from version {} to {now}",
                branch.native.as_deref().unwrap_or("main"),
                branch.version
            )));
        }
    }
    if tags::read_all(root, MANIFEST_DIR).await? != plan.tags {
        return Err(changed("the tags of __manifest changed".into()));
    }
    for table in plan.tables.iter().filter(|t| t.error.is_none()) {
        if tags::read_all(root, &table.table_path).await? != table.tags {
            return Err(changed(format!("the tags of {} changed", table.type_key)));
        }
    }
    Ok(())
}
