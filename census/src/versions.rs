//! Step 4: which versions each ref still has, and what reading them takes (`docs/format/legacy-manifest.md` 7.2).

//! Steps 4 and 5: which versions each ref still has, and reading them in order
//! (`docs/format/legacy-manifest.md` 7.2).

use std::collections::BTreeSet;

use ::graph::store::Root;
use legacy::LegacySource;

use crate::cells::{cells, dated};
use crate::finding::{Finding, FindingCode, Stop, listed};
use crate::heads::Head;
use crate::input::Limits;
use crate::survey::{self, Survey, locations};

/// Versions read at once; also what is in memory beside the records.
pub(crate) const READS_AT_ONCE: usize = 16;

/// The own versions of every ref and the cells of reading those that are surely read.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Per head in census order.
    pub surveys: Vec<Survey>,
    /// Cells over all refs.
    pub cells: u64,
}

impl Listed {
    /// Versions step 5 will go through; a fresh fork counts as one.
    pub(crate) fn reads(&self) -> u64 {
        let surveys = self.surveys.iter();
        surveys.map(|s| s.versions.len().max(1) as u64).sum()
    }
}

/// List the own versions of every ref, survey them where the source allows it and `exhaustive` does not ask
/// otherwise, and check the cell bound before any row of a version is read.
pub(crate) async fn list(
    root: &Root,
    source: &LegacySource,
    heads: &[Head],
    limits: &Limits,
    exhaustive: bool,
) -> Result<Listed, Stop> {
    let mut found = Vec::with_capacity(heads.len());
    for head in heads {
        let locations = locations(root, head).await?;
        let versions: Vec<u64> = locations.iter().map(|l| l.version).collect();
        require(head, &versions)?;
        found.push(locations);
    }
    let mut listed = Listed {
        surveys: Vec::with_capacity(heads.len()),
        cells: 0,
    };
    for (head, locations) in heads.iter().zip(found) {
        let survey = if exhaustive || !source.has_provable_versions() {
            survey::unproved(&locations)
        } else {
            survey::survey(root, source, head, locations).await
        };
        let read = survey.surely_read(head.input.pinned);
        let more = cells(head.scan.rows, &dated(&head.scan), &read);
        listed.cells = listed.cells.saturating_add(more);
        listed.surveys.push(survey);
    }
    check_cells(listed.cells, limits)?;
    Ok(listed)
}

/// The cell bound.
pub(crate) fn check_cells(cells: u64, limits: &Limits) -> Result<(), Finding> {
    if cells <= limits.cells {
        return Ok(());
    }
    Err(Finding::new(
        FindingCode::LegacyCensusOverBound,
        format!(
            "the retained versions of this graph whose tables do not follow from their manifests would take \
             scanning {cells} rows, above the limit of {}; nothing was changed. Clean up old versions with the \
             release that wrote the graph, or rebuild it by export and load",
            limits.cells
        ),
    ))
}

/// Every version that holds a commit, and the head, must still be there.
fn require(head: &Head, versions: &[u64]) -> Result<(), Finding> {
    let retained: BTreeSet<u64> = versions.iter().copied().collect();
    let gone: Vec<_> = head
        .own()
        .filter(|c| !retained.contains(&c.version))
        .map(|c| format!("version {} of commit {}", c.version, c.id))
        .collect();
    if !gone.is_empty() {
        return Err(Finding::incomplete(format!(
            "{} no longer has {} of the __manifest versions its commits wrote: {}; restore the whole root \
             from a backup that has them",
            head.label(),
            gone.len(),
            listed(gone)
        )));
    }
    let (fork, pinned) = (head.input.parent_version, head.input.pinned);
    if pinned > fork && !retained.contains(&pinned) {
        return Err(Finding::incomplete(format!(
            "the listing of {} lacks its head version {pinned}",
            head.label()
        )));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::testing::{commit, commits};

    #[test]
    fn commits_and_the_head_must_be_retained() {
        let head = commits(None, 0, 5, &[commit(1, None, 1), commit(2, None, 4)]);
        assert!(require(&head, &[1, 4, 5]).is_ok());
        let gone = require(&head, &[4, 5]).expect_err("a commit is gone");
        assert_eq!(gone.code, FindingCode::LegacyLineageIncomplete);
        assert!(gone.message.contains("version 1 of commit"));
        let headless = require(&head, &[1, 4]).expect_err("the head is gone");
        assert!(headless.message.contains("head version 5"));
        let fresh = commits(Some("f"), 5, 5, &[commit(1, None, 1)]);
        assert!(require(&fresh, &[]).is_ok());
    }
}
