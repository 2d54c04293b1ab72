//! Behaviours 4 and 6 to 10.

use graph::view::At;
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use maintain::Stop;
use maintain::indexes::{IndexOptions, build_missing, rebuild_full_text};
use maintain::optimize::{OptimizeOptions, optimize, plan, stage};
use write::WriteError;
use write::load::Mode;

use crate::bed::*;

fn options() -> OptimizeOptions {
    OptimizeOptions::default()
}

#[test]
fn b6_two_tables_make_one_commit_and_keep_every_value() {
    run(|| async {
        // Two loads: a third would fold what they left.
        let bed = Bed::of(2, 5).await;
        let (before, export) = (bed.state().await, bed.export(&At::Head).await);
        let shape = bed.shape().await;
        let ids = bed.row_ids("node:Place").await;
        let heads = [
            bed.linear("node:Place").await.manifest().version,
            bed.linear("edge:Near").await.manifest().version,
        ];
        let report = optimize(&bed.root().await, &options()).await.unwrap();
        let after = bed.state().await;
        assert_eq!(after.version, before.version + 1);
        assert_eq!(
            after.head.parent_commit_id.as_ref(),
            Some(&before.head.graph_commit_id)
        );
        assert_eq!(after.head.actor_id, None);
        assert_eq!(
            report.graph_commit_id.as_ref(),
            Some(&after.head.graph_commit_id)
        );
        let now = bed.shape().await;
        for key in ["node:Place", "edge:Near"] {
            let (old, new) = (&shape[key], &now[key]);
            assert_eq!((old.fragments, new.fragments), (2, 1), "{key}");
            // Compaction and the first build of the declared indexes.
            assert_eq!(new.version, old.version + 2, "{key}");
            assert_eq!(new.last_linear, old.last_linear);
            assert_eq!(new.rows, 10);
            assert!(new.indexes.values().all(|lag| *lag == 0), "{new:?}");
        }
        assert_eq!(now["node:Empty"], shape["node:Empty"]);
        let names: Vec<&String> = now["node:Place"].indexes.keys().collect();
        let expected = [
            "__id_idx",
            "active_idx",
            "at_idx",
            "code_idx",
            "kind_idx",
            "note_idx",
            "size_idx",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            [
                bed.linear("node:Place").await.manifest().version,
                bed.linear("edge:Near").await.manifest().version,
            ],
            heads
        );
        assert_eq!(bed.export(&At::Head).await, export);
        assert_eq!(bed.row_ids("node:Place").await, ids);
        bed.is_sound().await;
    });
}

#[test]
fn b4_b10_the_json_has_every_key_and_ends_with_the_catalog() {
    run(|| async {
        let bed = Bed::of(2, 4).await;
        let planned = plan(&bed.root().await, &options()).await.unwrap();
        let mut plan = serde_json::to_value(&planned).unwrap();
        plan["uri"] = "<uri>".into();
        for dataset in plan["datasets"].as_array_mut().unwrap() {
            if dataset["bytes_to_rewrite"].as_u64() > Some(0) {
                dataset["bytes_to_rewrite"] = "<bytes>".into();
            }
            for task in dataset["compaction_tasks"].as_array_mut().unwrap() {
                assert!(task["bytes"].as_u64() > Some(0));
                task["bytes"] = "<bytes>".into();
            }
        }
        insta::assert_snapshot!(
            "optimize_plan",
            serde_json::to_string_pretty(&plan).unwrap()
        );
        let human = planned.human().replace(planned.uri.as_str(), "<uri>");
        let bytes = planned.datasets.iter().filter_map(|d| d.bytes_to_rewrite);
        let human = bytes.fold(human, |text, b| {
            text.replace(&format!(" {b} bytes"), " <n> bytes")
        });
        insta::assert_snapshot!("optimize_plan_human", human);
        let mut report = optimize(&bed.root().await, &options()).await.unwrap();
        report.uri = "<uri>".into();
        insta::assert_snapshot!("optimize", serde_json::to_string_pretty(&report).unwrap());
        insta::assert_snapshot!("optimize_human", report.human());
        let last = report.datasets.last().unwrap();
        assert_eq!(
            (last.type_key.as_str(), last.committed),
            ("__manifest", false)
        );
    });
}

