#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::finding::FindingCode;
use crate::testing::{child, commit, commits, merged, ulid};
use proptest::prelude::*;

fn refused(heads: &[Head]) -> Finding {
    build(heads).expect_err("a finding")
}

#[test]
fn generations_over_forks_and_merges() {
    let c1 = commit(1, None, 1);
    let c2 = child(commit(2, None, 2), 1);
    let c3 = child(commit(3, Some("f"), 3), 2);
    let c4 = merged(child(commit(4, None, 3), 2), 3);
    let heads = [
        commits(None, 0, 3, &[c4, c2.clone(), c1.clone()]),
        commits(Some("f"), 2, 3, &[c1, c3, c2]),
    ];
    let graph = build(&heads).unwrap();
    let of = |n| graph.generations[ulid(n).as_str()];
    assert_eq!([of(1), of(2), of(3), of(4)], [0, 1, 2, 3]);
    assert!(graph.orphans.is_empty() && graph.absent.is_empty());
}

#[test]
fn absent_merged_parents_are_kept_and_start_at_generation_zero() {
    let heads = [commits(
        None,
        0,
        2,
        &[
            merged(commit(1, None, 1), 50),
            merged(child(commit(2, None, 2), 1), 40),
        ],
    )];
    let graph = build(&heads).unwrap();
    let ids: Vec<_> = graph.absent.iter().map(|u| u.to_string()).collect();
    assert_eq!(ids, [ulid(40), ulid(50)]);
    assert_eq!(graph.generations[ulid(1).as_str()], 0);
    let mut odd = commit(3, None, 1);
    odd.merged_parent = Some("lost".into());
    let finding = refused(&[commits(None, 0, 1, &[odd])]);
    assert_eq!(finding.code, FindingCode::UnsupportedSource);
    assert!(finding.message.contains("'lost'"));
}

#[test]
fn missing_first_parents_name_at_most_twenty() {
    let list: Vec<_> = (0..25)
        .map(|n| child(commit(n + 1, None, n + 1), 500 + n))
        .collect();
    let finding = refused(&[commits(None, 0, 25, &list)]);
    assert_eq!(finding.code, FindingCode::LegacyLineageIncomplete);
    assert!(finding.message.contains("25 commits") && finding.message.contains("and 5 more"));
}

#[test]
fn one_commit_has_one_owner() {
    let finding = refused(&[
        commits(None, 0, 1, &[commit(1, None, 1)]),
        commits(Some("f"), 1, 2, &[commit(1, Some("f"), 2)]),
    ]);
    assert_eq!(finding.code, FindingCode::LegacyLineageCorrupt);
    assert!(finding.message.contains(&ulid(1)) && finding.message.contains("'f'"));
}

#[test]
fn orphans_are_adopted_by_the_first_ref_that_shows_them() {
    let base = commit(1, None, 1);
    let (g2, g3) = (
        child(commit(2, Some("gone"), 2), 1),
        child(commit(3, Some("gone"), 3), 2),
    );
    let other = child(commit(4, Some("early"), 2), 1);
    let heads = [
        commits(None, 0, 1, std::slice::from_ref(&base)),
        commits(Some("a"), 3, 3, &[g3.clone(), base.clone(), g2.clone()]),
        commits(Some("b"), 2, 2, &[base.clone(), other]),
        commits(Some("c"), 3, 3, &[base.clone(), g2.clone(), g3]),
    ];
    let graph = build(&heads).unwrap();
    let told: Vec<_> = graph
        .orphans
        .iter()
        .map(|(branch, list)| {
            let list: Vec<_> = list
                .iter()
                .map(|o| (o.commit.created_at, o.adopter))
                .collect();
            (*branch, list)
        })
        .collect();
    assert_eq!(
        told,
        [("early", vec![(4, 2)]), ("gone", vec![(2, 1), (3, 1)])]
    );
    assert_eq!(graph.generations[ulid(3).as_str()], 2);

    let mut changed = g2.clone();
    changed.actor = Some("mallory".into());
    let finding = refused(&[
        commits(None, 0, 1, std::slice::from_ref(&base)),
        commits(Some("a"), 2, 2, &[base.clone(), g2]),
        commits(Some("b"), 2, 2, &[base, changed]),
    ]);
    assert_eq!(finding.code, FindingCode::LegacyLineageCorrupt);
    assert!(finding.message.contains("differing copies"));
}

#[test]
fn impossible_orphans() {
    let base = commit(1, None, 1);
    let finding = refused(&[
        commits(None, 0, 1, std::slice::from_ref(&base)),
        commits(Some("f"), 2, 2, &[base.clone(), commit(9, None, 2)]),
    ]);
    assert_eq!(finding.code, FindingCode::LegacyLineageCorrupt);
    assert!(finding.message.contains("main itself does not hold"));

    let mut odd = commit(2, Some("gone"), 2);
    odd.id = "odd".into();
    let finding = refused(&[
        commits(None, 0, 1, std::slice::from_ref(&base)),
        commits(Some("f"), 2, 2, &[base, odd]),
    ]);
    assert_eq!(finding.code, FindingCode::UnsupportedSource);
}

#[test]
fn cycles_name_their_members_only() {
    let heads = [commits(
        None,
        0,
        4,
        &[
            child(commit(1, None, 1), 3),
            child(commit(2, None, 2), 1),
            child(commit(3, None, 3), 2),
            child(commit(4, None, 4), 3),
        ],
    )];
    let finding = refused(&heads);
    assert_eq!(finding.code, FindingCode::LegacyLineageCorrupt);
    assert!(
        finding.message.contains("of 3 commits"),
        "{}",
        finding.message
    );
    assert!(!finding.message.contains(&ulid(4)));
    let own = refused(&[commits(None, 0, 1, &[child(commit(1, None, 1), 1)])]);
    assert!(own.message.contains("of 1 commits"));
}

#[test]
fn deep_histories_do_not_recurse() {
    let list: Vec<_> = (1..=200_000)
        .map(|n| {
            let c = commit(n, None, n);
            if n == 1 { c } else { child(c, n - 1) }
        })
        .collect();
    let heads = [commits(None, 0, 200_000, &list)];
    let graph = build(&heads).unwrap();
    assert_eq!(graph.generations[ulid(200_000).as_str()], 199_999);
}

proptest! {
    /// In any acyclic history a generation is one more than the greatest of its present parents.
    #[test]
    fn generations_follow_the_rule(
        shape in proptest::collection::vec((any::<prop::sample::Index>(), any::<Option<prop::sample::Index>>()), 1..40)
    ) {
        let list: Vec<_> = shape
            .iter()
            .enumerate()
            .map(|(at, (first, second))| {
                let n = at as u64 + 1;
                let mut c = commit(n, None, n);
                if at > 0 {
                    c = child(c, first.index(at) as u64 + 1);
                    if let Some(second) = second {
                        c = merged(c, second.index(at) as u64 + 1);
                    }
                }
                c
            })
            .collect();
        let mut shuffled = list.clone();
        shuffled.reverse();
        let heads = [commits(None, 0, list.len() as u64, &shuffled)];
        let graph = build(&heads).unwrap();
        for c in &list {
            let want = [&c.parent, &c.merged_parent]
                .into_iter()
                .flatten()
                .map(|p| graph.generations[p.as_str()] + 1)
                .max()
                .unwrap_or(0);
            prop_assert_eq!(graph.generations[c.id.as_str()], want);
        }
    }
}
