//! Files that no manifest names (behaviour 19), and manifests that cannot be read.

use super::support::*;

const PERSON: &str = "node:Person";

#[test]
fn orphans_go_after_seven_days() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let table = graph.table(PERSON).await;
        let old = |key: &str, days: u64| {
            let key = format!("{table}/{key}");
            graph.write(&key, b"0123456789");
            graph.age(&key, days);
        };
        let goes = [
            "data/old.lance",
            "data/old/1000.blob",
            "_deletions/0-1-2.arrow",
            "_transactions/1-x.txn",
            "_omnigraph/deleted_ids/x.json",
            "_indices/11111111-1111-1111-1111-111111111111/a",
            "_indices/11111111-1111-1111-1111-111111111111/b/c",
            "_versions/.tmp_1.manifest",
        ];
        let stays = [
            ("data/young.lance", 6),
            ("data/old/0100.blob", 1),
            ("_indices/22222222-2222-2222-2222-222222222222/a", 30),
            ("_indices/22222222-2222-2222-2222-222222222222/b", 6),
            ("data/unknown.bin", 900),
            ("notes.txt", 900),
            ("_other/data/x.lance", 900),
            ("_versions/notes", 900),
        ];
        for key in goes {
            old(key, 8);
        }
        for (key, days) in stays {
            old(key, days);
        }
        // The policy does not matter.
        let policy = maintain::cleanup::Policy::new(Some(1000), Some("52w")).unwrap();
        let report = graph.clean(policy).await;
        fine(&report);
        let left = graph.keys(&table);
        for key in goes {
            assert!(!left.contains(&format!("{table}/{key}")), "{key}");
        }
        for (key, _) in stays {
            assert!(left.contains(&format!("{table}/{key}")), "{key}");
        }
        let person = row(&report, PERSON);
        assert_eq!((person.files_removed, person.manifests_removed), (8, 0));
        assert_eq!((person.bytes_removed, person.index_bytes_removed), (60, 20));
        idle(&graph.clean(policy).await);
    });
}

#[test]
fn what_cannot_be_read_keeps_every_file_of_its_table() {
    run(|| async {
        for damage in [
            "d9223372036854775999.manifest",
            "7.manifest",
            "18446744073709551000.manifest",
        ] {
            let graph = Graph::new().await;
            for n in 0..3 {
                graph.people(None, &[&format!("p{n}")]).await;
            }
            let table = graph.table(PERSON).await;
            graph.write(&format!("{table}/_versions/{damage}"), b"not a manifest");
            graph.write(&format!("{table}/data/x.lance"), b"x");
            graph.age_all(&table, 30);
            let files = graph.keys(&format!("{table}/data"));
            let report = graph.clean(keep(1)).await;
            fine(&report);
            let person = row(&report, PERSON);
            assert_eq!(
                (person.manifests_removed, person.files_removed),
                (2, 0),
                "{damage}"
            );
            assert!(
                report.notes.iter().any(|n| n.contains("cannot be told")),
                "{damage}"
            );
            assert_eq!(graph.keys(&format!("{table}/data")), files, "{damage}");
            assert!(
                graph
                    .path()
                    .join(&table)
                    .join("_versions")
                    .join(damage)
                    .exists()
            );
        }
    });
}

#[test]
fn a_head_that_cannot_be_read_is_the_error_of_its_row() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        let table = graph.table(PERSON).await;
        let root = graph.root().await;
        let shown = graph::view::snapshot(&root, None, &graph::view::At::Head)
            .await
            .unwrap();
        let person = shown.tables.iter().find(|t| t.table_key == PERSON).unwrap();
        let staged = person.state.pin().unwrap().metadata.staged_version.unwrap();
        let key = format!("{table}/_versions/d{staged}.manifest");
        let bytes = std::fs::read(graph.path().join(&key)).unwrap();
        graph.write(&key, &bytes[..bytes.len() - 1]);
        let before = graph.digest();
        let report = graph.clean(keep(1)).await;
        let error = row(&report, PERSON).error.clone().unwrap();
        assert!(error.contains("cannot be read"), "{error}");
        assert_eq!(graph.digest(), before);
    });
}
