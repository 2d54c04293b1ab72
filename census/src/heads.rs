//! Step 1: every head, admitted and scanned, and which of its commits are the ref's own
//! (`docs/format/legacy-manifest.md` 7.2 step 1).

use ::graph::model::names::logical_name;
use ::graph::store::Root;
use ::graph::ulids;
use futures::{StreamExt as _, TryStreamExt as _};
use legacy::{HeadScan, LegacyCommit, LegacySource, Role};

use crate::finding::{Finding, Stop, label, listed};
use crate::input::{Progress, RefInput, RefKind};
use crate::versions::READS_AT_ONCE;

/// One ref with its scanned head.
#[derive(Debug)]
pub(crate) struct Head {
    pub kind: RefKind,
    pub input: RefInput,
    /// Stamp the head was admitted as.
    pub stamp: u32,
    pub scan: HeadScan,
    /// Positions in `scan.commits` of the ref's own commits, by version.
    own: Vec<usize>,
}

impl Head {
    pub(crate) fn new(
        kind: RefKind,
        input: RefInput,
        stamp: u32,
        scan: HeadScan,
    ) -> Result<Self, Finding> {
        let own = own_commits(&input, &scan.commits)?;
        Ok(Self {
            kind,
            input,
            stamp,
            scan,
            own,
        })
    }

    pub(crate) fn native(&self) -> Option<&str> {
        self.input.native.as_deref()
    }

    pub(crate) fn label(&self) -> String {
        label(self.native())
    }

    /// Commits above the fork version, oldest first.
    pub(crate) fn own(&self) -> impl ExactSizeIterator<Item = &LegacyCommit> {
        self.own.iter().map(|at| &self.scan.commits[*at])
    }

    /// Commits at or below the fork version.
    pub(crate) fn inherited(&self) -> impl Iterator<Item = &LegacyCommit> {
        let fork = self.input.parent_version;
        self.scan.commits.iter().filter(move |c| c.version <= fork)
    }
}

