//! `build-indexes` and `rebuild-full-text-indexes`.

use graph::view::At;
use maintain::indexes::{
    IndexOptions, build_missing, plan_full_text, plan_missing, rebuild_full_text,
};
use write::load::Mode;

use crate::bed::*;

fn by(actor: &str, branch: Option<&str>) -> IndexOptions {
    IndexOptions {
        branch: branch.map(str::to_string),
        actor: Some(actor.into()),
        ..IndexOptions::default()
    }
}

#[test]
fn missing_indexes_are_built_in_one_commit_and_once() {
    run(|| async {
        let bed = Bed::of(2, 4).await;
        let (before, export) = (bed.state().await, bed.export(&At::Head).await);
        let root = bed.root().await;
        let mut planned = plan_missing(&root, None).await.unwrap();
        let mut report = build_missing(&root, &by("ann", None)).await.unwrap();
        assert_eq!(report.built_indexes, planned.missing_indexes);
        let after = bed.state().await;
        assert_eq!(after.version, before.version + 1);
        assert_eq!(after.head.actor_id.as_deref(), Some("ann"));
        assert_eq!(
            report.graph_commit_id,
            Some(after.head.graph_commit_id.clone())
        );
        let shape = bed.shape().await;
        assert_eq!(shape["node:Place"].fragments, 2);
        assert_eq!(shape["node:Place"].version, 4);
        assert!(shape["node:Empty"].indexes.is_empty());
        assert_eq!(bed.export(&At::Head).await, export);
        planned.uri = "<uri>".into();
        (report.uri, report.graph_commit_id) = ("<uri>".into(), Some("<id>".into()));
        insta::assert_snapshot!(
            "build_indexes_plan",
            serde_json::to_string_pretty(&planned).unwrap()
        );
        insta::assert_snapshot!(
            "build_indexes",
            serde_json::to_string_pretty(&report).unwrap()
        );
        let again = build_missing(&root, &by("ann", None)).await.unwrap();
        assert_eq!(
            (again.graph_commit_id, again.built_indexes.len()),
            (None, 0)
        );
        bed.is_sound().await;
    });
}

#[test]
fn a_vector_column_without_vectors_is_pending() {
    run(|| async {
        let bed = Bed::empty(SCHEMA).await;
        bed.append("{\"type\":\"Place\",\"data\":{\"code\":\"x\",\"kind\":\"b\"}}\n")
            .await;
        let root = bed.root().await;
        let report = build_missing(&root, &IndexOptions::default())
            .await
            .unwrap();
        assert_eq!(report.pending_indexes.len(), 1);
        assert_eq!(report.pending_indexes[0].property, "at");
        assert!(report.built_indexes.iter().all(|b| b.column != "at"));
        // One vector is enough.
        bed.append(
            &records(1, 2)
                .lines()
                .next()
                .unwrap()
                .replace("\"p0\"", "\"x\""),
        )
        .await;
        let report = build_missing(&root, &IndexOptions::default())
            .await
            .unwrap();
        assert_eq!(report.built_indexes.len(), 1);
        assert_eq!(report.pending_indexes, []);
    });
}

#[test]
fn a_branch_gets_its_own_and_main_keeps_its_state() {
    run(|| async {
        let bed = Bed::of(1, 3).await;
        let root = bed.root().await;
        write::branches::create(&root, "side", None).await.unwrap();
        bed.load(Some("side"), Mode::Append, &records(3, 5)).await;
        let (main, export) = (
            bed.shape().await,
            export_of(&root, Some("side"), &At::Head).await,
        );
        let report = build_missing(&root, &by("ann", Some("side")))
            .await
            .unwrap();
        assert_eq!(report.branch, "side");
        assert!(report.graph_commit_id.is_some());
        assert_eq!(bed.shape().await, main);
        assert_eq!(export_of(&root, Some("side"), &At::Head).await, export);
        let again = build_missing(&root, &by("ann", Some("side")))
            .await
            .unwrap();
        assert_eq!(again.graph_commit_id, None);
        bed.is_sound().await;
    });
}

#[test]
fn full_text_is_rebuilt_over_every_fragment() {
    run(|| async {
        let bed = Bed::of(1, 4).await;
        let root = bed.root().await;
        build_missing(&root, &IndexOptions::default())
            .await
            .unwrap();
        bed.append(&records(4, 8)).await;
        let lag = |shape: &std::collections::BTreeMap<String, TableShape>| {
            let indexes = &shape["node:Place"].indexes;
            (
                indexes["code_idx"],
                indexes["note_idx"],
                indexes["__id_idx"],
            )
        };
        assert_eq!(lag(&bed.shape().await), (1, 1, 1));
        let before = bed.shape().await;
        let mut planned = plan_full_text(&root, None).await.unwrap();
        let mut report = rebuild_full_text(&root, &by("ann", None)).await.unwrap();
        assert_eq!(report.rebuilt_indexes, planned.full_text_indexes);
        let after = bed.shape().await;
        // Only full text, and under the names it had.
        assert_eq!(lag(&after), (0, 0, 1));
        assert_eq!(
            after["node:Place"].indexes.len(),
            before["node:Place"].indexes.len()
        );
        assert_eq!(
            after["node:Place"].version,
            before["node:Place"].version + 1
        );
        assert_eq!(bed.state().await.head.actor_id.as_deref(), Some("ann"));
        planned.uri = "<uri>".into();
        (report.uri, report.graph_commit_id) = ("<uri>".into(), Some("<id>".into()));
        insta::assert_snapshot!(
            "rebuild_plan",
            serde_json::to_string_pretty(&planned).unwrap()
        );
        insta::assert_snapshot!("rebuild", serde_json::to_string_pretty(&report).unwrap());
        bed.is_sound().await;
    });
}

#[test]
fn without_full_text_nothing_is_committed() {
    run(|| async {
        let bed = Bed::empty("node A { n: I64 @index }\n").await;
        bed.append("{\"type\":\"A\",\"data\":{\"n\":1}}\n").await;
        let head = bed.state().await.head;
        let report = rebuild_full_text(&bed.root().await, &IndexOptions::default())
            .await
            .unwrap();
        assert_eq!((report.graph_commit_id, report.warnings.len()), (None, 0));
        assert_eq!(bed.state().await.head, head);
    });
}
