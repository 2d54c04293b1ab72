//! Commits against their parents: every id resolves, generations and versions ascend, slots follow each
//! other (`docs/format/manifest-v14.md` 3.2, 7 and 13).

use std::collections::HashSet;
use std::sync::Arc;

use graph::history::BlockAddress;
use graph::model::names::logical_name;

use crate::branches::Head;
use crate::finding::Code;
use crate::history::Area;
use crate::ledger::{Known, Ledger};
use crate::run::Run;

/// Check every commit; those on a live branch's first-parent lineage under that branch, main first.
pub(crate) fn check(run: &Run<'_>, heads: &[Head], area: &Area, ledger: &Ledger) {
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let total = ledger.len();
    for head in heads {
        let mut at = ledger.get(&head.commit).map(|k| (head.commit.clone(), k));
        while let Some((id, known)) = at {
            if !seen.insert(id.clone()) {
                break;
            }
            one(run, Some(&head.name), &id, known, area, ledger);
            run.progress("checking lineages", seen.len() as u64, total);
            at = known
                .parent
                .as_deref()
                .and_then(|parent| ledger.get(parent).map(|k| (Arc::from(parent), k)));
        }
    }
    for (id, known) in ledger.iter() {
        if !seen.contains(id) {
            one(run, None, id, known, area, ledger);
        }
    }
    absent_parents(run, area, ledger);
}

fn one(run: &Run<'_>, branch: Option<&str>, id: &str, known: &Known, area: &Area, ledger: &Ledger) {
    let add = |code: Code, message: String| {
        run.findings.add(
            code,
            branch,
            format!("commit {id} in {}", known.origin),
            message,
        );
    };
    let parent = known.parent.as_deref().map(|p| (p, ledger.get(p)));
    if let Some((parent, None)) = parent {
        add(
            Code::CommitMissing,
            format!("its first parent {parent} is held nowhere"),
        );
    }
    let merged = known.merged.as_deref().map(|m| (m, ledger.get(m)));
    let absent = |m: &str| {
        area.directory.as_ref().is_some_and(|d| {
            ulid::Ulid::from_string(m).is_ok_and(|u| d.absent_parents.binary_search(&u).is_ok())
        })
    };
    if let Some((merged, None)) = merged
        && !absent(merged)
    {
        add(
            Code::CommitMissing,
            format!("its merged parent {merged} is held nowhere"),
        );
    }
    if let Some(why) = generation(known, parent, merged) {
        add(Code::CommitInconsistent, why);
    }
    if let Some((parent_id, Some(parent))) = parent {
        let same = parent.native == known.native;
        if parent.version > known.version || (same && parent.version == known.version) {
            add(
                Code::CommitInconsistent,
                format!(
                    "it is dated at version {}, its parent {parent_id} at {}",
                    known.version, parent.version
                ),
            );
        }
    }
    if known.native.as_deref().map(logical_name) != known.graph_branch.as_deref() {
        add(
            Code::CommitInconsistent,
            format!(
                "it landed on branch '{}', but ref '{}' wrote it",
                known.graph_branch.as_deref().unwrap_or("main"),
                known.native.as_deref().unwrap_or("main")
            ),
        );
    }
    match address(id, known, parent) {
        Ok(None) => {}
        Ok(Some(why)) => add(Code::CommitInconsistent, why),
        Err(e) => add(Code::CommitInconsistent, e.to_string()),
    }
}

type Parent<'a> = Option<(&'a str, Option<&'a Known>)>;

/// Genesis is 0, else the greatest generation among the parents plus one; of a parent that is not held
/// only a lower bound is known.
fn generation(known: &Known, parent: Parent<'_>, merged: Parent<'_>) -> Option<String> {
    let held: Vec<u64> = [parent, merged]
        .iter()
        .flatten()
        .filter_map(|(_, k)| k.map(|k| k.generation))
        .collect();
    let missing = [parent, merged].iter().flatten().any(|(_, k)| k.is_none());
    let least = match (held.iter().max(), parent, merged) {
        (Some(greatest), _, _) => greatest.saturating_add(1),
        (None, None, None) => 0,
        (None, _, _) => 1,
    };
    let fits = if missing {
        known.generation >= least
    } else {
        known.generation == least
    };
    (!fits).then(|| {
        format!(
            "its generation is {}, its parents give {least}",
            known.generation
        )
    })
}

/// On one native lineage the slots of a block follow each other (`docs/format/manifest-v14.md` 7.1).
fn address(id: &str, known: &Known, parent: Parent<'_>) -> graph::Result<Option<String>> {
    let Some(own) = BlockAddress::parse(id)? else {
        return Ok(None);
    };
    let before = match parent {
        Some((parent, Some(held))) if held.native == known.native => BlockAddress::parse(parent)?,
        // Of a parent that is held nowhere nothing can be said.
        Some((_, None)) => return Ok(None),
        _ => None,
    };
    let follows = before.is_some_and(|b| b.slot.checked_add(1) == Some(own.slot));
    Ok(match before {
        Some(b) if follows && b.block != own.block => Some(format!(
            "its slot follows that of its parent, but it is in block {}, expected {}",
            own.block, b.block
        )),
        _ if !follows && own.block != own.nonce => Some(format!(
            "it stands at slot {} of block {}, which it did not open, and its parent is not at the slot \
             before",
            own.slot, own.block
        )),
        _ => None,
    })
}

/// What the directory lists as absent is named by some commit, and held nowhere.
fn absent_parents(run: &Run<'_>, area: &Area, ledger: &Ledger) {
    let Some(directory) = &area.directory else {
        return;
    };
    if directory.absent_parents.is_empty() {
        return;
    }
    let named: HashSet<&str> = ledger
        .iter()
        .filter_map(|(_, k)| k.merged.as_deref())
        .collect();
    for parent in &directory.absent_parents {
        let id = parent.to_string();
        let held = ledger.get(&id).is_some();
        if held || !named.contains(id.as_str()) {
            run.findings.add(
                Code::LegacyAreaDamaged,
                None,
                graph::history::path::ObjectKey::Directory.key(),
                format!(
                    "merged parent {id} is listed as absent, but {}",
                    if held {
                        "it is held"
                    } else {
                        "no commit names it"
                    }
                ),
            );
        }
    }
}