/// Scan every head, in order.
pub(crate) async fn read(
    root: &Root,
    source: &LegacySource,
    refs: Vec<(RefKind, RefInput)>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Vec<Head>, Stop> {
    let total = refs.len() as u64;
    let mut read = 0;
    progress(Progress::Heads { read, total });
    futures::stream::iter(refs)
        .map(|(kind, input)| read_one(root, source, kind, input))
        .buffered(READS_AT_ONCE)
        .inspect_ok(|_| {
            read += 1;
            progress(Progress::Heads { read, total });
        })
        .try_collect()
        .await
}

async fn read_one(
    root: &Root,
    source: &LegacySource,
    kind: RefKind,
    input: RefInput,
) -> Result<Head, Stop> {
    let version = root
        .open_manifest(input.native.as_deref(), Some(input.pinned))
        .await?;
    let role = match kind {
        RefKind::Main | RefKind::Live => Role::LiveHead,
        RefKind::Retired => Role::RetiredHead,
    };
    let stamp = source.admit(&version, role).map_err(|why| {
        let hint = match kind {
            RefKind::Retired => {
                "; this ref is retired, cleanup of the build that wrote the graph can remove it"
            }
            RefKind::Main | RefKind::Live => "",
        };
        Finding::unsupported(format!(
            "the head of {} (version {}) cannot be read: {why}{hint}",
            label(input.native.as_deref()),
            input.pinned
        ))
    })?;
    let scan = source.scan_head(&version, stamp).await?;
    Ok(Head::new(kind, input, stamp.get(), scan)?)
}

/// Positions of the commits above the fork version, by version, after the checks of step 1.
fn own_commits(input: &RefInput, commits: &[LegacyCommit]) -> Result<Vec<usize>, Finding> {
    let of = label(input.native.as_deref());
    let branch = input.native.as_deref().map(logical_name);
    let mut own: Vec<usize> = (0..commits.len())
        .filter(|at| commits[*at].version > input.parent_version)
        .collect();
    own.sort_by_key(|at| (commits[*at].version, &commits[*at].id));

    let foreign: Vec<_> = own
        .iter()
        .map(|at| &commits[*at])
        .filter(|c| c.branch.as_deref() != branch)
        .map(|c| {
            let named = c.branch.as_deref().unwrap_or("main");
            format!("{} (version {}, branch '{named}')", c.id, c.version)
        })
        .collect();
    if !foreign.is_empty() {
        return Err(Finding::corrupt(format!(
            "{of} forked at version {} and holds later commits that name another branch than '{}': {}",
            input.parent_version,
            branch.unwrap_or("main"),
            listed(foreign)
        )));
    }
    let above: Vec<_> = own
        .iter()
        .map(|at| &commits[*at])
        .filter(|c| c.version > input.pinned)
        .map(|c| format!("{} (version {})", c.id, c.version))
        .collect();
    if !above.is_empty() {
        return Err(Finding::corrupt(format!(
            "{of} has its head at version {}, but holds commits of later versions: {}",
            input.pinned,
            listed(above)
        )));
    }
    let odd: Vec<_> = own
        .iter()
        .map(|at| &commits[*at])
        .filter(|c| !ulids::is_canonical(&c.id))
        .map(|c| format!("'{}' (version {})", c.id, c.version))
        .collect();
    if !odd.is_empty() {
        return Err(Finding::unsupported(format!(
            "{of} holds commits whose ids are not canonical ULIDs, which the history cannot index: {}",
            listed(odd)
        )));
    }
    let twice: Vec<_> = own
        .windows(2)
        .map(|pair| (&commits[pair[0]], &commits[pair[1]]))
        .filter(|(a, b)| a.version == b.version)
        .map(|(a, b)| format!("{} and {} at version {}", a.id, b.id, a.version))
        .collect();
    if !twice.is_empty() {
        return Err(Finding::corrupt(format!(
            "{of} holds two commits at one version: {}",
            listed(twice)
        )));
    }
    Ok(own)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::finding::FindingCode;
    use crate::testing::{commit, ulid};

    fn input(native: Option<&str>, parent_version: u64) -> RefInput {
        RefInput {
            native: native.map(str::to_string),
            pinned: 5,
            parent: None,
            parent_version,
        }
    }

    #[test]
    fn own_commits_lie_above_the_fork_and_are_sorted() {
        let commits = [
            commit(3, Some("f"), 5),
            commit(1, None, 1),
            commit(2, Some("f"), 4),
        ];
        assert_eq!(own_commits(&input(Some("f"), 2), &commits).unwrap(), [2, 0]);
        let suffixed = format!("f.{}", ulid(77));
        assert_eq!(
            own_commits(&input(Some(&suffixed), 2), &commits).unwrap(),
            [2, 0]
        );
        assert!(
            own_commits(&input(Some("f"), 5), &commits)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn violations() {
        let mut odd = commit(2, None, 3);
        odd.id = "not-a-ulid".into();
        for (name, native, commits, code, words) in [
            (
                "other branch",
                Some("f"),
                vec![commit(1, Some("g"), 3)],
                FindingCode::LegacyLineageCorrupt,
                "branch 'g'",
            ),
            (
                "main's on a fork",
                Some("f"),
                vec![commit(1, None, 3)],
                FindingCode::LegacyLineageCorrupt,
                "branch 'main'",
            ),
            (
                "a branch called main on main",
                None,
                vec![commit(1, Some("main"), 3)],
                FindingCode::LegacyLineageCorrupt,
                "branch 'main'",
            ),
            (
                "above the head",
                None,
                vec![commit(1, None, 6)],
                FindingCode::LegacyLineageCorrupt,
                "head at version 5",
            ),
            (
                "id",
                None,
                vec![odd],
                FindingCode::UnsupportedSource,
                "'not-a-ulid' (version 3)",
            ),
            (
                "one version",
                None,
                vec![commit(1, None, 3), commit(2, None, 3)],
                FindingCode::LegacyLineageCorrupt,
                "at version 3",
            ),
        ] {
            let finding = own_commits(&input(native, 0), &commits).expect_err(name);
            assert_eq!(finding.code, code, "{name}");
            assert!(
                finding.message.contains(words),
                "{name}: {}",
                finding.message
            );
        }
    }
}
