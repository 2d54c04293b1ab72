//! Verdicts over versions that nothing names, on real ones (behaviour 18).

use std::collections::HashMap;
use std::sync::Arc;

use graph::refs::BranchIdentifier;
use graph::store::Root;
use graph::table::open_pin;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{Operation, Transaction, UpdateMap};
use write::capture::Capture;
use write::table::Witness;

use super::support::*;

const PERSON: &str = "node:Person";

/// Stage a version on a branch's image of the persons, with these transaction properties. Its manifest's name.
async fn stage(root: &Root, branch: Option<&str>, properties: HashMap<String, String>) -> String {
    let capture = Capture::of(root, branch).await.unwrap();
    let (row, pin) = capture.table(PERSON).unwrap();
    let opened = open_pin(root, row, pin).await.unwrap();
    let operation = Operation::UpdateConfig {
        config_updates: Some(UpdateMap {
            update_entries: Vec::new(),
            replace: false,
        }),
        table_metadata_updates: None,
        schema_metadata_updates: None,
        field_metadata_updates: HashMap::new(),
    };
    let transaction = Transaction {
        transaction_properties: Some(Arc::new(properties)),
        ..Transaction::new(opened.dataset.manifest().version, operation, None)
    };
    let dataset = CommitBuilder::new(opened.dataset)
        .with_session(root.session().clone())
        .with_commit_handler(root.commit_handler().clone())
        .with_detached(true)
        .with_max_retries(1)
        .with_skip_auto_cleanup(true)
        .execute(transaction)
        .await
        .unwrap();
    format!("d{}.manifest", dataset.manifest().version)
}

async fn witness(root: &Root, branch: Option<&str>) -> HashMap<String, String> {
    let capture = Capture::of(root, branch).await.unwrap();
    capture.witness().unwrap().properties()
}

#[test]
fn verdicts_over_real_versions() {
    run(|| async {
        let graph = Graph::new().await;
        let root = graph.root().await;
        let first = graph.person(None, "ada", 1).await;
        graph.branch("b", None).await;
        graph.branch("gone", None).await;
        let of_gone = witness(&root, Some("gone")).await;
        let mut malformed = witness(&root, None).await;
        malformed.insert("omnigraph.staged_against_graph_head".into(), "x".into());
        let mut half = witness(&root, None).await;
        half.remove("omnigraph.staged_against_graph_head");
        let none = Witness::new(&BranchIdentifier::main(), None).unwrap();
        let elsewhere = Witness::new(
            &BranchIdentifier::main(),
            Some("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        )
        .unwrap();
        let passed = witness(&root, None).await;
        // Each is (staged, whether it goes).
        let mut cases = vec![
            (stage(&root, None, passed).await, true),
            (stage(&root, None, none.properties()).await, true),
            (stage(&root, None, of_gone).await, true),
            (stage(&root, None, malformed).await, false),
            (stage(&root, None, half).await, false),
            (stage(&root, None, HashMap::new()).await, false),
            (stage(&root, None, elsewhere.properties()).await, false),
        ];
        graph.person(None, "ada", 2).await;
        graph.delete_branch("gone").await;
        // A branch of the same name is another incarnation.
        graph.branch("gone", None).await;
        let unpublished = witness(&root, Some("b")).await;
        assert_eq!(unpublished["omnigraph.staged_against_graph_head"], "");
        let current = witness(&root, None).await;
        assert_ne!(current["omnigraph.staged_against_graph_head"], first);
        cases.push((stage(&root, Some("b"), unpublished).await, false));
        cases.push((stage(&root, None, current).await, false));

        let table = graph.table(PERSON).await;
        // Age decides nothing.
        graph.age_all(&table, 400);
        let report = graph.clean(keep(9)).await;
        fine(&report);
        let person = row(&report, PERSON);
        let left = graph.keys(&format!("{table}/_versions"));
        for (at, (name, goes)) in cases.iter().enumerate() {
            let there = left.iter().any(|k| k.ends_with(name));
            assert_eq!(there, !goes, "case {at}");
        }
        let staging = person.staging;
        assert_eq!(
            (
                staging.dead.manifests,
                staging.undecidable.manifests,
                staging.live.manifests
            ),
            (3, 4, 2)
        );
        assert_eq!(person.unpublished_manifests, 9);
        assert_eq!(person.manifests_removed, 3);
        assert!(person.unpublished_bytes > 0);
        // The transaction files of what is kept stay, however old.
        let files = graph.keys(&format!("{table}/_transactions")).len();
        assert_eq!(files, 3 + 6);
        let again = graph.clean(keep(9)).await;
        idle(&again);
        assert_eq!(row(&again, PERSON).unpublished_manifests, 6);
        // Kept staging does not keep published versions from going.
        fine(&graph.clean(keep(1)).await);
        idle(&graph.clean(keep(1)).await);
    });
}
