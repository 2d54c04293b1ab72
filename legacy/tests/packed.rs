//! Packed versions as a stamp-13 build writes them: heads, retained versions, contract rows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use fixtures::contract::Contract;
use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::legacy_writer::{LegacyRoot, LegacyRow};
use graph::store::ManifestVersion;
use legacy::{AdmittedStamp, LegacySource, Role, SchemaReader, VersionSchema, read_contract};
use tempfile::TempDir;

async fn fixture() -> (TempDir, FixtureS) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("root");
    let s = FixtureS::create(&dir, SpecS::stamp_13()).await.unwrap();
    (folder, s)
}

async fn retained(root: &LegacyRoot, version: u64) -> (ManifestVersion, AdmittedStamp) {
    let opened = root
        .root()
        .open_manifest(None, Some(version))
        .await
        .unwrap();
    let stamp = LegacySource::Stamp13
        .admit(&opened, Role::Retained)
        .unwrap();
    (opened, stamp)
}

async fn schemas(root: &LegacyRoot, versions: &[u64]) -> Result<Vec<VersionSchema>, String> {
    let mut group = Vec::new();
    for version in versions {
        group.push(retained(root, *version).await);
    }
    match SchemaReader::default().read(&group).await {
        (found, None) => Ok(found.into_iter().map(|v| v.schema).collect()),
        (_, Some(error)) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn a_head_is_its_rows_as_they_stand() {
    let (_folder, s) = fixture().await;
    let state = s.root.state(None).unwrap();
    let (opened, _) = retained(&s.root, 4).await;
    let stamp = LegacySource::Stamp13
        .admit(&opened, Role::LiveHead)
        .unwrap();
    let scan = LegacySource::Stamp13
        .scan_head(&opened, stamp)
        .await
        .unwrap();
    assert_eq!(scan.rows, state.rows.len() as u64);
    let of = |kind: &str| state.rows.iter().filter(|r| r.object_type == kind).count();
    assert_eq!(
        [
            scan.registrations.len(),
            scan.pins.len(),
            scan.tombstones.len(),
            scan.commits.len(),
            scan.heads.len()
        ],
        [
            of("table"),
            of("table_version"),
            of("table_tombstone"),
            of("graph_commit"),
            of("graph_head")
        ]
    );
    let last_linear = scan
        .pins
        .values()
        .filter_map(|p| p.metadata.last_linear_version);
    assert_eq!(last_linear.count(), 0);
    let contract = scan.contract.unwrap();
    assert_eq!(contract.head(), &s.root.contract.head());
    assert_eq!(contract.contract().source, s.root.contract.source());
    assert_eq!(contract.contract().ir, s.root.contract.ir_text());
}

#[tokio::test]
async fn each_version_has_its_own_contract_and_equal_ones_are_read_once() {
    let (_folder, s) = fixture().await;
    let found = schemas(&s.root, &[1, 2, 3, 4]).await.unwrap();
    let contract = |at: usize| found[at].contract.as_ref().unwrap();
    assert_ne!(contract(0), contract(1));
    assert!(contract(0).contract().source.contains("Draft"));
    assert!(Arc::ptr_eq(contract(1), contract(2)) && Arc::ptr_eq(contract(2), contract(3)));
    assert_eq!(contract(3).contract().ir, s.root.contract.ir_text());
    let keys = |at: usize| -> Vec<&str> {
        let of = &found[at].registrations;
        of.iter().map(|r| r.table_key.as_str()).collect()
    };
    assert_eq!(keys(0), ["node:Draft", "node:Human", "edge:Knows"]);
    assert_eq!(keys(3), ["node:Draft", "node:Person", "edge:Knows"]);
}

#[tokio::test]
async fn older_shapes_have_no_contract() {
    let (_folder, mut s) = fixture().await;
    let mut versions = Vec::new();
    for stamp in [12, 9, 13] {
        versions.push(s.root.restamp(None, Some(stamp)).await.unwrap());
    }
    let found = schemas(&s.root, &versions).await.unwrap();
    let before = schemas(&s.root, &[4]).await.unwrap().remove(0);
    for schema in found {
        assert_eq!(schema.contract, None);
        assert_eq!(schema.registrations, before.registrations);
    }
    for version in versions {
        let (opened, stamp) = retained(&s.root, version).await;
        assert_eq!(read_contract(&opened, stamp).await.unwrap(), None);
    }
}

/// A version whose contract row was changed by `change`, as a retained version and as a head.
async fn refused(change: impl FnOnce(&mut Vec<LegacyRow>, &Contract)) -> [String; 3] {
    let (_folder, mut s) = fixture().await;
    let contract = s.root.contract.clone();
    let version = s
        .root
        .rewrite(None, |rows, _| change(rows, &contract))
        .await
        .unwrap();
    let (opened, stamp) = retained(&s.root, version).await;
    let head = LegacySource::Stamp13.scan_head(&opened, stamp).await;
    [
        schemas(&s.root, &[version]).await.unwrap_err(),
        head.unwrap_err().to_string(),
        read_contract(&opened, stamp).await.unwrap_err().to_string(),
    ]
}

fn at(rows: &mut [LegacyRow]) -> &mut LegacyRow {
    let found = rows.iter_mut().find(|r| r.object_type == "schema_contract");
    found.unwrap()
}

#[tokio::test]
async fn damaged_contract_rows_are_errors() {
    let all = |whys: [String; 3], words: &str| {
        for why in whys {
            assert!(why.contains(words), "{why} does not say {words}");
            assert!(why.contains("version 5"), "{why}");
        }
    };
    let without_source = refused(|rows, _| at(rows).schema_source = None).await;
    all(without_source, "without schema_source");
    let without_ir = refused(|rows, _| at(rows).schema_ir = None).await;
    all(without_ir, "without schema_ir");
    let headless = refused(|rows, _| at(rows).metadata = None).await;
    all(headless, "metadata is null");
    let twice = refused(|rows, contract| {
        rows.push(LegacyRow {
            object_id: "schema_contract_2".into(),
            ..LegacyRow::contract(contract)
        });
    })
    .await;
    all(twice, "second contract row");
    // The row is found by its type, whatever its key.
    let (_folder, mut s) = fixture().await;
    let renamed = |rows: &mut Vec<LegacyRow>, _: &mut _| at(rows).object_id = "contract".into();
    let version = s.root.rewrite(None, renamed).await.unwrap();
    let found = schemas(&s.root, &[version]).await.unwrap();
    assert_eq!(
        found[0].contract.as_ref().unwrap().head(),
        &s.root.contract.head()
    );
}
