//! The publish algorithm on storage: conflicts, retries, merges, lost answers.

use fixtures::fault_store::{Effect, Fault, FaultStore, Kind, On, seen_uri};
use graph::history::lookup::HistoryReader;
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::refs::BranchIdentifier;
use graph::store::{Root, RootOptions};
use graph::view::{At, commit_list, snapshot};
use ulid::Ulid;
use write::WriteError;
use write::branches::{create, delete};
use write::capture::Capture;
use write::load::{LoadOptions, Mode};
use write::publish::{
    Authority, Changes, ExpectedTable, Lineage, Merged, NewPin, Precondition, Request, Update,
    budget, publish, publish_captured,
};

use crate::support::*;

fn lineage(branch: Option<&str>) -> Lineage {
    Lineage {
        nonce: Ulid::new(),
        branch: branch.map(str::to_string),
        actor: Some("tester".into()),
        created_at: 1_700_000_000_000_000,
        merged: None,
        budget: HISTORY_RELEASE_BYTES,
    }
}

fn commit_only(precondition: Precondition) -> Request {
    Request {
        changes: Changes::default(),
        expected: Vec::new(),
        lineage: lineage(None),
        precondition,
    }
}

#[test]
fn a_publish_is_one_commit_with_the_fields_it_was_given() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let before = graph.state(None).await;
        let request = commit_only(Precondition::Any);
        let published = publish(&graph.root, &request).await.unwrap();
        let head = &published.state.head;
        assert_eq!(published.version.version, 2);
        assert_eq!(head.actor_id.as_deref(), Some("tester"));
        assert_eq!(head.created_at, request.lineage.created_at);
        assert_eq!(head.generation, 1);
        assert_eq!(
            head.parent_commit_id.as_deref(),
            Some(before.head.graph_commit_id.as_str())
        );
        assert_eq!(head.schema_content_hash, before.head.schema_content_hash);
        let nonce = request.lineage.nonce;
        assert_eq!(head.graph_commit_id, format!("hb1.{nonce}.1.{nonce}"));
        assert_eq!(graph.state(None).await, *published.state);
        // By its nonce alone it is found too.
        let at = At::Commit(nonce.to_string());
        let found = snapshot(&graph.root, None, &at).await.unwrap();
        assert_eq!(found.head, *head);
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn a_condition_that_fails_is_typed_and_writes_nothing() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let capture = Capture::of(&graph.root, None).await.unwrap();
        let row = capture.state.tables[0].clone();
        publish(&graph.root, &commit_only(Precondition::Any))
            .await
            .unwrap();
        let before = fixtures::tree::tree_digest(graph.path()).unwrap();
        let member = |result: write::Result<write::publish::Published>| match result.unwrap_err() {
            WriteError::ReadSetChanged { member, .. } => member,
            WriteError::VersionMismatch {
                expected, actual, ..
            } => format!("{expected} {actual}"),
            other => panic!("{other}"),
        };
        let stale = commit_only(capture.precondition());
        assert_eq!(
            member(publish(&graph.root, &stale).await),
            "graph_head:main"
        );
        let now = Capture::of(&graph.root, None).await.unwrap();
        let Precondition::ExactGraphHead(authority) = now.precondition() else {
            panic!()
        };
        let version = commit_only(Precondition::ExactGraphVersion(authority.clone(), 1));
        assert_eq!(
            member(publish(&graph.root, &version).await),
            "prepared_schema_manifest_version"
        );
        let other = commit_only(Precondition::ExactGraphHead(Authority {
            identifier: BranchIdentifier {
                version_mapping: vec![(1, "a".repeat(32))],
            },
            ..authority
        }));
        assert_eq!(
            member(publish(&graph.root, &other).await),
            "branch_identifier:main"
        );
        let mut moved = commit_only(Precondition::Any);
        moved.expected = vec![ExpectedTable {
            table_version: 7,
            ..ExpectedTable::of(&row)
        }];
        assert_eq!(member(publish(&graph.root, &moved).await), "7 1");
        let after = fixtures::tree::tree_digest(graph.path()).unwrap();
        assert_eq!(after, before);
    })
    .unwrap();
}

