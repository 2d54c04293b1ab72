//! Behaviours 1 to 8: which stamps and markers a run admits, and what a whole run reports.

use fixtures::damage::objects::plant_history;
use fixtures::damage::{readable_intent, rows};
use fixtures::legacy_writer::set_metadata;
use fixtures::tree::tree_changes;
use graph::manifest::{BranchState, batch, scan::open_branch};
use graph::model::Commit;
use graph::schema::Contract as StoredContract;
use graph::stamp::{PENDING_KEY, RECEIPT_KEY, STAMP_KEY};
use graph::store::{MANIFEST_DIR, Root, RootOptions};
use upgrade::{Outcome, UpgradeOptions, Work, upgrade};

use crate::support::*;

/// A graph that was born at stamp 14: one commit, no table.
async fn fresh_14(uri: &str) -> Root {
    let root = Root::open(uri, RootOptions::default()).await.unwrap();
    let (contract, _) =
        fixtures::fixture_s::contract_s(fixtures::contract::Vintage::Underscored).unwrap();
    let texts = StoredContract {
        head: contract.head(),
        source: contract.source(),
        ir: contract.ir_text(),
    };
    let state = BranchState {
        version: 1,
        native: None,
        tables: Vec::new(),
        head: Commit {
            graph_commit_id: attempt().to_string(),
            schema_contract: Some(texts.head.clone()),
            schema_content_hash: Some(texts.content_hash().unwrap()),
            graph_branch: None,
            native_branch: None,
            graph_manifest_version: 1,
            generation: 0,
            parent_commit_id: None,
            merged_parent_commit_id: None,
            actor_id: None,
            created_at: 1,
        },
        buffer: Vec::new(),
        replaced: Vec::new(),
        contract: texts.head.clone(),
        contract_texts: Some(texts),
    };
    let metadata = [(STAMP_KEY.to_string(), "14".to_string())].into();
    let rows = batch::encode(&state.to_rows().unwrap(), metadata).unwrap();
    root.create_dataset(MANIFEST_DIR, rows.schema(), vec![rows])
        .await
        .unwrap();
    root
}

#[test]
fn b01_fresh_stamp_14_graph_is_already_current() {
    run(|| async {
        let folder = tempfile::tempdir().unwrap();
        let root = fresh_14(folder.path().to_str().unwrap()).await;
        let before = fixtures::tree::tree_digest(folder.path()).unwrap();
        for check in [true, false] {
            let options = UpgradeOptions {
                check,
                ..UpgradeOptions::default()
            };
            let report = upgrade(&root, &options).await;
            assert_eq!(report.outcome, Outcome::AlreadyCurrent, "{report:#?}");
            assert!(report.target_defaulted && report.target_format == 14);
            assert_eq!(report.observed_format, Some(14));
            assert!(report.route.is_empty() && report.findings.is_empty());
            assert_eq!((report.work, report.recovery), (Work::default(), None));
        }
        let after = fixtures::tree::tree_digest(folder.path()).unwrap();
        assert_eq!(tree_changes(&before, &after), [""; 0]);
    });
}

#[test]
fn b02_stamp_14_layout_restamped_13_is_refused() {
    run(|| async {
        let case = Kind::S9.copy().await;
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
        let root = case.root().await;
        let head = root.open_manifest(None, None).await.unwrap();
        set_metadata(&root, &head.dataset, &[(STAMP_KEY, Some("13".into()))])
            .await
            .unwrap();
        Refused {
            code: "unsupported_source",
            route: Some(13),
            identity: false,
            says: &["stamp 13", "packed record"],
            recovery: None,
        }
        .by(&case)
        .await;
    });
}

#[test]
fn b03_targets_13_and_15_are_unsupported() {
    run(|| async {
        let source = Kind::S9.copy().await;
        let done = Kind::S9.copy().await;
        assert_eq!(done.execute().await.outcome, Outcome::Completed);
        for (case, target) in [(&source, 13), (&source, 15), (&done, 13), (&done, 15)] {
            let options = UpgradeOptions {
                target: Some(target),
                ..UpgradeOptions::default()
            };
            let report = Refused {
                code: "unsupported_target",
                route: None,
                identity: false,
                says: &["8, 9 and 13", "14"],
                recovery: None,
            }
            .with(case, options)
            .await;
            assert_eq!(
                (report.target_format, report.target_defaulted),
                (target, false)
            );
        }
    });
}

