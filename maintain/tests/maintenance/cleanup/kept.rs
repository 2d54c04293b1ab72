//! What a policy, a base, a tag keeps (behaviours 14 to 17, 20, 23, 26 to 28).

use fixtures::fault_store::{FaultStore, Kind, seen_uri};
use fixtures::tree::tree_changes;
use graph::digest::sha256_hex;
use graph::store::{Root, RootOptions};
use graph::view::At;
use maintain::Stop;
use maintain::cleanup::capture::capture;
use maintain::cleanup::reason::Reason;
use maintain::cleanup::roots::collect;
use maintain::cleanup::{Policy, execute, plan, validate};
use write::load::Mode;

use super::support::*;

const PERSON: &str = "node:Person";

#[test]
fn keep_1_leaves_the_head_and_a_second_run_removes_nothing() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..5 {
            graph.person(None, "ada", n).await;
        }
        let head = graph.rows(None, &At::Head).await.unwrap();
        let table = graph.table(PERSON).await;
        let (commits, before) = (graph.commits().await, graph.digest());

        let preview = graph.preview(keep(1)).await;
        assert_eq!(tree_changes(&before, &graph.digest()), [""; 0]);
        let report = graph.clean(keep(1)).await;
        fine(&report);
        // Four published versions go; the newest and the linear creation stay.
        let person = row(&report, PERSON);
        assert_eq!(person.manifests_removed, 4);
        assert_eq!(person.old_versions_removed, 4);
        let planned = row(&preview, PERSON);
        assert_eq!(
            (
                planned.manifests_removed,
                planned.files_removed,
                planned.bytes_removed
            ),
            (
                person.manifests_removed,
                person.files_removed,
                person.bytes_removed
            )
        );
        assert_eq!(graph.keys(&format!("{table}/_versions")).len(), 3);
        let after = graph.digest();
        let gone: u64 = before
            .iter()
            .filter(|(key, _)| !after.contains_key(*key))
            .map(|(key, (size, _))| {
                assert!(key.starts_with(&table), "{key}");
                size
            })
            .sum();
        assert_eq!(gone, person.bytes_removed);
        assert_eq!(
            tree_changes(&after, &before).len() as u64,
            4 + person.files_removed
        );
        assert_eq!(graph.rows(None, &At::Head).await.unwrap(), head);
        assert_eq!(graph.commits().await, commits);
        assert!(graph.rows(None, &At::Version(3)).await.is_err());
        idle(&graph.clean(keep(1)).await);
        assert_eq!(graph.digest(), after);
    });
}

#[test]
fn keep_counts_the_commits_of_each_branch() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..4 {
            graph.person(None, "ada", n).await;
        }
        graph.branch("b", None).await;
        for n in 4..8 {
            graph.person(Some("b"), "ada", n).await;
            graph.person(None, "eve", n).await;
        }
        fine(&graph.clean(keep(2)).await);
        // Main is at 9, b at 9; b was created at 5.
        for (branch, reads, gone) in [
            (None, vec![9, 8, 5], vec![7, 6, 4, 3, 2]),
            (Some("b"), vec![9, 8, 5], vec![7, 6]),
        ] {
            for version in reads {
                graph.rows(branch, &At::Version(version)).await.unwrap();
            }
            for version in gone {
                let read = graph.rows(branch, &At::Version(version)).await;
                assert!(read.is_err(), "{branch:?} {version}");
            }
        }
        idle(&graph.clean(keep(2)).await);
    });
}

#[test]
fn both_options_keep_the_union() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..4 {
            graph.person(None, "ada", n).await;
        }
        idle(&graph.clean(Policy::new(Some(1), Some("1h")).unwrap()).await);
        fine(&graph.clean(Policy::new(Some(2), Some("0")).unwrap()).await);
        graph.rows(None, &At::Version(5)).await.unwrap();
        graph.rows(None, &At::Version(4)).await.unwrap();
        assert!(graph.rows(None, &At::Version(3)).await.is_err());
    });
}

#[test]
fn a_merge_base_that_is_no_head_stays() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        graph.branch("b", None).await;
        graph.branch("c", Some("b")).await;
        graph.person(Some("b"), "bob", 1).await;
        let base = graph.person(Some("b"), "bob", 2).await;
        graph.branch("d", Some("b")).await;
        for n in 3..6 {
            graph.person(Some("b"), "bob", n).await;
            graph.person(Some("d"), "dan", n).await;
            graph.person(None, "eve", n).await;
        }
        // The creation base of d is the merge base of b and d: keep it by the second rule alone.
        graph.delete_branch("c").await;
        let at = At::Commit(base);
        let before = graph.rows(None, &at).await.unwrap();
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert!(row(&report, PERSON).manifests_removed > 0);
        assert_eq!(graph.rows(None, &at).await.unwrap(), before);
        idle(&graph.clean(keep(1)).await);
    });
}