#[test]
fn b7_a_second_run_makes_no_commit_and_a_full_text_backlog_is_reported() {
    run(|| async {
        let bed = Bed::of(2, 4).await;
        optimize(&bed.root().await, &options()).await.unwrap();
        let (head, shape) = (bed.state().await.head, bed.shape().await);
        let digest = fixtures::tree::tree_digest(bed.path()).unwrap();
        let again = optimize(&bed.root().await, &options()).await.unwrap();
        assert_eq!(again.graph_commit_id, None);
        assert_eq!((bed.state().await.head, bed.shape().await), (head, shape));
        // Not even a file was staged.
        let now = fixtures::tree::tree_digest(bed.path()).unwrap();
        assert_eq!(fixtures::tree::tree_changes(&digest, &now), [""; 0]);

        // One more fragment: B-trees are folded, full text stays behind.
        bed.append(&records(8, 12)).await;
        let folded = optimize(&bed.root().await, &options()).await.unwrap();
        assert!(folded.graph_commit_id.is_some());
        let place = &folded.datasets[2];
        let pending: Vec<&str> = place
            .pending_indexes
            .iter()
            .map(|p| p.property.as_str())
            .collect();
        assert_eq!(
            (place.type_key.as_str(), pending),
            ("node:Place", vec!["code", "note"])
        );
        assert!(
            place.pending_indexes[0]
                .reason
                .contains("rebuild-full-text-indexes")
        );
        let lag = &bed.shape().await["node:Place"].indexes;
        assert!(lag["__id_idx"] == 0 && lag["at_idx"] == 0, "{lag:?}");
        assert_eq!((lag["code_idx"], lag["note_idx"]), (1, 1));
        // The edges have no full text: now that the same indexes cover both fragments, they coalesce.
        let next = optimize(&bed.root().await, &options()).await.unwrap();
        let committed: Vec<bool> = next.datasets.iter().map(|d| d.committed).collect();
        assert_eq!(committed, [true, false, false, false], "{next:#?}");
        // What is left is full text and the uneven coverage that comes of it: no work.
        let last = optimize(&bed.root().await, &options()).await.unwrap();
        assert_eq!(last.graph_commit_id, None, "{last:#?}");
        assert_eq!(last.datasets[2].pending_indexes.len(), 2);
        assert_eq!(bed.shape().await["node:Place"].fragments, 2);
        // Once it is rebuilt, nodes coalesce too.
        rebuild_full_text(&bed.root().await, &IndexOptions::default())
            .await
            .unwrap();
        optimize(&bed.root().await, &options()).await.unwrap();
        let place = &bed.shape().await["node:Place"];
        assert!(
            place.fragments == 1 && place.indexes.values().all(|lag| *lag == 0),
            "{place:?}"
        );
    });
}

#[test]
fn b8_foreign_commits_are_neither_in_the_way_nor_adopted() {
    run(|| async {
        let bed = Bed::of(2, 4).await;
        let export = bed.export(&At::Head).await;
        foreign_append(&bed, "node:Place").await;
        let head = bed.linear("node:Place").await.manifest().version;
        let report = optimize(&bed.root().await, &options()).await.unwrap();
        assert!(report.graph_commit_id.is_some());
        assert_eq!(bed.export(&At::Head).await, export);
        assert_eq!(bed.linear("node:Place").await.manifest().version, head);
        assert_eq!(bed.shape().await["node:Place"].rows, 8);
    });
}

/// A raw Lance append to the linear history of a table.
pub async fn foreign_append(bed: &Bed, key: &str) {
    let image = bed.image(key).await;
    let rows = image.scan().try_into_batch().await;
    let linear = bed.linear(key).await;
    let batch = match rows {
        Ok(rows) if key != "node:Place" => rows.slice(0, rows.num_rows().min(1)),
        // Descriptors of blobs cannot be written back; an empty append is a commit too.
        _ => arrow_array::RecordBatch::new_empty(std::sync::Arc::new(linear.schema().into())),
    };
    InsertBuilder::new(linear)
        .with_params(&WriteParams {
            mode: WriteMode::Append,
            ..WriteParams::default()
        })
        .execute(vec![batch])
        .await
        .unwrap();
}