#[test]
fn a_lost_race_is_tried_again_and_a_lost_answer_is_looked_up() {
    on_deep_stack(|| async {
        for (effect, landed) in [
            (Effect::Conflict, 1),
            (Effect::LoseAnswer, 1),
            (Effect::Fail, 0),
        ] {
            let graph = Graph::new().await;
            let faults = FaultStore::new();
            let options = RootOptions {
                wrapper: Some(faults.wrapper()),
            };
            let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
            faults.reset();
            faults.arm(Fault {
                on: On::Path(Kind::Create, "__manifest/_versions".into(), 1),
                effect,
            });
            let result = publish(&root, &commit_only(Precondition::Any)).await;
            assert_eq!(faults.injected(), 1, "{effect:?}");
            assert_eq!(result.is_ok(), landed == 1, "{effect:?}: {result:?}");
            assert_eq!(graph.state(None).await.version, 1 + landed, "{effect:?}");
            if let Ok(published) = result {
                assert_eq!(graph.state(None).await.head, published.state.head);
            }
            graph.verify().await;
        }
    })
    .unwrap();
}

#[test]
fn publishers_without_a_condition_all_land() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let root = graph.root.clone();
            tasks.push(tokio::spawn(async move {
                publish(&root, &commit_only(Precondition::Any)).await
            }));
        }
        let mut landed = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(_) => landed += 1,
                Err(WriteError::Graph(graph::Error::Conflict(text))) => {
                    assert!(text.contains("6 attempts"), "{text}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(landed > 0);
        assert_eq!(graph.state(None).await.version, 1 + landed);
        graph.verify().await;
    })
    .unwrap();
}

/// A merge keeps of its source what the target's history would otherwise lose.
#[test]
fn a_merge_records_both_parents_and_keeps_the_source() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        graph.load(Mode::Append, &people(&["a"])).await;
        let base = graph.state(None).await.head.graph_commit_id;
        create(&graph.root, "dev", None).await.unwrap();
        let mut ids = Vec::new();
        for code in ["b", "c"] {
            let loaded = graph
                .load_branch("dev", Mode::Append, &people(&[code]))
                .await;
            ids.push(loaded.graph_commit_id.unwrap());
        }
        let source = Capture::of(&graph.root, Some("dev")).await.unwrap();
        let target = Capture::of(&graph.root, None).await.unwrap();
        let (row, pin) = source.table("node:Person").unwrap();
        // Adopting the source's pin: the target has not changed the table since the base.
        let request = Request {
            changes: Changes {
                updates: vec![Update::Pin {
                    identity: row.identity,
                    table_key: row.table_key.clone(),
                    pin: Box::new(NewPin {
                        table_version: pin.table_version,
                        table_branch: pin.table_branch.clone(),
                        row_count: pin.row_count,
                        metadata: pin.metadata.clone(),
                    }),
                }],
                ..Changes::default()
            },
            expected: target.state.tables.iter().map(ExpectedTable::of).collect(),
            lineage: Lineage {
                merged: Some(Merged {
                    state: source.state.clone(),
                    base: Some(base.clone()),
                }),
                ..lineage(None)
            },
            precondition: target.precondition(),
        };
        let merged = publish(&graph.root, &request).await.unwrap();
        let head = &merged.state.head;
        assert_eq!(head.merged_parent_commit_id.as_ref(), ids.last());
        assert_eq!(head.parent_commit_id.as_ref(), Some(&base));
        assert_eq!(head.generation, 4);
        // The source's commits are in the history, the base's and older ones are not.
        let reader = HistoryReader::new(graph.root.clone());
        for id in &ids {
            let record = reader.record(id).await.unwrap().unwrap();
            assert_eq!(record.commit.graph_commit_id, *id);
        }
        assert!(reader.record(&base).await.unwrap().is_none());
        assert!(graph.shown().await.contains("\"id\":\"c\""));
        assert_eq!(commit_list(&graph.root, None).await.unwrap().len(), 3);
        // Merging again after more work keeps only what is new.
        graph
            .load_branch("dev", Mode::Append, &people(&["d"]))
            .await;
        delete(&graph.root, "dev").await.unwrap();
        graph.verify().await;
    })
    .unwrap();
}