#[test]
fn a_base_of_heads_without_its_branch_stays() {
    run(|| async {
        // x and y start from main at 3; main goes on. Their base is main's commit at 3.
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let base = graph.person(None, "ada", 2).await;
        graph.branch("x", None).await;
        graph.person(Some("x"), "xen", 1).await;
        graph.branch("y", Some("x")).await;
        for n in 3..6 {
            graph.person(None, "ada", n).await;
            graph.person(Some("y"), "yan", n).await;
        }
        graph.delete_branch("x").await;
        // y's base is x's commit at 4; main and y meet at main's commit at 3, which only the base rule keeps.
        let at = At::Commit(base);
        let before = graph.rows(None, &at).await.unwrap();
        let planned = graph.preview(keep(1)).await;
        let kept = &row(&planned, PERSON).kept;
        assert!(
            kept.iter().any(|k| k.reason == Reason::MergeBase),
            "{kept:?}"
        );
        fine(&graph.clean(keep(1)).await);
        assert_eq!(graph.rows(None, &at).await.unwrap(), before);
        assert!(graph.rows(None, &At::Version(2)).await.is_err());
        idle(&graph.clean(keep(1)).await);
    });
}

#[test]
fn a_tag_on_an_old_version_stays_and_leaves_nothing_of_newer_ones() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..6 {
            graph.people(None, &["ada", &format!("p{n}")]).await;
        }
        graph.tag("__manifest", "release", None, 3);
        let tagged = graph.rows(None, &At::Version(3)).await.unwrap();
        let table = graph.table(PERSON).await;
        fine(&graph.clean(keep(1)).await);
        assert_eq!(graph.rows(None, &At::Version(3)).await.unwrap(), tagged);
        assert!(graph.rows(None, &At::Version(4)).await.is_err());
        // Head, the tagged one and the empty creation: two data files, two transactions and the creation's.
        assert_eq!(graph.keys(&format!("{table}/data")).len(), 2);
        assert_eq!(graph.keys(&format!("{table}/_transactions")).len(), 3);
        idle(&graph.clean(keep(1)).await);
        std::fs::remove_file(graph.path().join("__manifest/_refs/tags/release.json")).unwrap();
        fine(&graph.clean(keep(1)).await);
        assert_eq!(graph.keys(&format!("{table}/data")).len(), 1);
        assert!(graph.rows(None, &At::Version(3)).await.is_err());
    });
}

#[test]
fn tags_of_a_table_stay() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..4 {
            graph.person(None, "ada", n).await;
        }
        let table = graph.table(PERSON).await;
        let root = graph.root().await;
        let snapshot = graph::view::snapshot(&root, None, &At::Version(3))
            .await
            .unwrap();
        let pin = snapshot
            .tables
            .iter()
            .find(|t| t.table_key == PERSON)
            .unwrap();
        let staged = pin.state.pin().unwrap().metadata.staged_version.unwrap();
        graph.tag(&table, "old", None, staged);
        let tagged = graph.rows(None, &At::Version(3)).await.unwrap();
        let report = graph.clean(keep(1)).await;
        fine(&report);
        assert!(
            row(&report, PERSON)
                .kept
                .iter()
                .any(|k| k.reason == Reason::Tag)
        );
        assert_eq!(graph.rows(None, &At::Version(3)).await.unwrap(), tagged);
        graph.tag(&table, "linear", None, 1);
        idle(&graph.clean(keep(1)).await);
        // One that names what is not there makes the row an error.
        graph.tag(&table, "lost", None, 77);
        graph.person(None, "ada", 9).await;
        let report = graph.clean(keep(1)).await;
        let error = row(&report, PERSON).error.clone().unwrap();
        assert!(
            error.contains("is absent from the listing") && error.contains("'lost'"),
            "{error}"
        );
    });
}

