//! What the indexes of one table version need (`docs/format/maintenance.md` 2.1 steps 5 and 6, 2.6, 3). Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::declared::{DeclaredIndex, IndexKind};
use super::held::{HeldIndex, HeldKind, VectorStorage};

/// One table version as the decision sees it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Indexes the schema declares.
    pub declared: &'a [DeclaredIndex],
    /// Indexes it has.
    pub held: &'a [HeldIndex],
    /// Its fragments.
    pub fragments: &'a BTreeSet<u32>,
    /// Its live rows.
    pub rows: u64,
    /// Vectors that are not null, by column; needed of the columns that [`vector_columns`] names.
    pub vectors: &'a BTreeMap<String, u64>,
}

/// An index that is there and does not cover every fragment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fold {
    /// Its name.
    pub name: String,
    /// Its column.
    pub column: String,
    /// Fragments it does not cover.
    pub uncovered_fragments: usize,
}

/// An index that could not be built or brought up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// Column.
    pub property: String,
    /// Why, and what to do.
    pub reason: String,
}

/// The decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Rebuild these.
    pub fold: Vec<Fold>,
    /// Create these.
    pub create: Vec<DeclaredIndex>,
    /// Declared ones that cannot be built.
    pub unbuildable: Vec<Pending>,
    /// Held ones that lag and stay as they are.
    pub lagging: Vec<Pending>,
}

/// Declared indexes that no held index of the same kind serves.
fn missing<'a>(
    declared: &'a [DeclaredIndex],
    held: &'a [HeldIndex],
) -> impl Iterator<Item = &'a DeclaredIndex> {
    declared.iter().filter(|d| {
        !held
            .iter()
            .any(|h| h.column.as_ref() == Some(&d.column) && h.kind.declared() == Some(d.kind))
    })
}

/// The vector columns whose usable vectors [`needs`] has to know.
pub fn vector_columns<'a>(
    declared: &'a [DeclaredIndex],
    held: &'a [HeldIndex],
    fragments: &BTreeSet<u32>,
) -> BTreeSet<&'a str> {
    let create = missing(declared, held)
        .filter(|d| d.kind == IndexKind::Vector)
        .map(|d| d.column.as_str());
    let fold = held
        .iter()
        .filter(|h| matches!(h.kind, HeldKind::Vector(_)) && h.lag(fragments) > 0)
        .filter_map(|h| h.column.as_deref());
    create.chain(fold).collect()
}

/// Decide. An empty table gets no index and no rebuild: it would cover nothing, so the next run would find it
/// lagging again.
pub fn needs(facts: &Facts) -> Needs {
    let mut needs = Needs::default();
    if facts.rows == 0 {
        return needs;
    }
    let vectors = |column: &str| facts.vectors.get(column).copied().unwrap_or_default();
    for index in missing(facts.declared, facts.held) {
        if index.kind == IndexKind::Vector && vectors(&index.column) == 0 {
            needs.unbuildable.push(Pending {
                property: index.column.clone(),
                reason: format!(
                    "column {} holds no vector yet: a vector index is built once it does",
                    index.column
                ),
            });
        } else {
            needs.create.push(index.clone());
        }
    }
    for index in facts.held {
        let lag = index.lag(facts.fragments);
        if lag == 0 {
            continue;
        }
        let column = index.column.as_deref();
        match (&index.kind, column) {
            (HeldKind::Btree | HeldKind::Bitmap | HeldKind::LabelList, Some(column)) => {
                needs.fold.push(fold(index, column, lag));
            }
            (HeldKind::Vector(shape), Some(column)) => match shape.map(|s| s.storage) {
                None => needs.lagging.push(kept_vector(index, column, lag)),
                Some(storage) if vectors(column) < storage.least_vectors() => {
                    needs
                        .lagging
                        .push(untrainable(index, column, lag, storage, vectors(column)));
                }
                Some(_) => needs.fold.push(fold(index, column, lag)),
            },
            (HeldKind::FullText, _) => needs.lagging.push(full_text(index, lag)),
            // Another tool's index still answers: what it does not cover is scanned.
            _ => {}
        }
    }
    needs
}

fn fold(index: &HeldIndex, column: &str, lag: usize) -> Fold {
    Fold {
        name: index.name.clone(),
        column: column.to_string(),
        uncovered_fragments: lag,
    }
}

fn full_text(index: &HeldIndex, lag: usize) -> Pending {
    let property = index.column.clone().unwrap_or_else(|| index.name.clone());
    let what = match index.covered {
        None => "does not say which fragments it covers".to_string(),
        Some(_) => format!("does not cover {lag} fragments"),
    };
    Pending {
        property,
        reason: format!(
            "full-text index {} {what}; bring it up to date with: omnigraph rebuild-full-text-indexes",
            index.name
        ),
    }
}

fn kept_vector(index: &HeldIndex, column: &str, lag: usize) -> Pending {
    Pending {
        property: column.to_string(),
        reason: format!(
            "vector index {} on column {column} does not cover {lag} fragments and is kept: its kind cannot be built \
             again with the same parameters; rows it does not cover are searched without it",
            index.name
        ),
    }
}

