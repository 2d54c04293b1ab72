//! The census of fixture S (`docs/format/upgrade-protocol.md` 11), whole and damaged.

use std::sync::Mutex;

use census::{Finding, FindingCode, Progress, RefInput, census, check_budgets};
use fixtures::contract::Vintage;
use fixtures::damage::rows as damage;
use fixtures::fault_store::{Effect, Fault, FaultStore, Kind, seen_uri};
use fixtures::fixture_s::{EXPECTED_S, FixtureS, SpecS};
use fixtures::legacy_writer::{Layout, LegacyRoot};
use fixtures::tree::{copy_tree, restore, tree_changes, tree_digest};
use graph::history::legacy::{ChainKind, LegacyLayout, plan};
use graph::model::TableState;
use graph::store::{Root, RootOptions};
use tempfile::TempDir;
use ulid::Ulid;

use crate::common;

async fn fixture(spec: SpecS) -> (TempDir, FixtureS) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("root");
    (folder, FixtureS::create(&dir, spec).await.unwrap())
}

fn specs() -> [SpecS; 5] {
    let (eight, nine) = (SpecS::stamp_8(), SpecS::stamp_9());
    [
        eight,
        nine,
        SpecS {
            layout: Layout::Overwrite,
            ..nine
        },
        SpecS {
            vintage: Vintage::Bare,
            ..nine
        },
        SpecS::stamp_13(),
    ]
}

async fn refused(s: &FixtureS) -> Finding {
    let (input, _) = common::input(s.root.root()).await;
    let mut findings = common::take(s.root.root(), &input)
        .await
        .unwrap()
        .expect_err("a finding");
    assert_eq!(findings.len(), 1);
    findings.remove(0)
}

