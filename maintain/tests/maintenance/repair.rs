//! Behaviours 11 to 13.

use std::sync::Arc;

use graph::view::At;
use lance::Dataset;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use maintain::repair::{Classification, RepairReport, repair};

use crate::bed::*;
use crate::optimize::foreign_append;

async fn row(bed: &Bed, key: &str) -> maintain::repair::RepairedTable {
    let report = repair(&bed.root().await).await.unwrap();
    report
        .datasets
        .into_iter()
        .find(|d| d.type_key == key)
        .unwrap()
}

async fn unchanged(bed: &Bed, act: impl AsyncFnOnce() -> RepairReport) -> RepairReport {
    let digest = fixtures::tree::tree_digest(bed.path()).unwrap();
    let report = act().await;
    let now = fixtures::tree::tree_digest(bed.path()).unwrap();
    assert_eq!(fixtures::tree::tree_changes(&digest, &now), [""; 0]);
    report
}

#[test]
fn b11_foreign_versions_are_named_and_kept() {
    run(|| async {
        let bed = Bed::of(2, 3).await;
        let export = bed.export(&At::Head).await;
        let clean = repair(&bed.root().await).await.unwrap();
        assert!(
            clean
                .datasets
                .iter()
                .all(|d| d.classification == Classification::NoDrift)
        );
        foreign_append(&bed, "edge:Near").await;
        foreign_append(&bed, "edge:Near").await;
        let mut linear: Dataset = Arc::unwrap_or_clone(bed.linear("edge:Near").await);
        compact_files(&mut linear, CompactionOptions::default(), None)
            .await
            .unwrap();
        linear.delete("true").await.unwrap();
        let root = bed.root().await;
        let mut report = unchanged(&bed, async || repair(&root).await.unwrap()).await;
        let near = report
            .datasets
            .iter_mut()
            .find(|d| d.type_key == "edge:Near")
            .unwrap();
        assert_eq!(near.classification, Classification::ForeignDrift);
        assert_eq!(near.action, "no_op");
        let count = near.lance_head_version - 1;
        assert_eq!(near.operations.len(), 1);
        assert!(near.operations[0].starts_with(&format!("{count} foreign linear version")));
        let seen: Vec<(u64, Option<&str>, Option<u64>)> = near
            .foreign_versions
            .iter()
            .map(|v| (v.version, v.operation.as_deref(), v.rows))
            .collect();
        assert_eq!(
            seen,
            [
                (2, Some("Append"), Some(1)),
                (3, Some("Append"), Some(2)),
                (4, Some("ReserveFragments"), Some(2)),
                (5, Some("Rewrite"), Some(2)),
                (6, Some("Delete"), Some(0)),
            ]
        );
        for version in &mut near.foreign_versions {
            let time =
                chrono::DateTime::parse_from_rfc3339(version.time.as_deref().unwrap()).unwrap();
            let age = chrono::Utc::now().signed_duration_since(time);
            assert!((0..600).contains(&age.num_seconds()), "{version:?}");
            version.time = Some("<time>".into());
        }
        report.uri = "<uri>".into();
        insta::assert_snapshot!("repair", serde_json::to_string_pretty(&report).unwrap());
        insta::assert_snapshot!("repair_human", report.human());
        assert_eq!(
            report.summary(),
            "repair: 3 tables, 1 with foreign versions (5 listed), nothing was changed"
        );
        assert_eq!(bed.export(&At::Head).await, export);
    });
}

#[test]
fn b12_a_table_never_written_still_takes_a_write() {
    run(|| async {
        let bed = Bed::of(1, 2).await;
        foreign_append(&bed, "node:Empty").await;
        assert_eq!(
            row(&bed, "node:Empty").await.classification,
            Classification::ForeignDrift
        );
        bed.append("{\"type\":\"Empty\",\"data\":{\"name\":\"x\"}}\n")
            .await;
        let shape = bed.shape().await;
        assert_eq!(
            (shape["node:Empty"].rows, shape["node:Empty"].version),
            (1, 2)
        );
        assert_eq!(row(&bed, "node:Empty").await.lance_head_version, 2);
    });
}

#[test]
fn b13_a_head_below_the_last_linear_version_is_an_error() {
    run(|| async {
        let bed = Bed::of(1, 2).await;
        let (table, _) = bed.table("edge:Near").await;
        let versions = bed.path().join(&table.table_path).join("_versions");
        for entry in std::fs::read_dir(&versions).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            if !name.starts_with('d') {
                std::fs::remove_file(path).unwrap();
            }
        }
        let error = repair(&bed.root().await).await.unwrap_err().to_string();
        assert!(error.starts_with("edge:Near: "), "{error}");
    });
}

#[test]
fn a_damaged_foreign_version_is_a_finding_and_not_the_end() {
    run(|| async {
        let bed = Bed::of(1, 2).await;
        foreign_append(&bed, "edge:Near").await;
        foreign_append(&bed, "edge:Near").await;
        let (table, _) = bed.table("edge:Near").await;
        let name = format!("{:020}.manifest", u64::MAX - 2);
        std::fs::write(
            bed.path()
                .join(&table.table_path)
                .join("_versions")
                .join(name),
            "damaged",
        )
        .unwrap();
        let near = row(&bed, "edge:Near").await;
        assert_eq!(near.classification, Classification::ForeignDrift);
        let [two, three] = near.foreign_versions.as_slice() else {
            panic!("{near:?}");
        };
        assert!(two.operation.is_none() && two.error.as_ref().unwrap().contains("version 2"));
        assert_eq!(
            (three.operation.as_deref(), three.rows),
            (Some("Append"), Some(2))
        );
    });
}