#[test]
fn a_lost_version_stops_its_table_and_every_file() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..4 {
            graph.person(None, "ada", n).await;
            let line = format!(r#"{{"type":"City","data":{{"name":"c{n}"}}}}"#);
            graph.load(None, Mode::Overwrite, &line).await;
        }
        let (person, city) = (graph.table(PERSON).await, graph.table("node:City").await);
        let root = graph.root().await;
        let shown = graph::view::snapshot(&root, None, &At::Version(7))
            .await
            .unwrap();
        let table = shown.tables.iter().find(|t| t.table_key == PERSON).unwrap();
        let lost = table.state.pin().unwrap().metadata.staged_version.unwrap();
        let key = format!("{person}/_versions/d{lost}.manifest");
        std::fs::remove_file(graph.path().join(key)).unwrap();
        let before = graph.digest();
        let report = graph.clean(keep(3)).await;
        let broken = row(&report, PERSON);
        let error = broken.error.clone().unwrap();
        for words in [
            "is absent from the listing",
            "--keep 1",
            PERSON,
            "branch main",
        ] {
            assert!(error.contains(words), "{error}");
        }
        assert_eq!((broken.manifests_removed, broken.bytes_removed), (0, 0));
        assert!(broken.foreign_versions.is_empty());
        let healthy = row(&report, "node:City");
        assert!(healthy.error.is_none() && healthy.manifests_removed > 0);
        assert_eq!(healthy.files_removed, 0);
        let changes = tree_changes(&before, &graph.digest());
        let manifests = format!("- {city}/_versions/");
        assert!(
            changes.iter().all(|c| c.starts_with(&manifests)),
            "{changes:?}"
        );
        let narrower = graph.clean(keep(1)).await;
        fine(&narrower);
        assert!(row(&narrower, PERSON).manifests_removed > 0);
    });
}

#[test]
fn a_graph_that_moved_refuses_the_plan() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        let root = graph.root().await;
        for change in 0..3 {
            let planned = graph.plan(keep(1)).await.unwrap();
            assert!(!planned.tables.is_empty());
            match change {
                0 => drop(graph.person(None, "ada", 9).await),
                1 => drop(graph.branch("b", None).await),
                _ => graph.tag("__manifest", "t", None, 2),
            }
            let before = graph.digest();
            let refused = execute(&root, &planned, 4, &Stop::default()).await;
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("run the command again"), "{text}");
            assert_eq!(graph.digest(), before);
        }
        let table = graph.table(PERSON).await;
        let planned = graph.plan(keep(1)).await.unwrap();
        graph.tag(&table, "t", None, 1);
        assert!(validate(&root, &planned).await.is_err());
    });
}

#[test]
fn a_stop_is_taken_before_the_first_effect() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        let (root, before) = (graph.root().await, graph.digest());
        let stop = Stop::default();
        let planned = plan(&root, keep(1), 4, &stop).await.unwrap();
        stop.request("SIGTERM");
        assert!(plan(&root, keep(1), 4, &stop).await.is_err());
        let text = execute(&root, &planned, 4, &stop).await.unwrap_err();
        assert!(text.to_string().contains("nothing was deleted"), "{text}");
        assert_eq!(graph.digest(), before);
    });
}

#[test]
fn history_catalog_and_everything_beside_tables_stay() {
    run(|| async {
        let graph = Graph::new().await;
        graph.write("__graph_index/csr-current.bin", b"x");
        graph.write("_schema.pg", b"x");
        graph.write("nodes/ffffffffffffffff-0000000000000001/data/a.lance", b"x");
        graph.age_all("nodes/ffffffffffffffff-0000000000000001", 30);
        for n in 0..4 {
            graph.person(None, "ada", n).await;
        }
        graph.branch("b", None).await;
        graph.person(Some("b"), "bob", 1).await;
        let (before, commits) = (graph.digest(), graph.commits().await);
        fine(&graph.clean(keep(1)).await);
        let table = graph.table(PERSON).await;
        for change in tree_changes(&before, &graph.digest()) {
            assert!(change.starts_with(&format!("- {table}/")), "{change}");
        }
        assert_eq!(graph.commits().await, commits);
    });
}

