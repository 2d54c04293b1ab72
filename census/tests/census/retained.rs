//! Retained versions of every older stamp below a stamp-9 head (`docs/format/legacy-manifest.md` 3.2, 5, 12).

use census::FindingCode;
use fixtures::contract::Vintage;
use fixtures::fault_store::{FaultStore, Kind, seen_uri};
use fixtures::fixture_s::contract_s;
use fixtures::legacy_writer::{CommitSpec, Layout, LegacyRoot, Publish, RootSpec, Route};
use graph::store::{Root, RootOptions};
use tempfile::TempDir;

use crate::common;

/// A root of release 0.9.0: versions 1 (genesis) and 2 (config) unstamped, 3 stamped 6, then a load.
async fn born_unstamped() -> (TempDir, LegacyRoot) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("root");
    let (contract, [_, person, knows]) = contract_s(Vintage::Bare).unwrap();
    let spec = RootSpec {
        stamp: None,
        seed: 60,
        layout: Layout::MergeInsert,
        contract,
    };
    let mut root = LegacyRoot::begin(&dir, spec).await.unwrap();
    let (person_1, knows_1) = (
        root.create_table(&person).await.unwrap(),
        root.create_table(&knows).await.unwrap(),
    );
    let genesis = Publish::committed(CommitSpec::default())
        .register(&person)
        .register(&knows)
        .pin(&person, &person_1)
        .pin(&knows, &knows_1);
    root.create_manifest(None, genesis).await.unwrap();
    root.set_legacy_config().await.unwrap();
    root.stamp_in_place(None, 6).await.unwrap();
    let person_2 = root.append(&person, &person_1, 3).await.unwrap();
    let load = Publish::committed(CommitSpec::by("ada")).pin(&person, &person_2);
    root.publish(None, load).await.unwrap();
    (folder, root)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_carried_from_unstamped_to_stamp_9() {
    let (_folder, mut root) = born_unstamped().await;
    root.compact_manifest(None).await.unwrap();
    let survey = root.fork("survey", None).await.unwrap();
    let fork = root.state(Some(&survey)).unwrap().version;
    root.run_route(Route::TO_7, &[&survey]).await.unwrap();
    root.run_route(Route::TO_8, &[&survey]).await.unwrap();
    root.stamp_in_place(Some(&survey), 9).await.unwrap();
    root.stamp_in_place(None, 9).await.unwrap();
    let (_, [_, _, knows]) = contract_s(Vintage::Bare).unwrap();
    let pin = root.pin(None, &knows).unwrap();
    let next = root.append(&knows, &pin, 1).await.unwrap();
    let load = Publish::committed(CommitSpec::by("bo")).pin(&knows, &next);
    root.publish(None, load).await.unwrap();
    let head = root.state(None).unwrap().version;

    let census = common::clean(root.root()).await;
    assert_eq!(census.source_stamp, 9);
    let versions: Vec<_> = census.chains[0]
        .records
        .iter()
        .map(|r| r.commit.graph_manifest_version)
        .collect();
    assert_eq!(versions, [1, 4, head]);
    // All others of main, and on the fork two conversions and the stamp advance.
    let fork_versions = root.state(Some(&survey)).unwrap().version - fork;
    assert_eq!(fork_versions, 3);
    assert_eq!(census.counts.bookkeeping_versions, head - 3 + fork_versions);
    assert_eq!(census.counts.pre_genesis_versions, 0);
    assert_eq!(census.chains.len(), 1, "the fork wrote no commit");
    let forked = &census.heads[1];
    assert_eq!(forked.record.commit.graph_manifest_version, 4);
    let clocks: Vec<_> = census.chains[0]
        .records
        .iter()
        .map(|r| {
            let pins = r.tables.iter().filter_map(|t| t.state.pin());
            pins.map(|p| p.manifest_version).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(clocks, [vec![1, 1], vec![4, 1], vec![4, head]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unstamped_version_above_two_is_refused() {
    let (_folder, mut root) = born_unstamped().await;
    root.run_route(Route::TO_7, &[]).await.unwrap();
    root.run_route(Route::TO_8, &[]).await.unwrap();
    root.restamp(None, None).await.unwrap();
    let unstamped = root.state(None).unwrap().version;
    root.restamp(None, Some(8)).await.unwrap();
    let (input, _) = common::input(root.root()).await;
    let findings = common::take(root.root(), &input)
        .await
        .unwrap()
        .expect_err("refused");
    assert_eq!(findings[0].code, FindingCode::UnsupportedSource);
    let message = &findings[0].message;
    assert!(
        message.contains(&format!("version {unstamped} of main")) && message.contains("no stamp"),
        "{message}"
    );
}

/// Versions share their fragments, and a fragment is read once however many versions show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_grow_with_the_history_and_not_with_its_square() {
    let (_folder, mut root) = born_unstamped().await;
    root.run_route(Route::TO_7, &[]).await.unwrap();
    root.run_route(Route::TO_8, &[]).await.unwrap();
    for _ in 0..30 {
        root.publish(None, Publish::committed(CommitSpec::by("ada")))
            .await
            .unwrap();
    }
    let store = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(store.wrapper()),
    };
    let seen = Root::open(&seen_uri(root.path()), options).await.unwrap();
    let (input, _) = common::input(&seen).await;
    store.reset();
    let census = common::take(&seen, &input).await.unwrap().unwrap();
    assert_eq!(census.counts.legacy_commits, 32);
    let reads = store
        .requests()
        .iter()
        .filter(|r| r.kind == Kind::Get && r.path.contains("__manifest/data/"))
        .count() as u64;
    // Each version brings one data file and changes the deletions of another; Lance looks at the first
    // one of every version it opens. Reading whole versions would take more than 500 reads.
    let versions = census.counts.census_reads;
    assert!(
        reads <= 6 * versions,
        "{reads} reads of data files for {versions} versions"
    );
}
