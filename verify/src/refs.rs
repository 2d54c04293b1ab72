//! Ref objects, retirement archives, trees and tags of `__manifest` (`docs/format/manifest-v14.md` 11).

use std::collections::BTreeMap;

use futures::StreamExt as _;
use graph::model::names::{MAIN, logical_name};
use graph::refs::{
    NativeRef, RETIRED_KEY, RefContents, RefInventory, Unclaimed, archive_key, ref_key, survey,
    unclaimed,
};
use graph::store::MANIFEST_DIR;

use crate::finding::Code;
use crate::ref_object::{self, Described, Known, hidden_retirement, members};
use crate::report::Checked;
use crate::run::{Run, manifest_object};
use crate::tags;

/// Most bytes of a ref object that are read again.
const MAX_REF_BYTES: u64 = 4 << 20;

/// One live branch.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    /// Logical name.
    pub(crate) name: String,
    /// Native ref; `None` is main.
    pub(crate) native: Option<String>,
    /// The ref object; `None` for main and when it cannot be understood.
    pub(crate) contents: Option<RefContents>,
}

/// The refs of a root.
#[derive(Debug)]
pub(crate) struct Refs {
    /// Main, then the live named branches by native name.
    pub(crate) branches: Vec<Branch>,
}

/// Check every ref object, archive, tree and tag.
pub(crate) async fn check(run: &Run<'_>, checked: &mut Checked) -> Refs {
    let mut branches = vec![Branch {
        name: MAIN.to_string(),
        native: None,
        contents: None,
    }];
    let (inventory, broken) = match survey(run.root).await {
        Ok(found) => found,
        Err(e) => {
            let object = format!("{MANIFEST_DIR}/_refs/branches");
            run.findings.error(Code::RefDamaged, None, &object, &e);
            return Refs { branches };
        }
    };
    for found in &broken {
        let name = logical_name(&found.native);
        run.findings
            .error(Code::RefDamaged, Some(name), &found.object, &found.error);
        // Its rows are checked all the same, unless it is an archive that is broken.
        if found.object == ref_key(&found.native) {
            branches.push(Branch {
                name: name.to_string(),
                native: Some(found.native.clone()),
                contents: None,
            });
        }
    }
    for native in &inventory.unclaimed {
        unclaimed_tree(run, native).await;
    }
    ambiguous(run, &inventory);
    checked.retired_refs = inventory.retired.len() as u64;
    let total = (inventory.live.len() + inventory.retired.len()) as u64;
    let all: Vec<(&NativeRef, bool)> = inventory
        .live
        .iter()
        .map(|r| (r, false))
        .chain(inventory.retired.iter().map(|r| (r, true)))
        .collect();
    let known: Known<'_> = all
        .iter()
        .map(|(r, _)| (r.native.as_str(), &r.contents))
        .collect();
    let checks: Vec<_> = all
        .into_iter()
        .map(|(r, retired)| one(run, r, retired, &known))
        .collect();
    let mut checks = futures::stream::iter(checks).buffered(run.concurrency());
    let mut done = 0;
    while checks.next().await.is_some() {
        done += 1;
        run.progress("checking refs", done, total);
    }
    branches.extend(inventory.live.iter().map(|r| Branch {
        name: r.logical().to_string(),
        native: Some(r.native.clone()),
        contents: Some(r.contents.clone()),
    }));
    branches[1..].sort_by(|a, b| a.native.cmp(&b.native));
    tags::check(run, checked).await;
    Refs { branches }
}

async fn unclaimed_tree(run: &Run<'_>, native: &str) {
    let (name, object) = (
        Some(logical_name(native)),
        manifest_object(Some(native), None),
    );
    let nothing = "neither a ref object nor a retirement archive names this tree";
    let message = match unclaimed(run.root, native).await {
        // A ref that this stamp serves was live or retired at stamp 8.
        Ok(Unclaimed::Deleted) => return,
        Ok(Unclaimed::Cloned) => format!(
            "{nothing}: the creation of a branch was interrupted, or a branch that never published lost its ref"
        ),
        Ok(Unclaimed::Published(holds)) => {
            format!("{nothing}: one of them was lost; the tree {holds}")
        }
        Err(e) => return run.findings.error(Code::TreeUnclaimed, name, &object, &e),
    };
    run.findings.add(Code::TreeUnclaimed, name, object, message);
}

fn ambiguous(run: &Run<'_>, inventory: &RefInventory) {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for r in &inventory.live {
        by_name.entry(r.logical()).or_default().push(&r.native);
    }
    for (name, natives) in by_name {
        if natives.len() > 1 || name == MAIN {
            run.findings.add(
                Code::BranchAmbiguous,
                Some(name),
                natives
                    .iter()
                    .map(|n| ref_key(n))
                    .collect::<Vec<_>>()
                    .join(", "),
                format!("branch '{name}' has {} live refs", natives.len()),
            );
        }
    }
}

async fn one(run: &Run<'_>, r: &NativeRef, retired: bool, known: &Known<'_>) {
    let name = Some(r.logical());
    // A marked ref object may stand beside its archive, or alone.
    let mut object = ref_key(&r.native);
    for key in [ref_key(&r.native), archive_key(&r.native)] {
        match run.root.get(&key, MAX_REF_BYTES).await {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                if let Some(why) = members(&bytes) {
                    run.findings.add(Code::RefDamaged, name, &key, why);
                }
                object = key;
            }
            Err(e) => run.findings.error(Code::RefDamaged, name, &key, &e),
        }
    }
    if !retired && let Some(key) = hidden_retirement(&r.contents) {
        run.findings.add(
            Code::RefDamaged,
            name,
            &object,
            format!(
                "metadata entry '{key}' holds a retirement record, which only stands under {RETIRED_KEY}"
            ),
        );
    }
    let described = Described {
        location: MANIFEST_DIR,
        native: &r.native,
        contents: &r.contents,
        object: &object,
        branch: name,
        keeps_clone: true,
    };
    ref_object::check(run, &described, known).await;
}

#[cfg(test)]
mod tests;
