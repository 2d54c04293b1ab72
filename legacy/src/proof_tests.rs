#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use graph::model::TableIdentity;

fn footprint(version: u64, span: Option<Range<u64>>, unsettled: Option<&[u64]>) -> Footprint {
    Footprint {
        version,
        span,
        unsettled: unsettled.map(<[u64]>::to_vec),
    }
}

fn rows(ids: &[u64]) -> Vec<(u64, Registration)> {
    let of = |id: &u64| Registration {
        identity: TableIdentity::new(id + 1, 1).unwrap(),
        table_key: format!("node:T{id}"),
        table_path: format!("nodes/{id}"),
    };
    ids.iter().map(|id| (*id, of(id))).collect()
}

#[test]
fn a_version_follows_the_one_before_or_it_does_not() {
    let above = || footprint(8, Some(3..20), Some(&[4]));
    for (name, above, below, want) in [
        ("rows added", above(), footprint(7, Some(3..18), None), true),
        ("none added", above(), footprint(7, Some(3..20), None), true),
        (
            "a version between is gone",
            above(),
            footprint(6, Some(3..18), None),
            false,
        ),
        (
            "the same version",
            above(),
            footprint(8, Some(3..18), None),
            false,
        ),
        (
            "rows removed in between",
            above(),
            footprint(7, Some(2..18), None),
            false,
        ),
        (
            "ids given back",
            above(),
            footprint(7, Some(3..21), None),
            false,
        ),
        ("holes below", above(), footprint(7, None, None), false),
        (
            "holes above",
            footprint(8, None, Some(&[])),
            footprint(7, Some(3..18), None),
            false,
        ),
        (
            "unknown step",
            footprint(8, Some(3..20), None),
            footprint(7, Some(3..18), None),
            false,
        ),
        ("nothing known", above(), Footprint::unknown(7), false),
        (
            "overflow",
            above(),
            footprint(u64::MAX, Some(3..18), None),
            false,
        ),
    ] {
        assert_eq!(above.follows(&below), want, "{name}");
    }
}

#[test]
fn only_table_rows_among_the_written_ones_matter() {
    for (unsettled, ids, want) in [
        (Some(&[4_u64, 9][..]), &[4_u64, 5][..], true),
        (Some(&[4, 9]), &[5, 6], false),
        (Some(&[4, 9]), &[9], true),
        (Some(&[]), &[1, 2, 3], false),
        (Some(&[4, 9]), &[], false),
        (None, &[1], true),
    ] {
        let above = footprint(8, Some(0..20), unsettled);
        assert_eq!(above.unsettles(&rows(ids)), want, "{unsettled:?} {ids:?}");
    }
}

/// Manifests of one ref: fragments as id and row ids, deleted rows, next row id.
mod manifests {
    use std::sync::Arc;

    use arrow_schema::Schema as ArrowSchema;
    use graph::store::{ManifestFile, RowEffect};
    use lance_core::datatypes::Schema;
    use lance_table::feature_flags::FLAG_STABLE_ROW_IDS;
    use lance_table::format::{
        DataStorageFormat, DeletionFile, DeletionFileType, ExternalFile, Fragment, Manifest,
        RowIdMeta,
    };
    use lance_table::rowids::{RowIdSequence, write_row_ids};

    use super::*;

    #[derive(Clone)]
    pub struct Piece {
        pub id: u64,
        pub ids: Vec<u64>,
        pub deleted: usize,
    }

    pub fn piece(id: u64, ids: &[u64], deleted: usize) -> Piece {
        Piece {
            id,
            ids: ids.to_vec(),
            deleted,
        }
    }

    pub fn file(version: u64, effect: RowEffect, next: u64, pieces: &[Piece]) -> ManifestFile {
        let fragments: Vec<Fragment> = pieces
            .iter()
            .map(|p| {
                let mut fragment = Fragment::new(p.id);
                fragment.physical_rows = Some(p.ids.len());
                let ids = RowIdSequence::from(p.ids.as_slice());
                fragment.row_id_meta = Some(RowIdMeta::Inline(write_row_ids(&ids).into()));
                fragment.deletion_file = (p.deleted > 0).then_some(DeletionFile {
                    read_version: 1,
                    id: 1,
                    file_type: DeletionFileType::Array,
                    num_deleted_rows: Some(p.deleted),
                    base_id: None,
                });
                fragment
            })
            .collect();
        let mut manifest = Manifest::new(
            Schema::try_from(&ArrowSchema::empty()).unwrap(),
            Arc::new(fragments),
            DataStorageFormat::default(),
            Default::default(),
        );
        manifest.version = version;
        manifest.next_row_id = next;
        manifest.reader_feature_flags |= FLAG_STABLE_ROW_IDS;
        manifest.max_fragment_id = pieces.iter().map(|p| p.id as u32).max();
        ManifestFile {
            native: None,
            version,
            manifest,
            effect,
        }
    }

