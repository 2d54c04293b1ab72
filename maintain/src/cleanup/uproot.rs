//! Removing native trees (`docs/format/maintenance.md` 5.8): the ref object, then the objects of exactly this tree.
//!
//! Lance's forced branch delete is not used: it removes the topmost folder that no remaining ref shares, and with it
//! trees that have no ref.

use futures::TryStreamExt as _;
use graph::store::{MANIFEST_DIR, Root};
use graph::{Error, Result, refs};

use super::facts::place;
use super::listing::split_tree;
use super::plan::{Plan, TreePlan};
use super::sweep::{Done, Effects};
use super::tags;

const ARCHIVE: &str = "_omnigraph_retired_branch.json";

/// Remove the trees of a plan, those of tables first. With `failed`, a table ended early and no table tree goes.
/// Failures are collected; what depends on a tree that stayed is not tried.
pub async fn trees(effects: &Effects<'_>, plan: &Plan, failed: bool, done: &mut Done) {
    let mut stuck: Vec<&str> = Vec::new();
    for going in plan.trees.iter().filter(|t| t.stay.is_none()) {
        let key = place(&going.dataset, Some(&going.tree.name));
        let table = going.dataset != MANIFEST_DIR;
        let result = if table && failed {
            Err(Error::refused(
                "a table could not be swept to the end; the tree is left for the next run",
            ))
        } else if stuck.contains(&going.dataset.as_str()) {
            Err(Error::refused(
                "a tree before it could not be removed; it is left for the next run",
            ))
        } else {
            Box::pin(one(effects, plan, going)).await
        };
        if result.is_err() {
            stuck.push(&going.dataset);
        }
        done.trees.insert(key, result.map_err(|e| e.to_string()));
    }
}

async fn one(effects: &Effects<'_>, plan: &Plan, going: &TreePlan) -> Result<()> {
    let name = &going.tree.name;
    let root = effects.root();
    for tag in tags::read_all(root, &going.dataset).await? {
        if tag.branch.as_deref() == Some(name) {
            return Err(Error::Conflict(format!(
                "tag '{}' names tree '{name}' now; run the command again",
                tag.name
            )));
        }
    }
    let finished = plan.finish.iter().any(|(native, _)| native == name);
    if going.dataset == MANIFEST_DIR
        && let Some(found) = refs::read_ref(root, name).await?
        && (!found.is_retired(name, &refs::ref_key(name))? || finished)
    {
        return Err(Error::Conflict(format!(
            "a ref object names tree '{name}' now; run the command again"
        )));
    }
    let keys = keys_of(root, going).await?;
    if going.tree.has_ref && going.dataset != MANIFEST_DIR {
        let file = name.replace('/', "%2F");
        effects
            .delete(&format!("{}/_refs/branches/{file}.json", going.dataset))
            .await?;
    }
    // While a retired tree has its newest version the next run can read what it holds, and once it has none there
    // is nothing left to read; the archive is what makes it a retired tree, so it goes last.
    let (archive, keys): (Vec<String>, Vec<String>) =
        keys.into_iter().partition(|k| k.ends_with(ARCHIVE));
    let (mut manifests, others): (Vec<String>, Vec<String>) =
        keys.into_iter().partition(|k| k.ends_with(".manifest"));
    // The names of linear versions descend.
    manifests.sort_by(|a, b| b.cmp(a));
    if going.dataset == MANIFEST_DIR {
        for key in &manifests {
            effects.delete(key).await?;
        }
        effects.delete_all(&others).await?;
    } else {
        effects.delete_all(&others).await?;
        effects.delete_all(&manifests).await?;
    }
    effects.delete_all(&archive).await
}

/// The objects of exactly this tree, none of a tree nested in it. They must be the ones the plan saw.
async fn keys_of(root: &Root, going: &TreePlan) -> Result<Vec<String>> {
    let trees = format!("{}/tree/", going.dataset);
    let mut keys = Vec::new();
    let mut seen = 0_u64;
    let mut listed = root.list_objects(&place(&going.dataset, Some(&going.tree.name)))?;
    while let Some(object) = listed.try_next().await? {
        let inside = object.key.strip_prefix(&trees).and_then(split_tree);
        if inside.is_some_and(|(tree, _)| tree == going.tree.name) {
            seen += u64::from(!object.key.ends_with(ARCHIVE));
            keys.push(object.key);
        }
    }
    let expected = going.tree.total.objects - u64::from(going.tree.archived);
    if seen != expected {
        return Err(Error::Conflict(format!(
            "tree '{}' holds {seen} objects, the plan saw {expected}; run the command again",
            going.tree.name
        )));
    }
    Ok(keys)
}
