//! What must hold before a census: an empty history area, no tree that nothing names, and convertible heads
//! (steps 17, 18).

use std::collections::BTreeMap;

use graph::Error;
use graph::history::legacy::{NAMED_KEYS, foreign_objects};
use graph::model::names::{MAIN, logical_name, logical_name_error};
use graph::refs;
use graph::stamp::StampReading;
use graph::store::MANIFEST_DIR;

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

/// First stamp whose releases retire a ref instead of deleting its tree.
const FIRST_RETIRING: u32 = 8;

/// A tree that published something and has neither ref nor archive would be left out of the census, and its
/// commits with it. What an interrupted creation leaves (one cloned version) and what a deletion before stamp
/// 8 leaves hold nothing that a ref ever kept.
pub(super) async fn trees_are_claimed(run: &Run<'_>) -> Result<(), Stop> {
    let mut findings = Vec::new();
    for native in refs::inventory(run.root).await?.unclaimed {
        let Some(held) = unclaimed_contents(run, &native).await? else {
            continue;
        };
        findings.push(Finding::new(
            Code::UnsupportedSource,
            format!(
                "__manifest/tree/{native}/ {held}, but neither a ref object ({}) nor a retirement archive ({}) \
                 names it, and its commits would be left out; restore that object from a backup, or move the tree \
                 out of the root if nothing in it is wanted",
                refs::ref_key(&native),
                refs::archive_key(&native)
            ),
        ));
    }
    settle(findings)
}

/// What an unclaimed tree holds that a ref kept, in words; `None` when it is a mere leftover.
async fn unclaimed_contents(run: &Run<'_>, native: &str) -> Result<Option<String>, Stop> {
    let versions = run
        .root
        .linear_versions(MANIFEST_DIR, Some(native))
        .await?
        .len();
    let head = match run.root.open_manifest(Some(native), None).await {
        Ok(head) => head,
        Err(e) if e.is_not_found() && versions == 0 => return Ok(None),
        Err(e) => {
            return Ok(Some(format!(
                "holds {versions} version{} and cannot be opened ({e})",
                if versions == 1 { "" } else { "s" }
            )));
        }
    };
    let stamp = match StampReading::of(&head) {
        StampReading::Absent => return Ok(None),
        StampReading::Number(n) if n < FIRST_RETIRING => return Ok(None),
        StampReading::Number(n) => n.to_string(),
        StampReading::NotANumber(text) => format!("'{text}'"),
    };
    if versions == 1 && head.is_clone().await.unwrap_or(false) {
        return Ok(None);
    }
    Ok(Some(format!(
        "holds versions up to {} of stamp {stamp}",
        head.version
    )))
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
