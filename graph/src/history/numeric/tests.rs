#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::history::legacy::tests::write_example;
use crate::history::legacy::{Chain, LegacyLayout, plan, write};
use crate::history::testing::{A1, B2, C3, FEATURE, commit, root, ulid};
use crate::model::HistoryRecord;

fn none(_: &str) -> Option<ForkPoint> {
    None
}

/// `exact ID`, `nearest ID`, `not found` or `pre-genesis`.
async fn ask(
    reader: &HistoryReader,
    native: Option<&str>,
    version: u64,
    fenced: bool,
    forks: &(dyn Fn(&str) -> Option<ForkPoint> + Sync),
) -> String {
    match reader
        .numeric_record(native, version, fenced, forks, None)
        .await
        .unwrap()
        .unwrap()
    {
        Served::Exact(r) => format!("exact {}", r.commit.graph_commit_id),
        Served::Nearest(r) => format!("nearest {}", r.commit.graph_commit_id),
        Served::NotFound(_) => "not found".into(),
        Served::PreGenesis => "pre-genesis".into(),
    }
}

#[tokio::test]
async fn the_worked_example() {
    let (_dir, root) = root().await;
    let reader = HistoryReader::new(root.clone());
    assert_eq!(
        reader.numeric(None, 1, false, &none, None).await.unwrap(),
        None
    );
    write_example(&root).await;
    reader.clear();
    for (native, version, fenced, expected) in [
        (None, 1, false, format!("exact {A1}")),
        (None, 2, false, format!("exact {B2}")),
        (None, 3, true, format!("nearest {B2}")),
        (None, 4, true, format!("nearest {B2}")),
        (None, 3, false, "not found".into()),
        (None, 5, true, "not found".into()),
        (None, 0, false, "pre-genesis".into()),
        (Some(FEATURE), 3, false, format!("exact {C3}")),
        (Some(FEATURE), 2, false, format!("nearest {B2}")),
        (Some(FEATURE), 4, true, "not found".into()),
        (Some("gone"), 2, false, "not found".into()),
    ] {
        assert_eq!(
            ask(&reader, native, version, fenced, &none).await,
            expected,
            "{native:?} {version}"
        );
    }
    let found = reader
        .numeric(None, 9, false, &none, None)
        .await
        .unwrap()
        .unwrap()
        .into_found();
    assert!(matches!(found, Err(Error::NotFound(_))));
}

/// A chain of one record a version, `(version, id number)`.
fn chain(
    kind: ChainKind,
    native: Option<&str>,
    parent: Option<&str>,
    parent_version: u64,
    head_version: u64,
    commits: &[(u64, u128)],
) -> Chain {
    let records = commits
        .iter()
        .map(|(version, n)| {
            let mut commit = commit(&ulid(*n).to_string(), *version, None);
            commit.native_branch = native.map(str::to_string);
            Arc::new(HistoryRecord {
                commit,
                tables: Vec::new(),
            })
        })
        .collect();
    Chain {
        kind,
        native: native.map(str::to_string),
        parent: parent.map(str::to_string),
        parent_version,
        head_version,
        records,
    }
}

#[tokio::test]
async fn forks_of_forks_idle_refs_and_orphans() {
    let (_dir, root) = root().await;
    let orphaned = "lost.01K6R2Q0Y0DDDDDDDDDDDDDDD4";
    let chains = [
        chain(ChainKind::Main, None, None, 0, 9, &[(2, 2), (4, 4), (7, 7)]),
        chain(
            ChainKind::Live,
            Some("deep"),
            Some("idle"),
            6,
            12,
            &[(8, 28), (11, 31)],
        ),
        chain(
            ChainKind::Retired,
            Some("old"),
            Some("deep"),
            9,
            10,
            &[(10, 40)],
        ),
        chain(
            ChainKind::Orphaned,
            Some("lost"),
            None,
            0,
            8,
            &[(5, 55), (8, 58)],
        ),
        chain(
            ChainKind::Live,
            Some("kept"),
            Some(orphaned),
            6,
            9,
            &[(9, 69)],
        ),
    ];
    let attempt = ulid(1);
    let planned = plan(
        &chains,
        &LegacyLayout::CURRENT,
        attempt,
        9,
        &BTreeSet::new(),
    )
    .unwrap();
    write(&root, &planned, &mut ()).await.unwrap();
    let reader = HistoryReader::new(root);
    let forks = |name: &str| match name {
        "idle" => Some(ForkPoint {
            parent: None,
            version: 5,
        }),
        "a" => Some(ForkPoint {
            parent: Some("b".into()),
            version: 3,
        }),
        "b" => Some(ForkPoint {
            parent: Some("a".into()),
            version: 3,
        }),
        _ => None,
    };
    let exact = |n: u128| format!("exact {}", ulid(n));
    let nearest = |n: u128| format!("nearest {}", ulid(n));
    for (native, version, expected) in [
        (None, 1, "pre-genesis".to_string()),
        (None, 2, exact(2)),
        (None, 3, nearest(2)),
        (None, 9, nearest(7)),
        (Some("deep"), 12, nearest(31)),
        (Some("deep"), 11, exact(31)),
        (Some("deep"), 10, nearest(28)),
        // Above the fork, before the first commit: the parent, bounded by each fork point.
        (Some("deep"), 7, nearest(4)),
        (Some("deep"), 6, nearest(4)),
        (Some("deep"), 1, "pre-genesis".into()),
        (Some("idle"), 9, nearest(4)),
        (Some("old"), 10, exact(40)),
        (Some("old"), 9, nearest(28)),
        (Some("lost"), 5, exact(55)),
        (Some("lost"), 7, nearest(55)),
        (Some("lost"), 99, nearest(58)),
        (Some("lost"), 4, "not found".into()),
        // Under the logical name of a suffixed ref that is gone.
        (Some(orphaned), 8, exact(58)),
        (Some("kept"), 9, exact(69)),
        (Some("kept"), 8, nearest(55)),
        (Some("kept"), 4, "not found".into()),
        (Some("never"), 4, "not found".into()),
    ] {
        assert_eq!(
            ask(&reader, native, version, false, &forks).await,
            expected,
            "{native:?} {version}"
        );
    }
    let cycle = reader.numeric(Some("a"), 3, false, &forks, None).await;
    assert!(matches!(cycle, Err(Error::Internal(ref m)) if m.contains("cycle")));
    assert!(reader.writer_head(Some("lost")).await.unwrap().is_none());
}
