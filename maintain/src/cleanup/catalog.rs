//! The trees of `__manifest`: which retired branches and leftovers nothing needs (`docs/format/maintenance.md` 5.8).

use std::collections::BTreeMap;

use graph::manifest::scan::{ReadMode, read_state};
use graph::refs::{self, NativeRef, Unclaimed};
use graph::store::{MANIFEST_DIR, Root};
use graph::{Error, Result};

use super::capture::Capture;
use super::classify::ORPHAN_AGE;
use super::plan::{Plan, order, young};
use super::reason::Reason;
use super::roots::Roots;
use super::trees::{Stay, Tree, close};

/// Decide the trees of `__manifest` and which retirements are to be finished.
pub async fn plan_trees(
    root: &Root,
    captured: &Capture,
    roots: &Roots,
    plan: &mut Plan,
) -> Result<()> {
    let inventory = &captured.inventory;
    for retired in &inventory.retired {
        if !captured.catalog.refs.contains_key(&retired.native) {
            continue;
        }
        match tag_on(plan, &retired.native) {
            None => plan
                .finish
                .push((retired.native.clone(), retired.contents.identifier.clone())),
            Some(tag) => plan.notes.push(format!(
                "the deletion of branch '{}' was interrupted and is not finished while tag '{tag}' names it",
                retired.native
            )),
        }
    }
    if let Some(object) = &captured.catalog.unplaced {
        let why = format!("{MANIFEST_DIR}/{object} belongs to no tree that can be told");
        plan.trees_kept.push((MANIFEST_DIR.to_string(), why));
    }
    let trees = trees_of(captured);
    let mut stays = BTreeMap::new();
    for tree in &trees {
        if let Some(stay) = stay(root, captured, roots, plan, tree).await? {
            stays.insert(tree.name.clone(), stay);
        }
    }
    let stays = close(&trees, stays);
    plan.trees.extend(order(MANIFEST_DIR, &trees, stays));
    Ok(())
}

fn known<'a>(captured: &'a Capture, name: &str) -> Option<&'a NativeRef> {
    let inventory = &captured.inventory;
    inventory
        .live
        .iter()
        .chain(&inventory.retired)
        .find(|r| r.native == name)
}

fn trees_of(captured: &Capture) -> Vec<Tree> {
    let mut names: Vec<&String> = captured.catalog.locations.keys().flatten().collect();
    names.extend(captured.catalog.refs.keys());
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|name| {
            let location = captured.catalog.locations.get(&Some(name.clone()));
            let written = captured.catalog.refs.get(name).copied();
            let contents = known(captured, name).map(|r| &r.contents);
            Tree {
                name: name.clone(),
                has_ref: written.is_some(),
                parent: contents.and_then(|c| c.parent_branch.clone()),
                identifier: contents.map(|c| c.identifier.clone()),
                archived: location.is_some_and(|l| l.archived),
                total: location.map(|l| l.all).unwrap_or_default(),
                newest: location
                    .map_or(i64::MIN, |l| l.newest)
                    .max(written.unwrap_or(i64::MIN)),
            }
        })
        .collect()
}

/// A tag that goes in this run does not hold its tree.
fn tag_on(plan: &Plan, native: &str) -> Option<String> {
    plan.tags
        .iter()
        .filter(|t| !plan.dead_tags.contains(t))
        .find(|t| t.branch.as_deref() == Some(native))
        .map(|t| t.name.clone())
}

async fn stay(
    root: &Root,
    captured: &Capture,
    roots: &Roots,
    plan: &Plan,
    tree: &Tree,
) -> Result<Option<Stay>> {
    let name = tree.name.as_str();
    let kept = |reason, why: &str| Ok(Some(Stay::new(reason, why)));
    if captured.catalog.unplaced.is_some() {
        return kept(
            Reason::Undecidable,
            "the trees of __manifest cannot be told",
        );
    }
    if captured.inventory.live.iter().any(|r| r.native == name) {
        return kept(Reason::Head, "the branch is live");
    }
    if let Some(tag) = tag_on(plan, name) {
        return kept(Reason::Tag, &format!("tag '{tag}' names it"));
    }
    if roots.base_refs.contains(name) || captured.imported.contains(name) {
        return kept(
            Reason::MergeBase,
            "a merge base or its lineage comes from it",
        );
    }
    let cutoff = plan.policy.cutoff(plan.now);
    if let Some(stay) = young(tree, cutoff) {
        return Ok(Some(stay));
    }
    if captured.inventory.retired.iter().any(|r| r.native == name) {
        if tree.has_ref && !tree.archived && cutoff.is_some() {
            return kept(Reason::Age, "its archive is written by this run");
        }
        return unarchived(root, captured, tree).await;
    }
    if tree.has_ref || tree.archived {
        return Err(Error::Conflict(format!(
            "branch '{name}' was deleted while the plan was made; nothing was deleted, run the command again"
        )));
    }
    leftover(root, captured, plan, tree).await
}

/// A retired tree goes only when every commit it holds stands elsewhere.
async fn unarchived(root: &Root, captured: &Capture, tree: &Tree) -> Result<Option<Stay>> {
    let listed = captured.catalog.locations.get(&Some(tree.name.clone()));
    if listed.is_none_or(|l| l.manifests.is_empty()) {
        // What a deletion left that was interrupted after the last version went.
        return Ok(None);
    }
    let kept = |why: String| Ok(Some(Stay::new(Reason::Undecidable, why)));
    let opened = match root.open_manifest(Some(&tree.name), None).await {
        Ok(opened) => opened,
        Err(e) if e.is_storage() => return Err(e),
        Err(e) => return kept(format!("its head cannot be opened ({e})")),
    };
    let stamp = graph::stamp::StampReading::of(&opened).number();
    if stamp.is_some_and(|n| n < graph::stamp::CURRENT) {
        // Retired before the upgrade, which archived every commit of the source root.
        return match captured.history.directory().await? {
            Some(_) => Ok(None),
            None => kept("it is of an older stamp and nothing archives its commits".into()),
        };
    }
    match read_state(&opened, ReadMode::State).await {
        Ok(state) => {
            let lost = state
                .held_commits()
                .find(|c| captured.ledger.get(&c.graph_commit_id).is_none());
            match lost {
                None => Ok(None),
                Some(commit) => kept(format!(
                    "it holds commit {}, which nothing else holds",
                    commit.graph_commit_id
                )),
            }
        }
        Err(e) if e.is_storage() => Err(e),
        Err(e) => kept(format!("its head cannot be read ({e})")),
    }
}

/// A tree that neither a ref nor an archive names: an interrupted creation goes after seven days, since its ref may be
/// on its way; one that something was published on stays.
async fn leftover(
    root: &Root,
    captured: &Capture,
    plan: &Plan,
    tree: &Tree,
) -> Result<Option<Stay>> {
    if captured.inventory.unclaimed.contains(&tree.name)
        && let Unclaimed::Published(what) = refs::unclaimed(root, &tree.name).await?
    {
        let why = format!("neither a ref nor an archive names it, and it {what}");
        return Ok(Some(Stay::new(Reason::Undecidable, why)));
    }
    let old = plan.now.saturating_sub(tree.newest) > ORPHAN_AGE;
    Ok((!old).then(|| {
        Stay::new(
            Reason::Recent,
            "nothing names it, and it is younger than seven days",
        )
    }))
}
