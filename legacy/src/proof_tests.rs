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