#[test]
fn b9_a_publish_in_between_fails_the_run_and_nothing_is_visible() {
    run(|| async {
        let bed = Bed::of(2, 4).await;
        let staged = stage(&bed.root().await, &options()).await.unwrap();
        // Gates are kept by URI: this writer stands for another process.
        let uri = fixtures::fault_store::seen_uri(&bed.path());
        let other = graph::store::Root::open(&uri, Default::default())
            .await
            .unwrap();
        load_into(&other, None, Mode::Append, &records(8, 9))
            .await
            .unwrap();
        let (head, export) = (bed.state().await.head, bed.export(&At::Head).await);
        let error = staged.publish().await.unwrap_err();
        assert!(
            matches!(&error, WriteError::ReadSetChanged { member, .. } if member == "graph_head:main"),
            "{error}"
        );
        assert_eq!(bed.state().await.head, head);
        assert_eq!(bed.export(&At::Head).await, export);
        // What was staged says against which head, so that cleanup can judge it.
        let (row, _) = bed.table("edge:Near").await;
        let image = bed.image("edge:Near").await;
        let detached = image.list_detached_manifests().await.unwrap();
        let root = bed.root().await;
        let mut heads = Vec::new();
        for manifest in detached {
            let dataset = root
                .open_dataset(&row.table_path, None, Some(manifest.version))
                .await
                .unwrap();
            let transaction = dataset.read_transaction().await.unwrap().unwrap();
            let properties = transaction.transaction_properties.unwrap();
            heads.push(properties["omnigraph.staged_against_graph_head"].clone());
        }
        let parent = head.parent_commit_id.unwrap();
        // The load before, the fold behind it, and the two links of the run.
        assert_eq!(
            heads.iter().filter(|h| **h == parent).count(),
            4,
            "{heads:?}"
        );
        let rerun = optimize(&bed.root().await, &options()).await.unwrap();
        assert!(rerun.graph_commit_id.is_some());
        assert_eq!(bed.export(&At::Head).await, export);
    });
}

#[test]
fn a_run_that_is_asked_to_stop_publishes_nothing_and_says_how_far_it_came() {
    run(|| async {
        let bed = Bed::of(2, 3).await;
        let head = bed.state().await.head;
        let stop = Stop::new();
        let asked = OptimizeOptions {
            stop: stop.clone(),
            ..options()
        };
        let staged = stage(&bed.root().await, &asked).await.unwrap();
        stop.request("SIGTERM was received");
        let error = staged.publish().await.unwrap_err().to_string();
        assert_eq!(
            error,
            "stopped: SIGTERM was received; 2 of 2 tables with work were staged and none is published, the graph is \
             unchanged; run the command again"
        );
        assert_eq!(bed.state().await.head, head);
        let digest = fixtures::tree::tree_digest(bed.path()).unwrap();
        let error = stage(&bed.root().await, &asked)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("0 of 2 tables"), "{error}");
        let now = fixtures::tree::tree_digest(bed.path()).unwrap();
        assert_eq!(fixtures::tree::tree_changes(&digest, &now), [""; 0]);
    });
}

#[test]
fn a_leftover_sidecar_is_refused_before_anything_is_read_further() {
    run(|| async {
        let bed = Bed::of(1, 2).await;
        std::fs::create_dir_all(bed.path().join("__recovery")).unwrap();
        std::fs::write(bed.path().join("__recovery/x.json"), "{}").unwrap();
        let error = optimize(&bed.root().await, &options()).await.unwrap_err();
        assert!(error.to_string().contains("__recovery/x.json"), "{error}");
    });
}

#[test]
fn a_schema_apply_in_progress_is_refused() {
    run(|| async {
        let bed = Bed::of(1, 2).await;
        let root = bed.root().await;
        let side = write::branches::create(&root, "side", None).await.unwrap();
        let refs = bed.path().join("__manifest/_refs/branches");
        let lock = "__schema_apply_lock__";
        std::fs::copy(
            refs.join(format!("{}.json", side.native)),
            refs.join(format!("{lock}.json")),
        )
        .unwrap();
        let refused =
            |error: write::WriteError| error.to_string().contains("a schema apply is in progress");
        assert!(refused(optimize(&root, &options()).await.unwrap_err()));
        assert!(refused(maintain::repair::repair(&root).await.unwrap_err()));
    });
}

#[test]
fn a_check_changes_no_byte() {
    run(|| async {
        let bed = Bed::of(2, 3).await;
        let digest = fixtures::tree::tree_digest(bed.path()).unwrap();
        let planned = plan(&bed.root().await, &options()).await.unwrap();
        assert!(planned.datasets.iter().any(|d| d.has_work()));
        let now = fixtures::tree::tree_digest(bed.path()).unwrap();
        assert_eq!(fixtures::tree::tree_changes(&digest, &now), [""; 0]);
        // After build-indexes only the compaction is left to do.
        build_missing(&bed.root().await, &IndexOptions::default())
            .await
            .unwrap();
        let planned = plan(&bed.root().await, &options()).await.unwrap();
        assert!(
            planned
                .datasets
                .iter()
                .all(|d| d.missing_indexes.is_empty())
        );
        assert!(
            planned
                .datasets
                .iter()
                .any(|d| !d.compaction_tasks.is_empty())
        );
    });
}
