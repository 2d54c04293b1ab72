//! Behaviour 29 and roots whose data a release wrote: the legacy vintage, blobs, vectors, forks, a foreign commit.
//! Skipped when no samples are at hand.

use std::path::Path;

use fixtures::sample::{samples_folder, unpack};
use graph::store::{Root, RootOptions};
use graph::table::open_pin;
use graph::view::At;
use maintain::indexes::{IndexOptions, rebuild_full_text};
use maintain::optimize::{OptimizeOptions, optimize, plan};
use maintain::repair::{Classification, repair};
use upgrade::{UpgradeOptions, upgrade};
use verify::{VerifyOptions, verify};

use crate::bed::*;

async fn root_of(name: &str) -> Option<(fixtures::sample::UnpackedRoot, Root)> {
    let samples = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let unpacked = unpack(&samples, name).unwrap();
    let uri = unpacked.path().to_str().unwrap();
    let root = Root::open(uri, RootOptions::default()).await.unwrap();
    let done = upgrade(&root, &UpgradeOptions::default()).await;
    assert!(done.outcome.is_success(), "{done:#?}");
    Some((unpacked, root))
}

/// Findings of `verify --deep`: samples that a cleanup went over have some from the start.
async fn findings(root: &Root) -> usize {
    let options = VerifyOptions {
        deep: true,
        ..VerifyOptions::default()
    };
    verify(root, &options).await.unwrap().findings.len()
}

/// Optimize until nothing is to do; every branch exports the same bytes before and after.
async fn survives(name: &str) {
    let Some((_unpacked, root)) = root_of(name).await else {
        return;
    };
    let branches = write::branches::list(&root).await.unwrap();
    let exports = async || {
        let mut all = Vec::new();
        for branch in &branches {
            let logical = (branch.branch != "main").then_some(branch.branch.as_str());
            all.push(export_of(&root, logical, &At::Head).await);
        }
        all
    };
    let (before, found) = (exports().await, findings(&root).await);
    let mut commits = 0;
    for _ in 0..4 {
        let planned = plan(&root, &OptimizeOptions::default()).await.unwrap();
        let report = optimize(&root, &OptimizeOptions::default()).await.unwrap();
        let work = planned.datasets.iter().any(|d| d.has_work());
        assert_eq!(report.graph_commit_id.is_some(), work, "{planned:#?}");
        if !work {
            break;
        }
        commits += 1;
    }
    assert!(commits > 0 && commits < 4, "{name}: {commits}");
    // The indexes that the release built are told apart.
    let rebuilt = rebuild_full_text(&root, &IndexOptions::default())
        .await
        .unwrap();
    assert!(!rebuilt.rebuilt_indexes.is_empty());
    assert_eq!(exports().await, before, "{name}");
    assert_eq!(findings(&root).await, found, "{name}");
    // A query through the indexes finds what a scan finds.
    let state = write::capture::Capture::of(&root, None)
        .await
        .unwrap()
        .state;
    for row in &state.tables {
        let Some(pin) = row.state.pin() else { continue };
        let image = open_pin(&root, row, pin).await.unwrap().dataset;
        let id = image.schema().fields[0].name.clone();
        assert_eq!(image.count_rows(None).await.unwrap() as u64, pin.row_count);
        for indexed in [true, false] {
            let mut scanner = image.scan();
            scanner.use_scalar_index(indexed);
            scanner
                .filter(&format!("`{id}` >= ''"))
                .unwrap()
                .project(&[id.as_str()])
                .unwrap();
            let rows = scanner.try_into_batch().await.unwrap().num_rows() as u64;
            assert_eq!(rows, pin.row_count, "{name} {}", row.table_key);
        }
    }
}

#[test]
fn a_converted_root_of_stamp_8_with_forks() {
    run(|| survives("s8-observa1"));
}

#[test]
fn a_converted_root_of_stamp_9() {
    run(|| survives("s9-evolution"));
}

#[test]
fn a_root_that_another_implementation_converted() {
    run(|| survives("s14-observa"));
}

#[test]
fn b29_a_foreign_version_of_a_converted_root_is_reported() {
    run(|| async {
        let Some((_unpacked, root)) = root_of("s9-foreign").await else {
            return;
        };
        let drifted = async || {
            let report = repair(&root).await.unwrap();
            report
                .datasets
                .into_iter()
                .filter(|d| d.classification != Classification::NoDrift)
                .map(|d| (d.type_key, d.classification, d.foreign_versions))
                .collect::<Vec<_>>()
        };
        let before = drifted().await;
        let [(key, class, versions)] = before.as_slice() else {
            panic!("{before:#?}");
        };
        assert_eq!(
            (key.as_str(), *class),
            ("node:Target", Classification::ForeignDrift)
        );
        assert_eq!(versions.len(), 2);
        assert!(
            versions
                .iter()
                .all(|v| v.operation.is_some() && v.rows.is_some()),
            "{versions:#?}"
        );
        optimize(&root, &OptimizeOptions::default()).await.unwrap();
        assert_eq!(drifted().await, before);
    });
}

#[test]
fn other_converted_roots_have_no_drift() {
    run(|| async {
        for name in ["s8-observa1", "s14-observa", "s13-observa"] {
            let Some((_unpacked, root)) = root_of(name).await else {
                return;
            };
            let report = repair(&root).await.unwrap();
            let drifted: Vec<_> = report
                .datasets
                .iter()
                .filter(|d| d.classification != Classification::NoDrift)
                .collect();
            assert!(
                drifted.is_empty() && !report.datasets.is_empty(),
                "{name}: {drifted:#?}"
            );
        }
    });
}