/// The name of version `v`'s Lance manifest.
fn manifest_name(v: u64) -> String {
    format!("{:020}.manifest", u64::MAX - v)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_chains_and_heads_at_both_stamps_and_layouts() {
    for spec in specs() {
        let (_folder, s) = fixture(spec).await;
        let before = tree_digest(s.root.path()).unwrap();
        let census = common::clean(s.root.root()).await;
        let after = tree_digest(s.root.path()).unwrap();
        assert_eq!(
            tree_changes(&before, &after),
            Vec::<String>::new(),
            "nothing is written"
        );

        let (c, want) = (&census.counts, spec.expected());
        assert_eq!(census.source_stamp, spec.stamp);
        assert_eq!(
            [
                c.live_refs,
                c.retired_refs,
                c.orphan_writers,
                c.legacy_commits
            ],
            [
                want.live_refs,
                want.retired_refs,
                want.orphan_writers,
                want.legacy_commits
            ]
        );
        assert_eq!(
            [c.bookkeeping_versions, c.absent_parents, c.schema_contents],
            [
                want.bookkeeping_versions,
                want.absent_parents,
                want.schema_contents
            ]
        );
        // 6 heads; main 4 versions, feature 3, gone and idle 1 each, fresh and child their head.
        assert_eq!(
            (c.census_reads, c.pre_genesis_versions),
            (6 + 4 + 3 + 1 + 1 + 2, 0)
        );

        let chains: Vec<_> = census
            .chains
            .iter()
            .map(|chain| {
                (
                    chain.kind,
                    chain.native.as_deref(),
                    chain.parent_version,
                    chain.head_version,
                )
            })
            .collect();
        assert_eq!(
            chains,
            [
                (ChainKind::Main, None, 0, 4),
                (ChainKind::Live, Some(s.feature.as_str()), 2, 5),
                (ChainKind::Retired, Some(s.gone.as_str()), 2, 3),
            ]
        );
        let generations: Vec<_> = (1..=6)
            .map(|n| {
                let records = census.chains.iter().flat_map(|chain| &chain.records);
                let found = records
                    .map(|r| &r.commit)
                    .find(|commit| commit.graph_commit_id == s.commit(n));
                found.unwrap().generation
            })
            .collect();
        assert_eq!(generations, [0, 1, 2, 3, 2, 3]);

        let mut heads: Vec<_> = census
            .heads
            .iter()
            .map(|h| {
                (
                    h.native.as_deref(),
                    h.pinned,
                    h.record.commit.graph_commit_id.as_str(),
                )
            })
            .collect();
        assert_eq!(heads[0].0, None, "main first");
        heads.sort_unstable();
        let mut want: Vec<_> = s
            .heads()
            .into_iter()
            .zip(s.head_commits())
            .map(|((native, version), (_, commit))| (native, version, commit))
            .collect();
        want.sort_unstable();
        assert_eq!(heads, want);

        let objects = plan(
            &census.chains,
            &LegacyLayout::CURRENT,
            Ulid::nil(),
            spec.stamp,
            &census.absent_parents,
        )
        .unwrap();
        assert_eq!(objects.data_files.len() as u64, EXPECTED_S.data_files);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_keep_the_alias_of_their_version_and_drops() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let census = common::clean(s.root.root()).await;
    let records = &census.chains[0].records;
    let keys = |at: usize| -> Vec<&str> {
        records[at]
            .tables
            .iter()
            .map(|t| t.table_key.as_str())
            .collect()
    };
    assert_eq!(keys(0), ["node:Draft", "node:Human", "edge:Knows"]);
    assert_eq!(keys(1), ["node:Draft", "node:Person", "edge:Knows"]);
    assert!(matches!(records[0].tables[0].state, TableState::Pinned(_)));
    assert!(matches!(
        records[1].tables[0].state,
        TableState::Dropped { dropped_at: 2, .. }
    ));
    for record in records {
        for pin in record.tables.iter().filter_map(|t| t.state.pin()) {
            assert_eq!(pin.metadata.last_linear_version, Some(pin.table_version));
            assert!(pin.manifest_version <= record.commit.graph_manifest_version);
        }
    }
    assert_eq!(
        records[2].commit.merged_parent_commit_id.as_deref(),
        Some(s.commit(3))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_damages() {
    use FindingCode::{
        LegacyLineageCorrupt as Corrupt, LegacyLineageIncomplete as Incomplete,
        LegacyRecordOverBound as OverBound, LegacyUncommittedChange as Uncommitted,
        UnsupportedSource as Unsupported,
    };
    let cases: [(&str, FindingCode, &str); 13] = [
        ("no head row", Corrupt, "is missing"),
        ("other head row", Corrupt, "names its earlier commit"),
        ("second commit", Corrupt, "two commits at one version"),
        ("parent absent", Incomplete, damage::FOREIGN_ULID),
        ("cycle", Corrupt, "in a circle"),
        ("over bound", OverBound, "above the limit of 262144"),
        ("lower case id", Unsupported, "canonical"),
        ("pin", Uncommitted, "pinned or dropped at version 5"),
        ("drop", Uncommitted, "edge:Knows"),
        (
            "rename",
            Uncommitted,
            "called node:Other instead of node:Person",
        ),
        ("rename on a fresh fork", Uncommitted, "called node:Other"),
        (
            "drop on a fresh fork",
            Uncommitted,
            "pinned or dropped at version 5",
        ),
        ("pending", Unsupported, "was started here and not finished"),
    ];
    let (folder, mut s) = fixture(SpecS::stamp_9()).await;
    let (dir, backup) = (s.root.path().to_path_buf(), folder.path().join("backup"));
    copy_tree(&dir, &backup).unwrap();
    for (name, code, words) in cases {
        restore(&backup, &dir).unwrap();
        let contract = s.root.contract.clone();
        s.root = LegacyRoot::open(&dir, contract, 77, &[&s.fresh])
            .await
            .unwrap();
        let (first, last, fresh) = (
            s.commit(1).to_string(),
            s.commit(4).to_string(),
            s.fresh.clone(),
        );
        let (person, knows) = (s.person.clone(), s.knows.clone());
        let root = &mut s.root;
        match name {
            "no head row" => drop(damage::no_head_row(root, None).await.unwrap()),
            "other head row" => drop(damage::other_head_row(root, None, &first).await.unwrap()),
            "second commit" => drop(damage::second_commit_at(root, None, &last).await.unwrap()),
            "parent absent" => drop(
                damage::first_parent_absent(root, None, &last)
                    .await
                    .unwrap(),
            ),
            "cycle" => drop(damage::cycle(root, None, &first, &last).await.unwrap()),
            "over bound" => drop(damage::over_bound_commit(root, None).await.unwrap()),
            "lower case id" => drop(damage::lower_case_commit(root, None).await.unwrap()),
            "pin" => {
                let pin = root.pin(None, &person).unwrap();
                damage::pin_without_commit(root, None, &person, &pin)
                    .await
                    .unwrap();
            }
            "drop" => damage::drop_without_commit(root, None, &knows)
                .await
                .unwrap(),
            "rename" => damage::rename_without_commit(root, None, &person, "Other")
                .await
                .unwrap(),
            "rename on a fresh fork" => {
                damage::rename_without_commit(root, Some(&fresh), &person, "Other")
                    .await
                    .unwrap();
            }
            "drop on a fresh fork" => {
                damage::drop_without_commit(root, Some(&fresh), &knows)
                    .await
                    .unwrap();
            }
            "pending" => drop(damage::pending(root, "{}").await.unwrap()),
            other => panic!("no such damage {other}"),
        }
        let finding = refused(&s).await;
        assert_eq!(finding.code, code, "{name}: {}", finding.message);
        assert!(
            finding.message.contains(words),
            "{name}: {}",
            finding.message
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_row_is_an_error_that_names_it() {
    let (_folder, mut s) = fixture(SpecS::stamp_8()).await;
    damage::unknown_object_type(&mut s.root, None)
        .await
        .unwrap();
    let (input, _) = common::input(s.root.root()).await;
    let error = common::take(s.root.root(), &input)
        .await
        .expect_err("an error");
    let text = error.to_string();
    assert!(
        text.contains("'settings:main'") && text.contains("version 5 of main"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_a_deleted_branch_are_an_orphaned_writer() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let whole = common::clean(s.root.root()).await;
    let archive = graph::refs::archive_key(&s.gone);
    std::fs::remove_file(s.root.path().join(archive)).unwrap();
    let census = common::clean(s.root.root()).await;
    let c = &census.counts;
    assert_eq!(
        (c.retired_refs, c.orphan_writers, c.legacy_commits),
        (1, 1, 6)
    );
    let orphan = census.chains.last().unwrap();
    assert_eq!(
        (orphan.kind, orphan.native.as_deref()),
        (ChainKind::Orphaned, Some("gone"))
    );
    assert_eq!((orphan.parent_version, orphan.head_version), (0, 3));
    let (now, before) = (&orphan.records[0], &whole.chains.last().unwrap().records[0]);
    assert_eq!(now.commit.native_branch.as_deref(), Some("gone"));
    assert_eq!(
        (&now.tables, now.commit.generation),
        (&before.tables, before.commit.generation)
    );
    let child = census
        .heads
        .iter()
        .find(|h| h.native.as_deref() == Some(&s.child));
    assert_eq!(child.unwrap().record.commit.graph_commit_id, s.commit(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_hold_exactly_and_before_any_version_is_read() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let store = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(store.wrapper()),
    };
    let root = Root::open(&seen_uri(s.root.path()), options).await.unwrap();
    let (mut input, _) = common::input(&root).await;
    let cells = common::take(&root, &input)
        .await
        .unwrap()
        .unwrap()
        .counts
        .census_cells;
    // The survey reads the manifest as a file, once; reading rows opens the version as well. Version 1 is read,
    // because version 2 renames a table.
    let old_version_read = |store: &FaultStore| {
        store
            .requests()
            .iter()
            .filter(|r| r.kind == Kind::Get && r.path.ends_with(&manifest_name(1)))
            .count()
            > 1
    };
    assert!(
        old_version_read(&store),
        "the counter sees reads of versions"
    );

    input.limits.cells = cells;
    assert!(common::take(&root, &input).await.unwrap().is_ok());
    for (cells, snapshot) in [(cells - 1, 1 << 30), (cells, 0)] {
        store.reset();
        input.limits.cells = cells;
        input.limits.snapshot_bytes = snapshot;
        let findings = common::take(&root, &input)
            .await
            .unwrap()
            .expect_err("over a bound");
        assert_eq!(findings[0].code, FindingCode::LegacyCensusOverBound);
        assert!(!old_version_read(&store), "{}", findings[0].message);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_budgets() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let root = s.root.root();
    let (mut input, locks) = common::input(root).await;
    assert_eq!(check_budgets(root, &input, locks).await.unwrap(), []);
    let rows = s.root.refs().map(|(_, state)| state.rows.len() as u64);
    let most = rows.max().unwrap();
    input.limits.head_rows = most;
    assert_eq!(check_budgets(root, &input, locks).await.unwrap(), []);
    input.limits.head_rows = 1;
    let all = check_budgets(root, &input, locks).await.unwrap();
    assert_eq!(all.len(), 6);
    assert_eq!(all.iter().filter(|v| v.retired).count(), 2);
    assert!(
        all[0].message.contains("the head of main (version 4)"),
        "{}",
        all[0].message
    );
    input.limits.head_rows = most;
    input.limits.head_bytes = 1;
    assert_eq!(check_budgets(root, &input, locks).await.unwrap().len(), 6);

    // Too many retired refs: nothing is opened, so refs that do not exist do no harm.
    let missing = RefInput {
        native: Some("missing".into()),
        ..input.retired[0].clone()
    };
    input.retired.push(missing);
    input.limits.retired_refs = 2;
    let many = check_budgets(root, &input, 0).await.unwrap();
    assert_eq!(many.len(), 1);
    assert!(
        many[0]
            .message
            .contains("3 retired refs, above the limit of 2")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_hold_commits_must_be_there() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let versions = s.root.path().join("__manifest").join("_versions");
    std::fs::remove_file(versions.join(manifest_name(3))).unwrap();
    let census = common::clean(s.root.root()).await;
    assert_eq!(
        census.counts.bookkeeping_versions,
        EXPECTED_S.bookkeeping_versions - 1
    );
    std::fs::remove_file(versions.join(manifest_name(2))).unwrap();
    let finding = refused(&s).await;
    assert_eq!(finding.code, FindingCode::LegacyLineageIncomplete);
    assert!(
        finding.message.contains("version 2 of commit"),
        "{}",
        finding.message
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_version_is_an_error_and_never_a_panic() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let manifest = s
        .root
        .path()
        .join("__manifest/_versions")
        .join(manifest_name(2));
    let whole = std::fs::read(&manifest).unwrap();
    let (input, _) = common::input(s.root.root()).await;
    for at in (0..whole.len()).step_by(whole.len() / 12 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        std::fs::write(&manifest, &bytes).unwrap();
        if let Err(error) = common::take(s.root.root(), &input).await {
            assert!(!error.to_string().is_empty());
        }
    }
    std::fs::write(&manifest, &whole[..20]).unwrap();
    let error = common::take(s.root.root(), &input)
        .await
        .expect_err("cut short");
    assert!(error.to_string().contains("version 2 of main"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_is_a_storage_error() {
    let (_folder, s) = fixture(SpecS::stamp_9()).await;
    let store = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(store.wrapper()),
    };
    let root = Root::open(&seen_uri(s.root.path()), options).await.unwrap();
    let (input, _) = common::input(&root).await;
    store.reset();
    store.arm(Fault::read(1, Effect::StopBefore));
    let error = common::take(&root, &input)
        .await
        .expect_err("the store fails");
    assert!(error.is_storage(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_reaches_its_totals() {
    let (_folder, s) = fixture(SpecS::stamp_8()).await;
    let (input, _) = common::input(s.root.root()).await;
    let seen = Mutex::new(Vec::new());
    let keep = |p: Progress| seen.lock().unwrap().push(p);
    census(s.root.root(), &input, &keep).await.unwrap().unwrap();
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.first(), Some(&Progress::Heads { read: 0, total: 6 }));
    assert!(seen.contains(&Progress::Heads { read: 6, total: 6 }));
    assert_eq!(
        seen.last(),
        Some(&Progress::Versions {
            read: 11,
            total: 11
        })
    );
}
