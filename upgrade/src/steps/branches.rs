//! What must hold before a census: an empty history area, no tree that nothing names, and convertible heads
//! (steps 17, 18).

use std::collections::BTreeMap;

use graph::Error;
use graph::history::legacy::{NAMED_KEYS, foreign_objects};
use graph::model::names::{MAIN, logical_name, logical_name_error};
use graph::refs::{self, RefInventory, Unclaimed};

use super::preflight::Scope;
use crate::report::{Code, Finding, Outcome};
use crate::run::{Run, Stop};

/// `__history/` may hold nothing but schema archives, and the create-temporaries of archives.
pub(super) async fn history_is_empty(run: &Run<'_>) -> Result<(), Stop> {
    let foreign = foreign_objects(run.root).await?;
    if foreign.is_empty() {
        return Ok(());
    }
    // A full list is likely a cut one: say so, or the reader takes it for the whole.
    let cut = if foreign.len() >= NAMED_KEYS {
        format!(" (the first {NAMED_KEYS})")
    } else {
        String::new()
    };
    Err(Stop::refused(
        Code::HistoryObjectsPresent,
        format!(
            "a graph of stamp {} has no history area, but __history/ holds objects that no schema archive \
             accounts for: {}{cut}; find out what wrote them and move them out of the root, or restore the whole \
             root from a backup",
            run.source.unwrap_or_default(),
            foreign.join(", ")
        ),
    ))
}

/// A tree that published something and has neither ref nor archive would be left out of the census, and its
/// commits with it.
pub(super) async fn trees_are_claimed(run: &Run<'_>, inventory: &RefInventory) -> Result<(), Stop> {
    let mut findings = Vec::new();
    for native in &inventory.unclaimed {
        let Unclaimed::Published(holds) = refs::unclaimed(run.root, native).await? else {
            continue;
        };
        findings.push(Finding::new(
            Code::UnsupportedSource,
            format!(
                "__manifest/tree/{native}/ {holds}, but neither a ref object ({}) nor a retirement archive ({}) \
                 names it, and its commits would be left out; restore that object from a backup, or move the tree \
                 out of the root if nothing in it is wanted",
                refs::ref_key(native),
                refs::archive_key(native)
            ),
        ));
    }
    settle(findings)
}

/// Valid, unique logical names, `object_id` as the only unenforced primary key, stable row ids.
pub(super) async fn heads_are_convertible(run: &Run<'_>, scope: &Scope) -> Result<(), Stop> {
    for branch in &scope.branches {
        let Some(native) = &branch.native else {
            continue;
        };
        let logical = logical_name(native);
        if logical != MAIN
            && let Some(why) = logical_name_error(logical)
        {
            return Err(Stop::Hard(Error::refused(format!(
                "ref '{native}' has no valid branch name: {why}"
            ))));
        }
    }
    let mut findings = Vec::new();
    let mut taken: BTreeMap<&str, &str> = BTreeMap::from([(MAIN, MAIN)]);
    for branch in &scope.branches {
        if let Some(native) = &branch.native {
            let logical = logical_name(native);
            match taken.get(logical) {
                Some(other) => findings.push(Finding::new(
                    Code::UnsupportedSource,
                    format!("refs '{other}' and '{native}' are both branch '{logical}'"),
                )),
                None => {
                    taken.insert(logical, native);
                }
            }
        }
        let head = run
            .root
            .open_manifest(branch.native.as_deref(), Some(branch.version))
            .await?;
        let keys: Vec<&str> = head
            .dataset
            .schema()
            .unenforced_primary_key()
            .iter()
            .map(|f| f.name.as_str())
            .collect();
        if keys != ["object_id"] {
            findings.push(Finding::new(
                Code::UnsupportedSource,
                format!(
                    "{} has the primary key [{}], expected [object_id]",
                    head.describe(),
                    keys.join(", ")
                ),
            ));
        }
        if !head.dataset.manifest().uses_stable_row_ids() {
            findings.push(Finding::new(
                Code::UnsupportedSource,
                format!("{} does not use stable row ids", head.describe()),
            ));
        }
    }
    settle(findings)
}

fn settle(findings: Vec<Finding>) -> Result<(), Stop> {
    if findings.is_empty() {
        return Ok(());
    }
    Err(Stop::Settled {
        outcome: Outcome::CheckFailed,
        findings,
        remedy: None,
        unrouted: false,
    })
}
