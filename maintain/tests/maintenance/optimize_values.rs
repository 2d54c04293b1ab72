//! Rows, row ids, references and indexes of an optimized table.

use graph::view::At;
use maintain::indexes::{IndexOptions, build_missing};
use maintain::optimize::{OptimizeOptions, optimize, plan};
use write::load::Mode;

use crate::bed::*;

fn options() -> OptimizeOptions {
    OptimizeOptions::default()
}

#[test]
fn deletions_and_updates_are_compacted_within_a_small_memory_bound() {
    run(|| async {
        let bed = Bed::of(3, 6).await;
        bed.load(None, Mode::Merge, &records(2, 9)).await;
        let (export, ids) = (bed.export(&At::Head).await, bed.row_ids("edge:Near").await);
        let small = OptimizeOptions {
            concurrency: 1,
            memory_bytes: 1,
            ..options()
        };
        optimize(&bed.root().await, &small).await.unwrap();
        let shape = bed.shape().await;
        assert_eq!(shape["node:Place"].fragments, 1, "{shape:#?}");
        assert_eq!(bed.export(&At::Head).await, export);
        assert_eq!(bed.row_ids("edge:Near").await, ids);
        bed.is_sound().await;
    });
}

#[test]
fn uneven_coverage_makes_two_tasks_and_full_text_follows_its_fragments() {
    run(|| async {
        let bed = Bed::of(2, 4).await;
        build_missing(&bed.root().await, &IndexOptions::default())
            .await
            .unwrap();
        bed.append(&records(8, 11)).await;
        bed.append(&records(11, 14)).await;
        let (export, ids) = (bed.export(&At::Head).await, bed.row_ids("node:Place").await);
        let planned = plan(&bed.root().await, &options()).await.unwrap();
        let place = &planned.datasets[2];
        let tasks: Vec<_> = place
            .compaction_tasks
            .iter()
            .map(|t| (t.fragments, t.rows))
            .collect();
        assert_eq!(tasks, [(2, Some(8)), (2, Some(6))]);
        let before = bed.shape().await["node:Place"].version;
        let report = optimize(&bed.root().await, &options()).await.unwrap();
        let place = &report.datasets[2];
        assert_eq!((place.fragments_removed, place.fragments_added), (4, 2));
        let shape = bed.shape().await["node:Place"].clone();
        // The compaction and the fold.
        assert_eq!((shape.fragments, shape.version), (2, before + 2));
        for (name, lag) in &shape.indexes {
            let full_text = ["code_idx", "note_idx"].contains(&name.as_str());
            assert_eq!(*lag, usize::from(full_text), "{name}");
        }
        assert_eq!(bed.export(&At::Head).await, export);
        assert_eq!(bed.row_ids("node:Place").await, ids);
        // Both halves are found, the one with full text and the one without.
        let image = bed.image("node:Place").await;
        let mut scanner = image.scan();
        let query = lance_index::scalar::FullTextSearchQuery::new("note".into());
        scanner
            .full_text_search(query.with_column("note".into()).unwrap())
            .unwrap();
        scanner.project(&["note"]).unwrap();
        assert_eq!(scanner.try_into_batch().await.unwrap().num_rows(), 14);
        bed.is_sound().await;
    });
}

#[test]
fn references_to_objects_outside_survive() {
    run(|| async {
        let bed = Bed::empty(SCHEMA).await;
        let outside = bed.path().with_file_name("outside.bin");
        std::fs::write(&outside, "outside").unwrap();
        let uri = format!("file://{}", outside.display());
        bed.overwrite_external(&format!(
            "{{\"type\":\"Place\",\"data\":{{\"code\":\"e\",\"kind\":\"a\",\"picture\":\"{uri}\"}}}}\n"
        ))
        .await;
        bed.append(&records(0, 5)).await;
        let export = bed.export(&At::Head).await;
        assert!(export.contains(&uri));
        optimize(&bed.root().await, &options()).await.unwrap();
        assert_eq!(bed.shape().await["node:Place"].fragments, 1);
        assert_eq!(bed.export(&At::Head).await, export);
        bed.is_sound().await;
    });
}
