//! Cleanup of converted roots: behaviours 29 to 31 of `docs/format/upgrade-protocol.md` 11, at every source.

use fixtures::fixture_s::{FixtureS, SpecS};
use graph::digest::sha256_hex;
use graph::model::names::logical_name;
use graph::store::Root;
use graph::view::{At, snapshot};
use maintain::cleanup::Policy;
use tempfile::TempDir;
use ulid::Ulid;
use upgrade::{Outcome, UpgradeOptions, upgrade};
use write::capture::Capture;
use write::publish::{Changes, Lineage, Merged, Request, publish};

use super::support::{clean, keep, older, open, run};

const SOURCES: [fn() -> SpecS; 3] = [SpecS::stamp_8, SpecS::stamp_9, SpecS::stamp_13];

async fn converted(spec: SpecS) -> (TempDir, FixtureS, Root) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("s");
    let s = FixtureS::create(&path, spec).await.unwrap();
    let root = open(&path).await;
    let report = upgrade(&root, &UpgradeOptions::default()).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
    (folder, s, root)
}

/// Every pin of a state opens and shows its rows; how many rows that are.
async fn read(root: &Root, branch: Option<&str>, at: &At) -> Result<usize, String> {
    let shown = snapshot(root, branch, at)
        .await
        .map_err(|e| e.to_string())?;
    let mut rows = 0;
    for table in graph::manifest::state::visible(&shown.tables) {
        let pin = table.state.pin().unwrap();
        let opened = graph::table::open_pin(root, table, pin)
            .await
            .map_err(|e| e.to_string())?;
        let batch = opened.dataset.scan().try_into_batch().await;
        let found = batch.map_err(|e| e.to_string())?.num_rows();
        assert_eq!(found as u64, pin.row_count, "{}", table.table_key);
        rows += found;
    }
    Ok(rows)
}

async fn every_number_of_main(root: &Root) -> Vec<usize> {
    let mut rows = Vec::new();
    for version in 1..=7 {
        let found = read(root, None, &At::Version(version)).await;
        rows.push(found.unwrap_or_else(|e| panic!("version {version}: {e}")));
    }
    rows
}

/// A merge of `branch` into main that takes over nothing: its lineage is what counts here.
async fn merge(root: &Root, branch: &str, base: &str) -> graph::model::Commit {
    let source = Capture::of(root, Some(branch)).await.unwrap();
    let target = Capture::of(root, None).await.unwrap();
    let request = Request {
        changes: Changes::default(),
        expected: Vec::new(),
        lineage: Lineage {
            nonce: Ulid::new(),
            branch: None,
            actor: None,
            created_at: 1,
            merged: Some(Merged {
                state: source.state,
                base: Some(base.to_string()),
            }),
            budget: write::publish::budget(None).unwrap(),
        },
        precondition: target.precondition(),
    };
    publish(root, &request).await.unwrap().state.head.clone()
}

#[test]
fn b29_cleanup_keeps_every_table_version_that_versions_1_to_7_pin() {
    run(|| async {
        for spec in SOURCES {
            let (_folder, _, root) = converted(spec()).await;
            let before = every_number_of_main(&root).await;
            for policy in [
                keep(4),
                older("1h"),
                Policy::new(Some(4), Some("7d")).unwrap(),
            ] {
                let report = clean(&root, policy).await.unwrap();
                let errors = report.datasets.iter().filter(|r| r.error.is_some()).count();
                assert_eq!(errors, 0, "{report:#?}");
                assert_eq!(every_number_of_main(&root).await, before);
            }
        }
    });
}

#[test]
fn b30_a_merge_base_in_legacy_history_stays_and_a_merge_names_legacy_parents() {
    run(|| async {
        for spec in SOURCES {
            let (_folder, s, root) = converted(spec()).await;
            let feature = logical_name(&s.feature).to_string();
            let base = At::Commit(s.commit(2).to_string());
            let before = read(&root, None, &base).await.unwrap();
            clean(&root, keep(1)).await.unwrap();
            assert_eq!(read(&root, None, &base).await, Ok(before));
            let merged = merge(&root, &feature, s.commit(2)).await;
            assert_eq!(merged.parent_commit_id.as_deref(), Some(s.commit(4)));
            assert_eq!(merged.merged_parent_commit_id.as_deref(), Some(s.commit(6)));
            // The merged head is the base from now on.
            clean(&root, keep(1)).await.unwrap();
            let head = At::Commit(s.commit(6).to_string());
            read(&root, None, &head).await.unwrap();
        }
    });
}

#[test]
fn b31_merge_input_tags_on_versions_without_a_commit_hold_until_the_merge() {
    run(|| async {
        for spec in SOURCES {
            let (_folder, s, root) = converted(spec()).await;
            let feature = logical_name(&s.feature).to_string();
            let main = sha256_hex(br#"{"version_mapping":[]}"#);
            let folder = s.root.path().join("__manifest/_refs/tags");
            std::fs::create_dir_all(&folder).unwrap();
            // Version 3 of main has no commit, nor has the first version of the branch's own.
            let mut names = Vec::new();
            for (branch, version) in [(None, 3), (Some(s.feature.as_str()), 3)] {
                let head = hex::encode(s.commit(4));
                let name = format!("__omnigraph_merge_input_v1_{main}_s{head}_{}", Ulid::new());
                let branch = branch.map_or("null".to_string(), |b| format!("\"{b}\""));
                let json = format!(
                    "{{\"branch\":{branch},\"version\":{version},\"manifestSize\":1,\"createdAt\":null,\"updatedAt\":null,\"metadata\":{{}}}}"
                );
                std::fs::write(folder.join(format!("{name}.json")), json).unwrap();
                names.push(name);
            }
            names.sort();
            let places = [
                (None, At::Version(3)),
                (Some(feature.as_str()), At::Version(3)),
            ];
            let mut before = Vec::new();
            for (branch, at) in &places {
                before.push(read(&root, *branch, at).await.unwrap());
            }
            let report = clean(&root, keep(1)).await.unwrap();
            assert!(report.released_tags.is_empty(), "{report:#?}");
            for ((branch, at), rows) in places.iter().zip(&before) {
                assert_eq!(read(&root, *branch, at).await, Ok(*rows));
            }
            merge(&root, &feature, s.commit(2)).await;
            let report = clean(&root, keep(1)).await.unwrap();
            assert_eq!(report.released_tags, names);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        }
    });
}
