//! Linear versions (behaviour 21): those above the last recorded one are somebody else's.

use graph::view::At;
use lance::Dataset;

use super::support::*;

const PERSON: &str = "node:Person";

#[test]
fn foreign_versions_and_their_files_stay() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        let table = graph.table(PERSON).await;
        let path = graph.path().join(&table);
        let mut raw = Dataset::open(path.to_str().unwrap()).await.unwrap();
        for n in 0..2 {
            raw.update_config([(format!("foreign.{n}"), Some("x".to_string()))])
                .await
                .unwrap();
        }
        graph.age_all(&table, 30);
        let versions = graph.keys(&format!("{table}/_versions"));
        let report = graph.clean(keep(1)).await;
        fine(&report);
        let person = row(&report, PERSON);
        assert_eq!(person.foreign_versions, [2, 3]);
        assert_eq!(person.manifests_removed, 2);
        let left = graph.keys(&format!("{table}/_versions"));
        let gone: Vec<_> = versions.iter().filter(|k| !left.contains(k)).collect();
        assert!(gone.iter().all(|k| k.contains("/d")), "{gone:?}");
        // Head, creation, two foreign ones: each with its transaction.
        assert_eq!(graph.keys(&format!("{table}/_transactions")).len(), 4);
        graph.rows(None, &At::Head).await.unwrap();
        let again = graph.clean(keep(1)).await;
        idle(&again);
        assert_eq!(row(&again, PERSON).foreign_versions, [2, 3]);
    });
}