#[test]
fn a_dropped_and_re_added_type_has_two_rows() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let table = graph.table("node:City").await;
        let city = r#"{"type":"City","data":{"name":"c"}}"#;
        graph.load(None, Mode::Overwrite, city).await;
        graph.drop_city().await;
        graph.evolve(SCHEMA).await;
        let again = graph.table("node:City").await;
        assert_ne!(again, table);
        graph.load(None, Mode::Overwrite, city).await;
        graph.load(None, Mode::Overwrite, city).await;
        let head = graph.rows(None, &At::Head).await.unwrap();
        let report = graph.clean(keep(1)).await;
        fine(&report);
        let rows: Vec<_> = report
            .datasets
            .iter()
            .filter(|r| r.type_key == "node:City")
            .map(|r| (r.table_path.as_str(), r.manifests_removed))
            .collect();
        assert_eq!(rows, [(table.as_str(), 1), (again.as_str(), 1)]);
        let keys: Vec<_> = report.datasets.iter().map(|r| &r.type_key).collect();
        assert!(keys.is_sorted());
        // The creation stays.
        assert_eq!(graph.keys(&format!("{table}/data")).len(), 0);
        assert_eq!(graph.rows(None, &At::Head).await.unwrap(), head);
        idle(&graph.clean(keep(1)).await);
        // A folder that is gone as a whole is no error.
        std::fs::remove_dir_all(graph.path().join(&table)).unwrap();
        idle(&graph.clean(keep(1)).await);
    });
}

#[test]
fn merge_input_tags() {
    run(|| async {
        let graph = Graph::new().await;
        let old = graph.person(None, "ada", 1).await;
        let head = graph.person(None, "ada", 2).await;
        let ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let main = sha256_hex(br#"{"version_mapping":[]}"#);
        let gone = sha256_hex(b"gone");
        let name = |digest: &str, head: &str| {
            let id = hex::encode(head);
            format!("__omnigraph_merge_input_v1_{digest}_s{id}_{ulid}")
        };
        let (current, past, lost) = (name(&main, &head), name(&main, &old), name(&gone, &head));
        for tag in [&current, &past, &lost] {
            graph.tag("__manifest", tag, None, 2);
        }
        let report = graph.clean(keep(1)).await;
        fine(&report);
        let mut want = vec![past, lost];
        want.sort();
        assert_eq!(report.released_tags, want);
        assert_eq!(
            graph.keys("__manifest/_refs/tags"),
            [format!("__manifest/_refs/tags/{current}.json")]
        );
        graph.rows(None, &At::Version(2)).await.unwrap();
        graph.tag("__manifest", "__omnigraph_merge_input_v1_x", None, 2);
        let refused = graph.plan(keep(1)).await.unwrap_err().to_string();
        assert!(refused.contains("does not parse"), "{refused}");
    });
}

#[test]
fn a_preview_lists_each_table_once() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        graph.branch("b", None).await;
        let faults = FaultStore::new();
        let options = RootOptions {
            wrapper: Some(faults.wrapper()),
        };
        let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
        let before = graph.digest();
        faults.reset();
        plan(&root, keep(1), 4, &Stop::default()).await.unwrap();
        assert_eq!(faults.counts().mutations(), 0);
        assert_eq!(graph.digest(), before);
        let table = graph.table(PERSON).await;
        let lists: Vec<_> = faults
            .requests()
            .into_iter()
            .filter(|r| {
                r.kind == Kind::List && r.path.contains(&table) && !r.path.ends_with("_refs/tags")
            })
            .collect();
        assert_eq!(lists.len(), 1, "{lists:?}");
    });
}

#[test]
fn versions_that_the_listing_missed_refuse_the_plan() {
    run(|| async {
        let graph = Graph::new().await;
        graph.person(None, "ada", 1).await;
        let root = graph.root().await;
        let early = capture(&root).await.unwrap();
        collect(&root, &early, &keep(2)).await.unwrap();
        // Two publishes land between the listing and the read of the head.
        graph.person(None, "ada", 2).await;
        graph.person(None, "ada", 3).await;
        let mut late = capture(&root).await.unwrap();
        late.catalog = early.catalog;
        let refused = collect(&root, &late, &keep(2)).await.unwrap_err();
        assert!(matches!(refused, graph::Error::Conflict(_)), "{refused}");
    });
}

#[test]
fn a_location_whose_first_root_does_not_open_loses_nothing() {
    run(|| async {
        let graph = Graph::new().await;
        for n in 0..3 {
            graph.person(None, "ada", n).await;
        }
        let (root, table) = (graph.root().await, graph.table(PERSON).await);
        let planned = graph.plan(keep(1)).await.unwrap();
        let first = format!("{table}/_versions/{:020}.manifest", u64::MAX - 1);
        graph.write(&first, b"damaged after the plan");
        let before = graph.digest();
        let done = execute(&root, &planned, 4, &Stop::default()).await.unwrap();
        let error = done.tables[&table].error.clone().unwrap();
        assert!(error.contains("does not open"), "{error}");
        assert_eq!((done.deletes, graph.digest()), (0, before));
    });
}
