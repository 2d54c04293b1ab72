//! Which retained versions have to be read, and which follow from others (`docs/format/legacy-manifest.md`
//! 7.8): one manifest a version, no rows.

use ::graph::store::{MANIFEST_DIR, Root};
use futures::{StreamExt as _, stream};
use lance_table::io::commit::ManifestLocation;
use legacy::LegacySource;
use legacy::proof::{Footprint, FootprintReader};

use crate::finding::{Finding, Stop, label};
use crate::heads::Head;
use crate::versions::READS_AT_ONCE;

/// The own versions of one ref, ascending; empty for a fresh fork.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub versions: Vec<Footprint>,
    /// What keeps the version after the last one from being admitted.
    pub stopped: Option<Stop>,
}

/// Consecutive versions that are taken in one way; positions in the survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    /// Each is read.
    Read(std::ops::Range<usize>),
    /// The last one is read, unless it is the head, which is; the others follow from it.
    Proved(std::ops::Range<usize>),
}

/// Every own version, as one that has to be read.
pub(crate) fn unproved(locations: &[ManifestLocation]) -> Survey {
    Survey {
        versions: locations
            .iter()
            .map(|l| Footprint::unknown(l.version))
            .collect(),
        stopped: None,
    }
}

/// Read the manifest of every own version and admit it, up to the first that is not.
pub(crate) async fn survey(
    root: &Root,
    source: &LegacySource,
    head: &Head,
    locations: Vec<ManifestLocation>,
) -> Survey {
    let native = head.native();
    let mut found = Survey::default();
    let mut footprints = FootprintReader::default();
    let mut files = stream::iter(locations)
        .map(|location| async move { root.read_manifest_file(native, &location).await })
        .buffered(READS_AT_ONCE);
    while let Some(read) = files.next().await {
        let file = match read {
            Ok(file) => file,
            Err(error) => {
                found.stopped = Some(error.into());
                break;
            }
        };
        if let Err(why) = source.admit_retained(&file) {
            found.stopped = Some(not_admitted(native, file.version, &why).into());
            break;
        }
        found.versions.push(footprints.next(&file));
    }
    found
}

pub(crate) fn not_admitted(
    native: Option<&str>,
    version: u64,
    why: &legacy::RefusalReason,
) -> Finding {
    Finding::unsupported(format!(
        "version {version} of {} cannot be read: {why}",
        label(native)
    ))
}

impl Survey {
    /// The versions in runs, oldest first; `pinned` is the head, whose rows are known.
    pub(crate) fn runs(&self, pinned: u64) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut start = 0;
        for at in 0..self.versions.len() {
            let next = self.versions.get(at + 1);
            if next.is_some_and(|above| above.follows(&self.versions[at])) {
                continue;
            }
            let single = start == at && self.versions[at].version != pinned;
            match (runs.last_mut(), single) {
                (Some(Run::Read(range)), true) => range.end = at + 1,
                (_, true) => runs.push(Run::Read(at..at + 1)),
                (_, false) if self.versions[at].span.is_some() => {
                    runs.push(Run::Proved(start..at + 1))
                }
                // The head, and nothing known of it.
                (_, false) => runs.push(Run::Read(start..at + 1)),
            }
            start = at + 1;
        }
        runs
    }

    /// Versions that are read whatever else is found, ascending.
    pub(crate) fn surely_read(&self, pinned: u64) -> Vec<u64> {
        let read = |run| match run {
            Run::Read(range) => range,
            // The head was scanned.
            Run::Proved(range) if self.versions[range.end - 1].version == pinned => 0..0,
            Run::Proved(range) => range.end - 1..range.end,
        };
        let runs = self.runs(pinned).into_iter();
        runs.flat_map(read)
            .map(|at| self.versions[at].version)
            .collect()
    }
}

/// Where the own versions of a ref are, ascending: one listing, none for a fresh fork.
pub(crate) async fn locations(root: &Root, head: &Head) -> Result<Vec<ManifestLocation>, Stop> {
    let (fork, pinned) = (head.input.parent_version, head.input.pinned);
    if pinned == fork {
        return Ok(Vec::new());
    }
    let mut found = root.manifest_locations(MANIFEST_DIR, head.native()).await?;
    found.retain(|l| l.version > fork && l.version <= pinned);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Versions with a span `0..n`, or none for 0; `known` is whether the step to it is.
    fn survey(versions: &[(u64, u64, bool)]) -> Survey {
        let of = |(version, end, known): &(u64, u64, bool)| Footprint {
            version: *version,
            span: (*end > 0).then_some(0..*end),
            unsettled: known.then(Vec::new),
        };
        Survey {
            versions: versions.iter().map(of).collect(),
            stopped: None,
        }
    }

    #[test]
    fn runs_end_where_nothing_follows() {
        let (p, r) = (Run::Proved, Run::Read);
        for (name, versions, pinned, want, read) in [
            ("nothing", vec![], 5, vec![], vec![]),
            (
                "all",
                vec![(1, 2, false), (2, 3, true), (3, 4, true)],
                3,
                vec![p(0..3)],
                vec![],
            ),
            ("head alone", vec![(3, 4, false)], 3, vec![p(0..1)], vec![]),
            (
                "head unknown",
                vec![(1, 2, false), (3, 0, false)],
                3,
                vec![r(0..1), r(1..2)],
                vec![1, 3],
            ),
            (
                "a gap",
                vec![(1, 2, false), (2, 2, true), (4, 4, false), (5, 5, true)],
                5,
                vec![p(0..2), p(2..4)],
                vec![2],
            ),
            (
                "singles go together",
                vec![(1, 2, false), (3, 3, false), (5, 4, false), (6, 5, true)],
                6,
                vec![r(0..2), p(2..4)],
                vec![1, 3],
            ),
            (
                "cut before the head",
                vec![(1, 2, false), (2, 3, true)],
                9,
                vec![p(0..2)],
                vec![2],
            ),
        ] {
            let survey = survey(&versions);
            assert_eq!(survey.runs(pinned), want, "{name}");
            assert_eq!(survey.surely_read(pinned), read, "{name}");
        }
    }

    proptest! {
        /// Every version is in exactly one run, in order.
        #[test]
        fn runs_cover_all(steps in proptest::collection::vec((1_u64..3, 0_u64..3, any::<bool>()), 0..20)) {
            let mut at = (0, 1);
            let versions: Vec<(u64, u64, bool)> = steps
                .iter()
                .map(|(version, rows, known)| {
                    at = (at.0 + version, at.1 + rows);
                    (at.0, if *rows == 2 { 0 } else { at.1 }, *known)
                })
                .collect();
            let survey = survey(&versions);
            let covered: Vec<usize> = survey
                .runs(at.0)
                .into_iter()
                .flat_map(|run| match run {
                    Run::Read(range) | Run::Proved(range) => range,
                })
                .collect();
            prop_assert_eq!(covered, (0..versions.len()).collect::<Vec<_>>());
        }
    }
}
