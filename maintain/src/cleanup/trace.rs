//! Tracing one table: one listing, every manifest read once, each location classified
//! (`docs/format/maintenance.md` 5.5 to 5.7). Reads only.

use std::collections::{BTreeMap, BTreeSet};

use graph::refs::RefContents;
use graph::store::Root;
use graph::{Error, Result};

use super::capture::{Capture, incarnation, live_now};
use super::classify::classify;
use super::facts::{self, Manifests, place};
use super::listing::{Location, TableListing, Total, is_placeable, list_table};
use super::location_plan::{LocationPlan, Target};
use super::reason::Reason;
use super::roots::Table;
use super::staging::{Evidence, judge};
use super::tags::{self, Tag};
use super::trees::Tree;

const MAX_REF_BYTES: u64 = 4 << 20;

/// One traced location.
#[derive(Debug, Clone, Default)]
pub struct Traced {
    /// Native branch; `None` is the root location.
    pub native: Option<String>,
    /// What stays and what goes.
    pub plan: LocationPlan,
    /// Bytes of the manifests of the location.
    pub sizes: BTreeMap<u64, u64>,
}

/// One traced table.
#[derive(Debug, Clone, Default)]
pub struct TablePlan {
    /// Path relative to the root.
    pub table_path: String,
    /// Its alias.
    pub type_key: String,
    /// Whether main ever registered it.
    pub on_main: bool,
    /// Its locations.
    pub locations: Vec<Traced>,
    /// Its tags as they were read.
    pub tags: Vec<Tag>,
    /// Every tree below it.
    pub trees: Vec<Tree>,
    /// Listings of the trees that are not traced, for what they borrow.
    pub untraced: BTreeMap<String, Location>,
    /// Why its trees cannot be told.
    pub trees_error: Option<String>,
    /// Why nothing of it goes.
    pub error: Option<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
    /// Everything that lies below its path.
    pub total: Total,
}

/// Trace a table. A failure is its own: it becomes the row's error.
pub async fn trace(root: &Root, capture: &Capture, table_path: &str, table: &Table) -> TablePlan {
    let mut plan = TablePlan {
        table_path: table_path.to_string(),
        type_key: table.type_key.clone(),
        on_main: table.on_main,
        ..TablePlan::default()
    };
    if let Err(e) = attempt(root, capture, table, &mut plan).await {
        plan.error = Some(format!("{} ({table_path}): {e}", table.type_key));
    }
    if let Some(error) = plan
        .locations
        .iter()
        .find_map(|l| l.plan.errors.first().cloned())
    {
        plan.error.get_or_insert(error);
    }
    plan
}

async fn attempt(
    root: &Root,
    capture: &Capture,
    table: &Table,
    plan: &mut TablePlan,
) -> Result<()> {
    let path = plan.table_path.clone();
    let traced: BTreeSet<Option<String>> = table.locations.keys().cloned().collect();
    if let Some(odd) = traced.iter().flatten().find(|n| !is_placeable(n)) {
        return Err(Error::refused(format!(
            "a pin lives on branch '{odd}', whose folder cannot be told from those of its files"
        )));
    }
    let mut listing = list_table(root, &path, &traced).await?;
    for location in listing.locations.values() {
        plan.total.objects += location.all.objects;
        plan.total.bytes = plan.total.bytes.saturating_add(location.all.bytes);
    }
    for name in &listing.tags {
        plan.tags.extend(tags::read(root, &path, name).await?);
    }
    trees(root, &path, &listing, plan).await;
    for (native, needs) in &table.locations {
        let listed = listing.locations.remove(native).unwrap_or_default();
        if listed.all.objects == 0 && needs.wanted.is_empty() {
            // A dropped table or a fork that is gone as a whole.
            continue;
        }
        let mut wanted = needs.wanted.clone();
        for tag in plan.tags.iter().filter(|t| t.branch == *native) {
            wanted
                .entry(Target::Version(tag.version))
                .or_default()
                .entry(Reason::Tag)
                .or_insert_with(|| format!("tag '{}' of the table names it", tag.name));
        }
        let manifests = facts::read_all(root, &path, native.as_deref(), &listed).await?;
        let live_after = live_after(root, capture, &manifests).await?;
        let evidence = Evidence {
            branches: &capture.live,
            ledger: &capture.ledger,
            live_after: &live_after,
        };
        let verdict = |version: u64| {
            let witness = manifests
                .facts
                .get(&version)
                .and_then(|f| f.witness.as_ref());
            judge(witness, evidence)
        };
        let label = format!("{} ({})", plan.type_key, place(&path, native.as_deref()));
        let mut classified = classify(
            &label,
            &listed,
            &manifests,
            &needs.registered,
            &wanted,
            verdict,
            capture.now,
        );
        plan.notes.extend(classified.frozen.clone());
        if classified.roots.is_empty() {
            classified.spare_all(&listed.manifests, Reason::Undecidable);
        }
        plan.locations.push(Traced {
            native: native.clone(),
            plan: classified,
            sizes: listed.manifests,
        });
    }
    for (native, location) in listing.locations {
        if let Some(native) = native {
            plan.untraced.insert(native, location);
        }
    }
    Ok(())
}

/// Identifiers of the live branches as they are after the listing; read only when a witness names one that was not
/// captured.
async fn live_after(
    root: &Root,
    capture: &Capture,
    manifests: &Manifests,
) -> Result<BTreeSet<String>> {
    let known = |i: &str| capture.live.iter().any(|b| b.incarnation == i);
    let mut named = manifests.facts.values().filter_map(|f| f.witness.as_ref());
    if named.all(|w| known(&w.incarnation)) {
        return Ok(BTreeSet::new());
    }
    live_now(root).await?.values().map(incarnation).collect()
}

/// The trees of a table, from its listing and ref objects.
async fn trees(root: &Root, path: &str, listing: &TableListing, plan: &mut TablePlan) {
    if let Some(object) = &listing.unplaced {
        plan.trees_error = Some(format!(
            "{path}/{object} belongs to no tree that can be told"
        ));
    }
    let named = listing
        .locations
        .keys()
        .flatten()
        .chain(listing.refs.keys());
    for name in named.cloned().collect::<BTreeSet<String>>() {
        let location = listing.locations.get(&Some(name.clone()));
        let written = listing.refs.get(&name).copied();
        let mut tree = Tree {
            name: name.clone(),
            has_ref: written.is_some(),
            archived: location.is_some_and(|l| l.archived),
            total: location.map(|l| l.all).unwrap_or_default(),
            newest: location
                .map_or(i64::MIN, |l| l.newest)
                .max(written.unwrap_or(i64::MIN)),
            ..Tree::default()
        };
        if !is_placeable(&name) {
            plan.trees_error = Some(format!(
                "branch '{name}' of {path} has the name of a folder of its files"
            ));
        }
        if written.is_some() {
            let key = format!("{path}/_refs/branches/{}.json", name.replace('/', "%2F"));
            match read_ref(root, &key, &name).await {
                Ok(Some(contents)) => {
                    tree.parent = contents.parent_branch;
                    tree.identifier = Some(contents.identifier);
                }
                Ok(None) => plan.trees_error = Some(format!("{key} vanished while it was read")),
                Err(e) => plan.trees_error = Some(e.to_string()),
            }
        }
        plan.trees.push(tree);
    }
}

async fn read_ref(root: &Root, key: &str, name: &str) -> Result<Option<RefContents>> {
    match root.get(key, MAX_REF_BYTES).await? {
        None => Ok(None),
        Some(bytes) => RefContents::parse(&bytes, name, key).map(Some),
    }
}
