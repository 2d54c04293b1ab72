#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn addresses_are_checked() {
    let rows = |slots: std::ops::RangeInclusive<u16>, opens: bool| -> Vec<Commit> {
        let first = *slots.start();
        slots
            .map(|slot| {
                let nonce = if opens && slot == first {
                    7
                } else {
                    500 + u128::from(slot)
                };
                addressed(7, slot, nonce, None).commit
            })
            .collect()
    };
    let check = |key: ExtentKey, commits: &[Commit]| -> Result<()> {
        check_address(&key, &commits.iter().collect::<Vec<_>>())
    };
    let whole = ExtentKey::Whole(ulid(7));
    let range = ExtentKey::Range {
        block: ulid(7),
        start: 3,
        end: 5,
    };
    check(whole, &rows(3..=5, true)).unwrap();
    check(range, &rows(3..=5, false)).unwrap();
    let opaque = commit(A1, 1, None);
    check(ExtentKey::singleton(A1), std::slice::from_ref(&opaque)).unwrap();
    let legacy: Vec<Commit> = example_records()
        .into_iter()
        .take(2)
        .map(|r| r.commit)
        .collect();
    check(ExtentKey::LegacyData(0), &legacy).unwrap();

    let edit = |mut commits: Vec<Commit>, change: fn(&mut Vec<Commit>)| {
        change(&mut commits);
        commits
    };
    for (what, key, commits) in [
        ("no rows", whole, vec![]),
        ("does not open", whole, rows(3..=5, false)),
        ("opaque first", whole, vec![opaque.clone()]),
        ("gap", whole, edit(rows(3..=5, true), |c| drop(c.remove(1)))),
        ("other block", ExtentKey::Whole(ulid(8)), rows(3..=5, true)),
        ("short", range, rows(3..=4, false)),
        ("shifted", range, rows(4..=6, false)),
        (
            "two",
            ExtentKey::singleton(A1),
            vec![opaque.clone(), opaque.clone()],
        ),
        (
            "other name",
            ExtentKey::singleton("x"),
            vec![opaque.clone()],
        ),
        (
            "addressed singleton",
            ExtentKey::singleton(&block_id(7, 1, 2)),
            vec![addressed(7, 1, 2, None).commit],
        ),
        (
            "addressed legacy",
            ExtentKey::LegacyData(0),
            rows(1..=1, true),
        ),
        (
            "twice",
            ExtentKey::LegacyData(0),
            edit(legacy.clone(), |c| {
                c[1] = c[0].clone();
            }),
        ),
        (
            "two writers",
            ExtentKey::LegacyData(0),
            edit(legacy.clone(), |c| {
                c[1].native_branch = Some(FEATURE.into());
            }),
        ),
        (
            "not a chain",
            ExtentKey::LegacyData(0),
            edit(legacy.clone(), |c| c[1].parent_commit_id = None),
        ),
    ] {
        assert!(
            matches!(check(key, &commits), Err(Error::Internal(_))),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_failed_fetch_is_not_damage() {
    let (_dir, root) = root().await;
    let bytes = encoded(&example_records()).await;
    // The object is gone, only its end is held: the pages cannot be fetched.
    let held = bytes.slice(bytes.len() - 200..);
    let tail = Tail {
        bytes: held,
        size: bytes.len() as u64,
    };
    let failed = decode_lineage(&root, "__history/legacy/data/00000000.lance", tail).await;
    assert!(
        !matches!(failed, Err(Error::Internal(_)) | Ok(_)),
        "{failed:?}"
    );
}

#[tokio::test]
async fn equal_extents_are_accepted_and_others_refused() {
    let (_dir, root) = root().await;
    let key = ExtentKey::LegacyData(0);
    let records = &example_records()[..2];
    assert_eq!(
        create_extent(&root, &key, records).await.unwrap(),
        Stored::New
    );
    assert_eq!(
        create_extent(&root, &key, records).await.unwrap(),
        Stored::Equal
    );
    let refused = create_extent(&root, &key, &records[..1]).await;
    assert!(matches!(refused, Err(Error::Internal(_))));
    let mut other = records.to_vec();
    other[1].tables.reverse();
    let refused = create_extent(&root, &key, &other).await;
    assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("copies differ")));
    // Rows that do not belong there are not even written.
    let refused = create_extent(&root, &ExtentKey::singleton("x"), &records[..1]).await;
    assert!(matches!(refused, Err(Error::Internal(_))));
}