#[test]
fn the_release_budget_is_bounded() {
    assert_eq!(budget(None).unwrap(), HISTORY_RELEASE_BYTES);
    assert_eq!(budget(Some("1024")).unwrap(), 1_024);
    assert_eq!(budget(Some(" 262144 ")).unwrap(), 262_144);
    for bad in ["", "1023", "262145", "-1", "1k"] {
        assert!(budget(Some(bad)).is_err(), "{bad}");
    }
}

#[test]
fn an_actor_that_fits_no_record_is_refused() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let options = LoadOptions {
            actor: Some("x".repeat(262_144)),
            ..options(Mode::Append)
        };
        let refused = graph.try_load(&people(&["a"]), &options).await;
        assert!(
            matches!(refused, Err(WriteError::ResourceLimitExceeded { .. })),
            "{refused:?}"
        );
        assert_eq!(graph.state(None).await.version, 1);
    })
    .unwrap();
}

/// The cost of one append, counted where every request passes.
#[test]
fn an_append_makes_few_requests() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let city = |n: u32| format!("{{\"type\":\"City\",\"data\":{{\"name\":\"{n}\"}}}}");
        let mut seen = Vec::new();
        for n in 0..8 {
            let faults = FaultStore::new();
            let options = RootOptions {
                wrapper: Some(faults.wrapper()),
            };
            let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
            faults.reset();
            load_into(&root, &city(n), &crate::support::options(Mode::Append))
                .await
                .unwrap();
            let counts = faults.counts();
            seen.push(counts.reads() + counts.mutations());
        }
        // The third reads the fragments of the first ones and commits their rows as one, and so does every second after it.
        let folding = 3 + 3;
        // The same at any depth.
        let plain = 16;
        let folds = plain + folding;
        assert_eq!(
            seen,
            [plain, plain, folds, plain, folds, plain, folds, plain]
        );
    })
    .unwrap();
}

#[test]
fn a_publish_over_a_capture_reads_nothing_again_while_it_is_the_latest() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let fork = create(&graph.root, "fork", None).await.unwrap();
        assert_eq!(fork.branch, "fork");
        for branch in [None, Some("fork")] {
            let store = FaultStore::new();
            let options = RootOptions {
                wrapper: Some(store.wrapper()),
            };
            let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
            let capture = Capture::of(&root, branch).await.unwrap();
            let mut request = commit_only(capture.precondition());
            request.lineage = lineage(branch);
            store.reset();
            let first = publish_captured(&root, &capture, &request).await.unwrap();
            let gets = |store: &FaultStore| {
                let requests = store.requests();
                let of = |end: &str| {
                    requests
                        .iter()
                        .any(|r| r.kind == Kind::Get && r.path.ends_with(end))
                };
                (of(".lance"), of(".manifest"))
            };
            assert_eq!(gets(&store), (false, false), "{:#?}", store.requests());
            assert_eq!(first.state.version, capture.state.version + 1);
            // Once another version is there, the precondition is checked against it, before any write.
            let before = fixtures::tree::tree_digest(graph.path()).unwrap();
            request.lineage.nonce = Ulid::new();
            let refused = publish_captured(&root, &capture, &request).await;
            assert!(
                matches!(refused, Err(WriteError::ReadSetChanged { .. })),
                "{refused:?}"
            );
            assert_eq!(fixtures::tree::tree_digest(graph.path()).unwrap(), before);
        }
        graph.verify().await;
    })
    .unwrap();
}