#[test]
fn b04_a_readable_intent_is_pending() {
    run(|| async {
        for (kind, source) in [(Kind::S8, 8), (Kind::S9, 9), (Kind::S9, 13)] {
            let case = kind.copy().await;
            let mut legacy = case.legacy(&[]).await;
            let n = &case.names;
            let live = [n.feature.as_str(), &n.fresh, &n.child];
            let text = readable_intent(&legacy, &attempt().to_string(), &live).unwrap();
            let own = format!(r#""source_format":{}"#, kind.stamp());
            let text = text.replace(&own, &format!(r#""source_format":{source}"#));
            let version = rows::pending(&mut legacy, &text).await.unwrap();
            let before = case.digest();
            let report = case.check().await;
            assert_eq!(report.outcome, Outcome::RecoveryRequired);
            assert_eq!(codes(&report), ["pending_upgrade"]);
            let recovery = report.recovery.clone().unwrap();
            assert_eq!(recovery.failed_handler, route(source));
            assert_eq!(
                recovery.executable_compatibility,
                "this omnigraph executable"
            );
            says(
                &recovery.action,
                &["offline", "backup", "--to-format 14", "without --check"],
            );
            says(message(&report), &[&attempt().to_string(), "14"]);
            assert!(report.route.is_empty());
            assert_eq!(report.work, Work::default());
            let root = case.root().await;
            let open = open_branch(&root, None).await.unwrap_err().to_string();
            assert_eq!(message(&report), open);
            assert_eq!(
                root.open_manifest(None, None).await.unwrap().version,
                version
            );
            assert_eq!(tree_changes(&before, &case.digest()), [""; 0]);
        }
    });
}

#[test]
fn b05_pending_value_nobody_owns() {
    run(|| async {
        let case = Kind::S9.copy().await;
        rows::pending(&mut case.legacy(&[]).await, "{}")
            .await
            .unwrap();
        let report = Refused {
            code: "unknown_upgrade_ownership",
            route: None,
            identity: false,
            says: &["missing field"],
            recovery: Some((
                "the omnigraph executable that started the conversion",
                UNROUTED,
            )),
        }
        .by(&case)
        .await;
        let action = report.recovery.unwrap().action;
        says(
            &action,
            &[
                "offline",
                "backup",
                "--check",
                "do not rerun without --check",
            ],
        );
    });
}

#[test]
fn b06_check_on_s_writes_nothing_and_counts() {
    run(|| async {
        for kind in Kind::UNLOCKED {
            let case = kind.copy().await;
            let before = case.digest();
            let report = case.check().await;
            assert_eq!(report.outcome, Outcome::CheckPassed, "{report:#?}");
            assert_eq!(tree_changes(&before, &case.digest()), [""; 0]);
            assert_eq!(report.route, [route(kind.stamp())]);
            let domain = case.names.contract.domain.clone();
            assert_eq!(report.graph_identity, Some(domain));
            assert_eq!(report.observed_format, Some(kind.stamp()));
            assert_eq!(report.location, case.uri());
            assert!(report.findings.is_empty() && report.completed_handlers.is_empty());
            assert_eq!(report.last_durable_completed_boundary, None);
            assert_eq!(report.recovery, None);
            let w = report.work;
            // Seven heads' worth of scans and every own version: main 4, feature 3, gone 1, idle 1;
            // child and fresh have none and read their head once.
            assert_eq!(w.census_reads, 6 + 4 + 3 + 1 + 1 + 2);
            assert!(w.census_cells > 0 && w.legacy_bytes > 0);
            let counted = Work {
                census_reads: 0,
                census_cells: 0,
                legacy_bytes: 0,
                ..w
            };
            assert_eq!(counted, case.names.work());
        }
    });
}

#[test]
fn b07_execute_on_s_converts_every_ref() {
    run(|| async {
        for kind in Kind::UNLOCKED {
            converts(kind).await;
        }
    });
}

async fn converts(kind: Kind) {
    let case = kind.copy().await;
    let check = case.check().await;
    let before = case.digest();
    let report = case.execute().await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
    assert_eq!(report.work, check.work);
    assert!(report.findings.is_empty());
    assert_eq!(
        report.last_durable_completed_boundary.as_deref(),
        Some("activated")
    );
    assert_eq!(report.completed_handlers, report.route);
    assert_eq!(report.observed_format, Some(kind.stamp()));
    assert_eq!(report.recovery, None);

    let after = case.digest();
    let changes = tree_changes(&before, &after);
    // Nothing that stood is gone or changed; the hint is Lance's own.
    let touched: Vec<&String> = changes
        .iter()
        .filter(|c| !c.starts_with('+') && !c.ends_with("latest_version_hint.json"))
        .collect();
    assert!(touched.is_empty(), "{touched:?}");
    assert!(
        changes.iter().all(|c| c[2..].starts_with("__")),
        "{changes:?}"
    );
    let legacy: Vec<&str> = after
        .keys()
        .filter_map(|k| k.strip_prefix("__history/legacy/"))
        .collect();
    assert_eq!(
        legacy,
        [
            "data/00000000.lance",
            "data/00000001.lance",
            "data/00000002.lance",
            "locator/directory.oglx",
            "locator/ids/00000000.oglx",
            "locator/writers/00000000.oglx",
        ]
    );
    let archives = after.keys().filter(|k| k.starts_with("__history/")).count() - legacy.len();
    assert_eq!(archives as u64, report.work.schema_contents);

    let n = &case.names;
    let heads = [(4, 3), (6, 6), (5, 5), (7, 4)];
    let left = left(&case).await;
    for ((native, _), (version, commit)) in n.heads().into_iter().zip(heads) {
        let (state, metadata) = &left.heads[&native.map(str::to_string)];
        assert_eq!(state.version, version, "{native:?}");
        assert_eq!(state.head.graph_commit_id, n.commit(commit));
        assert_eq!(metadata[STAMP_KEY], "14");
        assert!(metadata.contains_key(RECEIPT_KEY) && !metadata.contains_key(PENDING_KEY));
        let own = native != Some(n.fresh.as_str()) && native != Some(n.child.as_str());
        assert_eq!(state.exact_head().is_some(), own, "{native:?}");
        assert!(state.buffer.is_empty() && state.replaced.is_empty());
    }

    let again = case.execute().await;
    assert_eq!(again.outcome, Outcome::AlreadyCurrent);
    assert_eq!(
        (again.observed_format, again.work),
        (Some(14), Work::default())
    );
    assert_eq!(tree_changes(&after, &case.digest()), [""; 0]);
}

#[test]
fn b08_a_foreign_history_object_is_refused() {
    run(|| async {
        let case = Kind::S9.copy().await;
        plant_history(&case.path(), "legacy/data/00000000.lance", b"x").unwrap();
        const SAYS: &[&str] = &["legacy/data/00000000.lance", "stamp 9"];
        Refused::routed("history_objects_present", 9, SAYS)
            .by(&case)
            .await;
    });
}

#[test]
fn b08_archives_and_their_temporaries_are_no_foreign_objects() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let hex = "a".repeat(64);
        plant_history(&case.path(), &format!("schemas/{hex}.schema"), b"x").unwrap();
        let torn = format!("schemas/{hex}.schema.tmp.{}", "0".repeat(32));
        plant_history(&case.path(), &torn, b"").unwrap();
        assert_eq!(case.check().await.outcome, Outcome::CheckPassed);
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
    });
}

#[test]
fn b08_at_most_twenty_foreign_objects_are_named() {
    run(|| async {
        let case = Kind::S8.copy().await;
        for n in 0..23 {
            plant_history(&case.path(), &format!("x/{n:02}"), b"x").unwrap();
        }
        let report = Refused::routed("history_objects_present", 8, &["stamp 8", "x/00, x/01"])
            .by(&case)
            .await;
        says(message(&report), &["x/18, x/19", "the first 20"]);
        assert!(!message(&report).contains("x/20"));
    });
}