fn untrainable(
    index: &HeldIndex,
    column: &str,
    lag: usize,
    storage: VectorStorage,
    vectors: u64,
) -> Pending {
    Pending {
        property: column.to_string(),
        reason: format!(
            "vector index {} does not cover {lag} fragments, and column {column} cannot train it: it holds {vectors} \
             vectors, the index needs {}",
            index.name,
            storage.least_vectors()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::VectorShape;
    use super::*;

    fn held(name: &str, column: &str, kind: HeldKind, covered: Option<&[u32]>) -> HeldIndex {
        HeldIndex {
            name: name.into(),
            column: Some(column.into()),
            kind,
            covered: covered.map(|c| c.iter().copied().collect()),
            segments: Vec::new(),
        }
    }

    fn declares(column: &str, kind: IndexKind) -> DeclaredIndex {
        DeclaredIndex {
            column: column.into(),
            kind,
        }
    }

    fn vector(storage: VectorStorage) -> HeldKind {
        HeldKind::Vector(Some(VectorShape { metric: 0, storage }))
    }

    fn decide(
        declared: &[DeclaredIndex],
        held: &[HeldIndex],
        rows: u64,
        vectors: &[(&str, u64)],
    ) -> Needs {
        let vectors = vectors
            .iter()
            .map(|(c, n)| (c.to_string(), *n))
            .collect::<BTreeMap<_, _>>();
        needs(&Facts {
            declared,
            held,
            fragments: &BTreeSet::from([1, 2]),
            rows,
            vectors: &vectors,
        })
    }

    fn folds(needs: &Needs) -> Vec<(&str, usize)> {
        needs
            .fold
            .iter()
            .map(|f| (f.name.as_str(), f.uncovered_fragments))
            .collect()
    }

    #[test]
    fn what_is_declared_and_missing_is_built() {
        let declared = [
            declares("__id", IndexKind::Btree),
            declares("name", IndexKind::FullText),
            declares("at", IndexKind::Vector),
        ];
        let there = [
            held("x", "__id", HeldKind::Btree, Some(&[1, 2])),
            // Another kind on the column does not serve.
            held("name_idx", "name", HeldKind::Btree, Some(&[1, 2])),
        ];
        let needs = decide(&declared, &there, 3, &[("at", 0)]);
        assert_eq!(needs.create, [declares("name", IndexKind::FullText)]);
        assert_eq!(needs.unbuildable[0].property, "at");
        let needs = decide(&declared, &there, 3, &[("at", 1)]);
        assert_eq!(needs.create.len(), 2);
        assert_eq!(decide(&declared, &[], 0, &[]), Needs::default());
    }

    #[test]
    fn what_lags_is_folded_unless_it_is_full_text() {
        let there = [
            held("even", "a", HeldKind::Btree, Some(&[1, 2, 9])),
            held("btree", "a", HeldKind::Btree, Some(&[1])),
            held("unknown", "b", HeldKind::Bitmap, None),
            held("text", "c", HeldKind::FullText, Some(&[2])),
            held("dark", "d", HeldKind::FullText, None),
            held("other", "e", HeldKind::Other, Some(&[])),
            held("flat", "f", vector(VectorStorage::Flat), Some(&[1])),
            held("pq", "f", vector(VectorStorage::Pq(8, 4)), Some(&[1])),
            held("hnsw", "f", HeldKind::Vector(None), Some(&[1])),
        ];
        let needs = decide(&[], &there, 3, &[("f", 255)]);
        assert_eq!(folds(&needs), [("btree", 1), ("unknown", 2), ("flat", 1)]);
        let lagging: Vec<_> = needs
            .lagging
            .iter()
            .map(|p| (p.property.as_str(), p.reason.as_str()))
            .collect();
        assert_eq!(lagging.len(), 4, "{lagging:#?}");
        assert!(lagging[0].1.contains("text does not cover 1 fragments"));
        assert!(lagging[0].1.contains("omnigraph rebuild-full-text-indexes"));
        assert!(
            lagging[1]
                .1
                .contains("dark does not say which fragments it covers")
        );
        assert!(
            lagging[2]
                .1
                .contains("column f cannot train it: it holds 255 vectors, the index needs 256")
        );
        assert!(lagging[3].1.contains("hnsw on column f"));
        let needs = decide(&[], &there, 3, &[("f", 256)]);
        assert_eq!(folds(&needs).last(), Some(&("pq", 1)));
        assert!(decide(&[], &there, 0, &[]).fold.is_empty());
    }

    #[test]
    fn only_vectors_that_matter_are_counted() {
        let declared = [
            declares("new", IndexKind::Vector),
            declares("id", IndexKind::Btree),
        ];
        let there = [
            held("lag", "old", vector(VectorStorage::Flat), Some(&[1])),
            held("even", "done", vector(VectorStorage::Flat), Some(&[1, 2])),
        ];
        let columns = vector_columns(&declared, &there, &BTreeSet::from([1, 2]));
        assert_eq!(columns, BTreeSet::from(["new", "old"]));
    }
}
