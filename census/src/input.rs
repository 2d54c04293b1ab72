//! What a census is asked to read, and its bounds (`docs/format/legacy-manifest.md` 7.1, 8).

use std::collections::BTreeSet;

use ::graph::model::measure::{HISTORY_RELEASE_BYTES, MAX_RECORD_BYTES};
use ::graph::{Error, Result};
use legacy::LegacySource;
use ulid::Ulid;

use crate::finding::label;

/// One ref of the source, pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefInput {
    /// Native name; `None` is main.
    pub native: Option<String>,
    /// Head version the run reads and converts.
    pub pinned: u64,
    /// Native ref it forked from; `None` when that is main, and for main.
    pub parent: Option<String>,
    /// Version it forked at; 0 for main.
    pub parent_version: u64,
}

/// Input of a census.
#[derive(Debug, Clone)]
pub struct CensusInput {
    /// Attempt id of the intent; a resumed census needs the same one to plan identical bytes.
    pub attempt: Ulid,
    /// Refs to convert, main among them, in any order.
    pub live: Vec<RefInput>,
    /// Refs whose own commits are kept, schema-apply locks among them, in any order.
    pub retired: Vec<RefInput>,
    /// Reader of the source.
    pub source: LegacySource,
    /// Bounds.
    pub limits: Limits,
    /// Read the rows of every retained version even where manifests prove them. Plans the same objects.
    pub exhaustive: bool,
}

/// Bounds of a census (section 8). [`Limits::default`] are those of the format; tests lower them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Retired refs, schema-apply locks not counted.
    pub retired_refs: u64,
    /// Rows of one head.
    pub head_rows: u64,
    /// Decoded bytes of one head.
    pub head_bytes: u64,
    /// Rows scanned together by reading the versions that have to be read.
    pub cells: u64,
    /// Bytes of retained table rows and registrations.
    pub snapshot_bytes: u64,
    /// Commit fields of one record.
    pub commit_bytes: u64,
    /// One whole record.
    pub record_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            retired_refs: 1024,
            head_rows: 1_000_000,
            head_bytes: 64 << 20,
            cells: 1 << 33,
            snapshot_bytes: 1 << 30,
            commit_bytes: HISTORY_RELEASE_BYTES,
            record_bytes: MAX_RECORD_BYTES,
        }
    }
}

/// How far a census is, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Heads scanned.
    Heads {
        /// So far.
        read: u64,
        /// In all.
        total: u64,
    },
    /// Retained versions read, fresh forks counted once.
    Versions {
        /// So far.
        read: u64,
        /// In all.
        total: u64,
    },
}

/// What kind of ref it is. Orders as the census goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RefKind {
    Main,
    Live,
    Retired,
}

/// The refs in census order: main, live refs by name, retired refs by name.
pub(crate) fn ordered(input: &CensusInput) -> Result<Vec<(RefKind, RefInput)>> {
    let live = input.live.iter().map(|r| match r.native {
        None => (RefKind::Main, r.clone()),
        Some(_) => (RefKind::Live, r.clone()),
    });
    let retired = input.retired.iter().map(|r| (RefKind::Retired, r.clone()));
    let mut refs: Vec<_> = live.chain(retired).collect();
    refs.sort_by(|(a_kind, a), (b_kind, b)| (a_kind, &a.native).cmp(&(b_kind, &b.native)));

    let mut names = BTreeSet::new();
    for (kind, r) in &refs {
        let of = label(r.native.as_deref());
        if !names.insert(&r.native) {
            return Err(Error::internal(format!(
                "{of} is given to the census twice"
            )));
        }
        if *kind == RefKind::Retired && r.native.is_none() {
            return Err(Error::internal("main is given to the census as retired"));
        }
        if *kind == RefKind::Main && (r.parent.is_some() || r.parent_version != 0) {
            return Err(Error::internal("main is given to the census with a parent"));
        }
        if r.pinned < r.parent_version {
            return Err(Error::internal(format!(
                "{of} is pinned at version {}, below version {} it was forked at",
                r.pinned, r.parent_version
            )));
        }
    }
    if !names.contains(&None) {
        return Err(Error::internal("the census is not given main"));
    }
    Ok(refs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::testing;

    fn input(
        live: &[(Option<&str>, u64, u64)],
        retired: &[(Option<&str>, u64, u64)],
    ) -> CensusInput {
        let refs = |list: &[(Option<&str>, u64, u64)]| {
            list.iter()
                .map(|(native, pinned, parent_version)| RefInput {
                    native: native.map(str::to_string),
                    pinned: *pinned,
                    parent: None,
                    parent_version: *parent_version,
                })
                .collect()
        };
        CensusInput {
            attempt: Ulid::nil(),
            live: refs(live),
            retired: refs(retired),
            source: testing::source(),
            limits: Limits::default(),
            exhaustive: false,
        }
    }

    #[test]
    fn census_order() {
        let given = input(
            &[(Some("b"), 3, 1), (None, 9, 0), (Some("a.X"), 1, 1)],
            &[(Some("z"), 4, 2), (Some("A"), 4, 2)],
        );
        let names: Vec<_> = ordered(&given)
            .unwrap()
            .into_iter()
            .map(|(kind, r)| (kind, r.native.unwrap_or_default()))
            .collect();
        assert_eq!(
            names,
            [
                (RefKind::Main, String::new()),
                (RefKind::Live, "a.X".into()),
                (RefKind::Live, "b".into()),
                (RefKind::Retired, "A".into()),
                (RefKind::Retired, "z".into()),
            ]
        );
    }

    #[test]
    fn impossible_inputs_are_errors() {
        for (given, words) in [
            (input(&[(Some("a"), 1, 1)], &[]), "not given main"),
            (input(&[(None, 1, 0)], &[(None, 1, 0)]), "twice"),
            (input(&[(None, 1, 0), (None, 1, 0)], &[]), "twice"),
            (
                input(&[(None, 1, 0), (Some("a"), 2, 1)], &[(Some("a"), 2, 1)]),
                "twice",
            ),
            (input(&[(None, 3, 1)], &[]), "with a parent"),
            (
                input(&[(None, 3, 0), (Some("a"), 2, 3)], &[]),
                "below version 3",
            ),
        ] {
            let error = ordered(&given).expect_err(words).to_string();
            assert!(error.contains(words), "{error} does not say {words}");
        }
    }
}
