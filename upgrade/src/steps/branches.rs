//! What must hold before a census: an empty history area and convertible heads (steps 17, 18).

use std::collections::BTreeMap;

use graph::Error;
use graph::history::path::HISTORY_DIR;
use graph::model::names::{MAIN, logical_name, logical_name_error};

use super::preflight::Scope;
use crate::report::{Code, Finding, Outcome};
use crate::run::{Run, Stop};

/// Most keys one finding lists.
const LISTED: usize = 20;

/// `__history/` may hold nothing but schema archives, and the create-temporaries of archives.
pub(super) async fn history_is_empty(run: &Run<'_>) -> Result<(), Stop> {
    let prefix = format!("{HISTORY_DIR}/");
    let mut foreign: Vec<String> = run
        .root
        .list_sorted(HISTORY_DIR)
        .await?
        .into_iter()
        .filter_map(|(key, _)| key.strip_prefix(&prefix).map(str::to_string))
        .filter(|key| !is_archive(key))
        .collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let count = foreign.len();
    foreign.truncate(LISTED);
    let more = match count - foreign.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Err(Stop::refused(
        Code::HistoryObjectsPresent,
        format!(
            "a graph of stamp {} has no history area, but __history/ holds {count} object{} that no schema \
             archive accounts for: {}{more}; find out what wrote them and move them out of the root, or \
             restore the whole root from a backup",
            run.source.unwrap_or_default(),
            if count == 1 { "" } else { "s" },
            foreign.join(", ")
        ),
    ))
}

/// `schemas/<64 hex>.schema`, or a create-temporary of one.
fn is_archive(key: &str) -> bool {
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let Some((name, rest)) = key
        .strip_prefix("schemas/")
        .and_then(|file| file.split_once(".schema"))
    else {
        return false;
    };
    graph::digest::is_sha256_hex(name)
        && (rest.is_empty()
            || rest
                .strip_prefix(".tmp.")
                .is_some_and(|nonce| hex(nonce, 32)))
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

#[cfg(test)]
mod tests {
    use super::is_archive;

    #[test]
    fn only_archives_and_their_temporaries_are_expected() {
        let (hex, nonce) = ("a".repeat(64), "0".repeat(32));
        assert!(is_archive(&format!("schemas/{hex}.schema")));
        assert!(is_archive(&format!("schemas/{hex}.schema.tmp.{nonce}")));
        for foreign in [
            format!("{hex}.schema"),
            format!("schemas/x/{hex}.schema"),
            format!("schemas/{}.schema", "A".repeat(64)),
            format!("schemas/{hex}.schema.tmp.1"),
            format!("schemas/{hex}.schemas"),
            "legacy/data/00000000.lance".into(),
        ] {
            assert!(!is_archive(&foreign), "{foreign}");
        }
    }
}
