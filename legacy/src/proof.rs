//! What is known of the `table` rows of one version from those of another and from manifests alone
//! (`docs/format/legacy-manifest.md` 7.8).
//!
//! `__manifest` has stable row ids: an id is given once, kept when a row is rewritten or moved, and never
//! given again while versions follow each other. So when the live ids of a version are one unbroken range
//! `[first, next)`, a row is in it exactly when its id is in the range; and the row has the value it has in
//! a later version when no version in between wrote it. Both are read off manifests: rows, `next_row_id`
//! and the ids of the fragments a version added. Everything that does not fit is read instead.
//!
//! A merge insert hands the kept ids to the first rows it writes, whichever they are: among the rows it wrote,
//! an id does not tell which row it was before. Hence all of them are unsettled by it.
//!
//! [`Footprint`] is what the argument needs of one manifest; the functions over it are pure.

use std::collections::HashMap;
use std::ops::Range;

use graph::store::{ManifestFile, RowEffect};
use lance_table::format::{Fragment, RowIdMeta};
use lance_table::rowids::{RowIdSequence, read_row_ids};

use crate::row::Registration;

/// Most rows written by one version whose ids are kept; a publish writes a few and one a table.
const MOST_WRITTEN: usize = 4096;

/// What one manifest says about its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Lance version.
    pub version: u64,
    /// The live row ids, when they are exactly this range.
    pub span: Option<Range<u64>>,
    /// Ids of rows that may have another value, or may not have been there, in the version before, ascending;
    /// rows that are certainly new are not among them. `None` when it is not known how this version came from
    /// the one before.
    pub unsettled: Option<Vec<u64>>,
}

impl Footprint {
    /// A version of which nothing is known but its number.
    pub fn unknown(version: u64) -> Self {
        Self {
            version,
            span: None,
            unsettled: None,
        }
    }

    /// Whether every row of `below`, which must be the version before, is still there in this one under its
    /// id, and nothing else that `below` should have had.
    pub fn follows(&self, below: &Self) -> bool {
        let (Some(above), Some(span)) = (&self.span, &below.span) else {
            return false;
        };
        below.version.checked_add(1) == Some(self.version)
            && self.unsettled.is_some()
            && span.start == above.start
            && span.end <= above.end
    }

    /// Whether the values of `rows` in the version before are not settled by their values in this one.
    pub fn unsettles(&self, rows: &[(u64, Registration)]) -> bool {
        match &self.unsettled {
            None => true,
            Some(ids) => rows.iter().any(|(id, _)| ids.binary_search(id).is_ok()),
        }
    }
}

/// Takes footprints of one ref's manifests, oldest first.
#[derive(Debug, Default)]
pub struct FootprintReader {
    before: Option<Before>,
    /// Row ids of the fragments of the version before.
    fragments: HashMap<u64, Ids>,
}

/// The version before.
#[derive(Debug)]
struct Before {
    version: u64,
    max_fragment_id: Option<u32>,
    next_row_id: u64,
}

/// The row ids of one fragment.
#[derive(Debug, Clone)]
struct Ids {
    meta: RowIdMeta,
    /// Least id, those of deleted rows included; `None` for a fragment without rows.
    least: Option<u64>,
}

impl FootprintReader {
    /// The footprint of the next manifest.
    pub fn next(&mut self, file: &ManifestFile) -> Footprint {
        let manifest = &file.manifest;
        let known = self.take_ids(&manifest.fragments);
        let span = match (known, file.rows()) {
            (Some(_), Some(rows)) if manifest.uses_stable_row_ids() => {
                self.span(rows, manifest.next_row_id)
            }
            _ => None,
        };
        let unsettled = match (&self.before, known) {
            (
                Some(before),
                Some(Known {
                    kept_as_they_were: true,
                }),
            ) if before.version.checked_add(1) == Some(file.version)
                && before.next_row_id <= manifest.next_row_id =>
            {
                unsettled(file, before)
            }
            _ => None,
        };
        self.before = Some(Before {
            version: file.version,
            max_fragment_id: manifest.max_fragment_id,
            next_row_id: manifest.next_row_id,
        });
        Footprint {
            version: file.version,
            span,
            unsettled,
        }
    }

    /// Live ids are `rows` different ones below `next`; if none can be below `next - rows`, they are the range.
    fn span(&self, rows: u64, next: u64) -> Option<Range<u64>> {
        let first = next.checked_sub(rows)?;
        let within = |ids: &Ids| ids.least.is_none_or(|least| least >= first);
        self.fragments.values().all(within).then_some(first..next)
    }

    /// Remember the ids of these fragments and forget others'. `None` when some are not in the manifest.
    fn take_ids(&mut self, fragments: &[Fragment]) -> Option<Known> {
        let mut held = std::mem::take(&mut self.fragments);
        let mut kept_as_they_were = true;
        for fragment in fragments {
            let meta = fragment.row_id_meta.as_ref()?;
            let ids = match held.remove(&fragment.id) {
                Some(ids) if ids.meta == *meta => ids,
                other => {
                    kept_as_they_were &= other.is_none();
                    Ids {
                        meta: meta.clone(),
                        least: sequence(meta)?.row_id_range().map(|range| *range.start()),
                    }
                }
            };
            if self.fragments.insert(fragment.id, ids).is_some() {
                return None;
            }
        }
        Some(Known { kept_as_they_were })
    }
}

/// The ids of all fragments are known.
#[derive(Clone, Copy)]
struct Known {
    /// No fragment of the version before has other ids now.
    kept_as_they_were: bool,
}

fn sequence(meta: &RowIdMeta) -> Option<RowIdSequence> {
    match meta {
        RowIdMeta::Inline(bytes) => read_row_ids(bytes).ok(),
        RowIdMeta::External(_) => None,
    }
}

fn unsettled(file: &ManifestFile, before: &Before) -> Option<Vec<u64>> {
    match file.effect {
        RowEffect::None | RowEffect::Moved => return Some(Vec::new()),
        RowEffect::Written => {}
        RowEffect::Unknown => return None,
    }
    let mut ids = Vec::new();
    let added = file.manifest.fragments.iter().filter(|f| {
        before
            .max_fragment_id
            .is_none_or(|highest| f.id > u64::from(highest))
    });
    for fragment in added {
        ids.extend(sequence(fragment.row_id_meta.as_ref()?)?.iter());
        if ids.len() > MOST_WRITTEN {
            return None;
        }
    }
    // Only new ids: only new rows.
    if ids.iter().all(|id| *id >= before.next_row_id) {
        return Some(Vec::new());
    }
    ids.sort_unstable();
    Some(ids)
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