/// Remove all that a graph holds.
fn empty(graph: &Graph) {
    for entry in std::fs::read_dir(graph.path()).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
}

#[test]
fn a_publish_over_a_capture_of_a_graph_that_was_made_anew_is_refused() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let capture = Capture::of(&graph.root, None).await.unwrap();
        assert!(graph.root.is_latest(&capture.version).await.unwrap());
        empty(&graph);
        write::genesis::init(&graph.root, "node Other { n: I64 }", false)
            .await
            .unwrap();
        let before = fixtures::tree::tree_digest(graph.path()).unwrap();
        let request = commit_only(capture.precondition());
        let refused = publish_captured(&graph.root, &capture, &request).await;
        assert!(
            matches!(refused, Err(WriteError::ReadSetChanged { .. })),
            "{refused:?}"
        );
        assert_eq!(fixtures::tree::tree_digest(graph.path()).unwrap(), before);
    })
    .unwrap();
}

#[test]
fn what_is_kept_of_a_branch_is_what_its_version_holds() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        create(&graph.root, "fork", None).await.unwrap();
        let store = FaultStore::new();
        let options = RootOptions {
            wrapper: Some(store.wrapper()),
        };
        let root = Root::open(&seen_uri(&graph.path()), options).await.unwrap();
        let reads_rows = || {
            store
                .requests()
                .iter()
                .any(|r| r.kind == Kind::Get && r.path.contains("__manifest/data/"))
        };
        // Small blocks: one of the publishes releases its buffer.
        let mut options = crate::support::options(Mode::Append);
        options.budget = 1_024;
        for n in 0..12 {
            options.branch = (n % 3 == 2).then(|| "fork".to_string());
            let city = format!("{{\"type\":\"City\",\"data\":{{\"name\":\"{n}\"}}}}");
            store.reset();
            load_into(&root, &city, &options).await.unwrap();
            // The first reads what the fork was made from too; no later one reads.
            assert_eq!(reads_rows(), n == 0, "{n}: {:#?}", store.requests());
            let branch = options.branch.as_deref();
            let kept = Capture::of(&root, branch).await.unwrap();
            let read = Capture::of(&open(&graph.path()).await, branch)
                .await
                .unwrap();
            assert_eq!(kept.state, read.state, "{n}");
            assert_eq!(kept.version.version, read.version.version);
        }
        // Another writer's version is read.
        options.branch = None;
        load_into(
            &graph.root,
            "{\"type\":\"City\",\"data\":{\"name\":\"theirs\"}}",
            &options,
        )
        .await
        .unwrap();
        store.reset();
        let theirs = Capture::of(&root, None).await.unwrap();
        assert!(reads_rows());
        assert_eq!(*theirs.state, graph.state(None).await);
        // A branch made anew is not the one that was kept.
        delete(&graph.root, "fork").await.unwrap();
        create(&graph.root, "fork", None).await.unwrap();
        let anew = Capture::of(&root, Some("fork")).await.unwrap();
        assert_eq!(*anew.state, graph.state(Some("fork")).await);
        graph.verify().await;
        // Nor is a graph made anew that has come to the same version.
        empty(&graph);
        write::genesis::init(&graph.root, "node City { name: String }", false)
            .await
            .unwrap();
        for n in 1..theirs.version.version {
            let city = format!("{{\"type\":\"City\",\"data\":{{\"name\":\"anew{n}\"}}}}");
            load_into(&graph.root, &city, &options).await.unwrap();
        }
        let anew = Capture::of(&root, None).await.unwrap();
        assert_eq!(anew.version.version, theirs.version.version);
        assert_eq!(*anew.state, graph.state(None).await);
        assert_ne!(anew.state, theirs.state);
    })
    .unwrap();
}