    /// The footprint of the last of two manifests.
    fn second(first: &ManifestFile, then: &ManifestFile) -> Footprint {
        let mut reader = FootprintReader::default();
        reader.next(first);
        reader.next(then)
    }

    /// Version 5: ids 0 to 3, the row with id 3 is a branch head.
    fn five() -> ManifestFile {
        file(5, RowEffect::Written, 4, &[piece(1, &[0, 1, 2, 3], 0)])
    }

    #[test]
    fn what_a_version_did_to_the_rows_before() {
        let old = || piece(1, &[0, 1, 2, 3], 1);
        let kept = || piece(1, &[0, 1, 2, 3], 0);
        let (written, moved, none, unknown) = (
            RowEffect::Written,
            RowEffect::Moved,
            RowEffect::None,
            RowEffect::Unknown,
        );
        /// Name, manifest, span, what it unsettled.
        type Told<'a> = (&'a str, ManifestFile, Option<Range<u64>>, Option<&'a [u64]>);
        let cases: [Told; 11] = [
            (
                "a publish: a row kept and two new ones, any of which may be the kept one",
                file(6, written, 6, &[old(), piece(2, &[3, 4, 5], 0)]),
                Some(0..6),
                Some(&[3, 4, 5]),
            ),
            (
                "new rows alone",
                file(6, written, 6, &[kept(), piece(2, &[4, 5], 0)]),
                Some(0..6),
                Some(&[]),
            ),
            (
                "kept and new rows in two fragments",
                file(
                    6,
                    written,
                    6,
                    &[old(), piece(2, &[3], 0), piece(3, &[4, 5], 0)],
                ),
                Some(0..6),
                Some(&[3, 4, 5]),
            ),
            (
                "a compaction",
                file(6, moved, 4, &[piece(2, &[0, 1, 2, 3], 0)]),
                Some(0..4),
                Some(&[]),
            ),
            (
                "metadata",
                file(6, none, 4, &[kept()]),
                Some(0..4),
                Some(&[]),
            ),
            (
                "an overwrite: new ids from where the old ones ended",
                file(6, unknown, 8, &[piece(2, &[4, 5, 6, 7], 0)]),
                Some(4..8),
                None,
            ),
            ("a row removed", file(6, unknown, 4, &[old()]), None, None),
            (
                "a row rewritten under a new id",
                file(6, written, 5, &[old(), piece(2, &[4], 0)]),
                None,
                Some(&[]),
            ),
            (
                "a version between is gone",
                file(7, written, 6, &[old(), piece(2, &[3, 4, 5], 0)]),
                Some(0..6),
                None,
            ),
            (
                "ids taken back",
                file(6, written, 3, &[piece(1, &[0, 1, 2], 0)]),
                Some(0..3),
                None,
            ),
            (
                "other ids under the same fragment",
                file(6, written, 4, &[piece(1, &[3, 1, 2, 0], 0)]),
                Some(0..4),
                None,
            ),
        ];
        for (name, then, span, unsettled) in cases {
            let found = second(&five(), &then);
            assert_eq!(found.version, then.version, "{name}");
            assert_eq!(found.span, span, "{name}");
            assert_eq!(found.unsettled.as_deref(), unsettled, "{name}");
        }
    }

    #[test]
    fn the_first_manifest_follows_nothing() {
        let first = FootprintReader::default().next(&five());
        assert_eq!((first.span, first.unsettled), (Some(0..4), None));
    }

    #[test]
    fn nothing_is_known_without_stable_ids_or_counts() {
        let mut unstable = five();
        unstable.manifest.reader_feature_flags = 0;
        let mut uncounted = five();
        let fragments = Arc::make_mut(&mut uncounted.manifest.fragments);
        fragments[0].physical_rows = None;
        let mut outside = five();
        let fragments = Arc::make_mut(&mut outside.manifest.fragments);
        fragments[0].row_id_meta = Some(RowIdMeta::External(ExternalFile {
            path: "ids".into(),
            offset: 0,
            size: 1,
        }));
        let mut damaged = five();
        let fragments = Arc::make_mut(&mut damaged.manifest.fragments);
        fragments[0].row_id_meta = Some(RowIdMeta::Inline(vec![255; 7].into()));
        for file in [unstable, uncounted, outside, damaged] {
            assert_eq!(FootprintReader::default().next(&file).span, None);
        }
    }

    #[test]
    fn too_many_written_rows_are_not_kept() {
        let many: Vec<u64> = (3..3 + MOST_WRITTEN as u64 + 1).collect();
        let next = *many.last().unwrap() + 1;
        let then = file(
            6,
            RowEffect::Written,
            next,
            &[piece(1, &[0, 1, 2, 3], 1), piece(2, &many, 0)],
        );
        assert_eq!(second(&five(), &then).unsettled, None);
    }
}
