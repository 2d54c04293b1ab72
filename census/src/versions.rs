//! Steps 4 and 5: which versions each ref still has, and reading them in order
//! (`docs/format/legacy-manifest.md` 7.2).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ::graph::store::{MANIFEST_DIR, ManifestVersion, Root};
use futures::future::join_all;
use legacy::{AdmittedStamp, LegacySource, Role, SchemaReader, SourceContract};

use crate::cells::{cells, dated};
use crate::finding::{Finding, FindingCode, Stop, label, listed};
use crate::fold::{Folded, RefFold};
use crate::heads::Head;
use crate::input::{Limits, Progress};
use crate::snapshot::Meter;

/// Versions read at once; also what is in memory beside the records.
pub(crate) const READS_AT_ONCE: usize = 16;

/// The own versions of every ref and the cells they add up to.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Per head in census order, ascending; empty for a fresh fork.
    pub versions: Vec<Vec<u64>>,
    /// Total over all refs.
    pub cells: u64,
}

impl Listed {
    /// Reads step 5 will make.
    pub(crate) fn reads(&self) -> u64 {
        self.versions.iter().map(|v| v.len().max(1) as u64).sum()
    }
}

/// List the own versions of every ref and check the cell bound, before any version is read.
pub(crate) async fn list(root: &Root, heads: &[Head], limits: &Limits) -> Result<Listed, Stop> {
    let mut listed = Listed {
        versions: Vec::with_capacity(heads.len()),
        cells: 0,
    };
    for head in heads {
        let (fork, pinned) = (head.input.parent_version, head.input.pinned);
        let versions = if pinned == fork {
            Vec::new()
        } else {
            let mut versions = root.linear_versions(MANIFEST_DIR, head.native()).await?;
            versions.retain(|v| *v > fork && *v <= pinned);
            versions
        };
        require(head, &versions)?;
        let more = cells(head.scan.rows, &dated(&head.scan), &versions);
        listed.cells = listed.cells.saturating_add(more);
        listed.versions.push(versions);
    }
    if listed.cells > limits.cells {
        return Err(Finding::new(
            FindingCode::LegacyCensusOverBound,
            format!(
                "reading the {} retained versions of this graph would scan {} rows, above the limit of \
                 {}; no version was read",
                listed.reads(),
                listed.cells,
                limits.cells
            ),
        )
        .into());
    }
    Ok(listed)
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

/// What every ref's fold needs.
pub(crate) struct Reading<'a> {
    pub root: &'a Root,
    pub source: &'a LegacySource,
    pub limits: &'a Limits,
    pub generations: &'a HashMap<&'a str, u64>,
    pub progress: &'a (dyn Fn(Progress) + Send + Sync),
    /// Reads of all refs.
    pub total: u64,
}

impl Reading<'_> {
    /// Read and fold the versions of one ref. `read` counts reads over all refs.
    pub(crate) async fn fold(
        &self,
        head: &Head,
        versions: &[u64],
        fallback: Option<Arc<SourceContract>>,
        schemas: &mut SchemaReader,
        meter: &mut Meter,
        read: &mut u64,
    ) -> Result<Folded, Stop> {
        let mut fold = RefFold::new(head, fallback, self.generations, self.limits);
        let fresh = [head.input.pinned];
        let wanted = if versions.is_empty() {
            &fresh
        } else {
            versions
        };
        for group in wanted.chunks(READS_AT_ONCE) {
            let (admitted, refused) = self.open(head.native(), group).await;
            let (found, failed) = schemas.read(&admitted).await;
            for (version, schema) in group.iter().zip(found) {
                if versions.is_empty() {
                    fold.fresh_fork(schema, meter)?;
                } else {
                    fold.version(*version, schema, meter)?;
                }
                *read += 1;
                (self.progress)(Progress::Versions {
                    read: *read,
                    total: self.total,
                });
            }
            // What stopped the group comes after the versions before it, as if they were read singly.
            match (failed, refused) {
                (Some(error), _) => return Err(error.into()),
                (None, Some(stop)) => return Err(stop),
                (None, None) => {}
            }
        }
        Ok(fold.finish())
    }

    /// Open and admit a group, up to the first version that cannot be.
    async fn open(
        &self,
        native: Option<&str>,
        group: &[u64],
    ) -> (Vec<(ManifestVersion, AdmittedStamp)>, Option<Stop>) {
        let mut admitted = Vec::with_capacity(group.len());
        for opened in join_all(group.iter().map(|number| self.admit(native, *number))).await {
            match opened {
                Ok(version) => admitted.push(version),
                Err(stop) => return (admitted, Some(stop)),
            }
        }
        (admitted, None)
    }

    async fn admit(
        &self,
        native: Option<&str>,
        number: u64,
    ) -> Result<(ManifestVersion, AdmittedStamp), Stop> {
        let version = self.root.open_manifest(native, Some(number)).await?;
        match self.source.admit(&version, Role::Retained) {
            Ok(stamp) => Ok((version, stamp)),
            Err(why) => Err(Finding::unsupported(format!(
                "version {number} of {} cannot be read: {why}",
                label(native)
            ))
            .into()),
        }
    }
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
