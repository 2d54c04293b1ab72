//! What is particular to sources of stamp 13: the contract row, branches that are locks elsewhere, and
//! rows of older shapes below a stamp-13 head (`docs/format/upgrade-protocol.md` 6.2, 6.3).

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::contract::{IR_OBJECT, SOURCE_OBJECT, STATE_OBJECT};
use fixtures::damage::objects::sidecar;
use fixtures::legacy_writer::row::decode;
use fixtures::legacy_writer::{CommitSpec, LegacyRoot, LegacyRow, Publish, scan};
use fixtures::sample::{samples_folder, unpack};
use graph::history::lookup::HistoryReader;
use graph::history::schema_archive::read_commit_contract;
use graph::store::{Root, RootOptions};
use graph::view::{At, snapshot};
use upgrade::{Crossing, Outcome, UpgradeOptions, upgrade};

use crate::resumed::stopped;
use crate::support::*;

/// Rewrite the contract row of main in a version of its own.
async fn rewritten(case: &Case, change: impl FnOnce(&mut Vec<LegacyRow>)) -> LegacyRoot {
    let mut legacy = case.legacy(&[]).await;
    legacy.rewrite(None, |rows, _| change(rows)).await.unwrap();
    legacy
}

fn contract_row(rows: &mut [LegacyRow]) -> &mut LegacyRow {
    rows.iter_mut()
        .find(|r| r.object_type == "schema_contract")
        .unwrap()
}

fn unsupported(says: &'static [&'static str]) -> Refused<'static> {
    Refused {
        identity: false,
        ..Refused::routed("unsupported_source", 13, says)
    }
}

#[test]
fn a_main_without_a_valid_contract_row_is_unsupported() {
    type Change = fn(&mut Vec<LegacyRow>);
    run(|| async {
        let cases: [(Change, &'static [&'static str]); 4] = [
            (
                |rows| rows.retain(|r| r.object_type != "schema_contract"),
                &["no schema_contract row", "version 5"],
            ),
            (
                |rows| {
                    let row = contract_row(rows);
                    row.schema_source = Some("this is no schema".into());
                },
                &["not valid", "does not compile"],
            ),
            (
                |rows| {
                    let row = contract_row(rows);
                    row.schema_ir = Some("{}".into());
                },
                &["not valid"],
            ),
            (
                |rows| {
                    let row = contract_row(rows);
                    let text = row.metadata.as_mut().unwrap();
                    *text = text.replace(
                        "\"schema_identity_version\":2",
                        "\"schema_identity_version\":1",
                    );
                },
                &["identity version is 1"],
            ),
        ];
        for (change, says) in cases {
            let case = Kind::S13.copy().await;
            rewritten(&case, change).await;
            unsupported(says).by(&case).await;
        }
    });
}

#[test]
fn a_contract_row_without_a_text_cannot_be_read() {
    run(|| async {
        let case = Kind::S13.copy().await;
        rewritten(&case, |rows| contract_row(rows).schema_source = None).await;
        let report = case.check().await;
        assert_eq!(codes(&report), ["preflight_failed"]);
        says(
            message(&report),
            &["schema_contract", "without schema_source"],
        );
    });
}

#[test]
fn rows_of_another_shape_are_not_a_head_of_stamp_13() {
    run(|| async {
        let case = Kind::S13.copy().await;
        let mut legacy = case.legacy(&[]).await;
        legacy.restamp(None, Some(12)).await.unwrap();
        legacy.stamp_in_place(None, 13).await.unwrap();
        unsupported(&["stamp 13", "packed record with content columns"])
            .by(&case)
            .await;
    });
}

#[test]
fn root_objects_are_never_looked_at() {
    run(|| async {
        let case = Kind::S13.copy().await;
        for object in [SOURCE_OBJECT, IR_OBJECT, STATE_OBJECT] {
            assert!(!case.path().join(object).exists(), "{object}");
            std::fs::write(case.path().join(object), "junk").unwrap();
            std::fs::write(case.path().join(format!("{object}.staging")), "junk").unwrap();
        }
        let report = case.execute().await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
        for object in [SOURCE_OBJECT, IR_OBJECT, STATE_OBJECT] {
            let left = std::fs::read_to_string(case.path().join(object)).unwrap();
            assert_eq!(left, "junk");
        }
    });
}

#[test]
fn b16_a_sidecar_at_13() {
    run(|| async {
        let case = Kind::S13.copy().await;
        let n = &case.names;
        sidecar(
            &case.path(),
            &n.contract,
            n.commit(4),
            "01M9000000000000000000000Z",
        )
        .unwrap();
        let report = case.check().await;
        assert_eq!(codes(&report), ["source_recovery_required"]);
        assert!(report.route.is_empty());
        assert_eq!(report.recovery.unwrap().failed_handler, route(13));
    });
}

#[test]
fn every_commit_keeps_the_contract_it_had() {
    run(|| async {
        let case = Kind::S13.copy().await;
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
        let root = case.root().await;
        for number in 1..=6 {
            let at = At::Commit(case.names.commit(number).to_string());
            let shown = snapshot(&root, None, &at).await.unwrap();
            let contract = read_commit_contract(&root, &shown.head)
                .await
                .unwrap()
                .unwrap();
            contract.validate().unwrap();
            assert_eq!(contract.source.contains("Draft"), number == 1, "{number}");
            let own = case.names.contract.source();
            assert_eq!(contract.source == own, number > 1, "{number}");
        }
    });
}

/// Versions of older shapes below the head, one with a commit: it gets the first later contract.
#[test]
fn older_shapes_below_the_head() {
    run(|| async {
        let case = Kind::S13.copy().await;
        let mut legacy = case.legacy(&[]).await;
        let mut commits = Vec::new();
        for stamp in [9, 12] {
            legacy.restamp(None, Some(stamp)).await.unwrap();
            let by = Publish::committed(CommitSpec::by("ada"));
            commits.push(legacy.publish(None, by).await.unwrap().unwrap());
        }
        let contract = case.names.contract.clone();
        legacy.restamp(None, Some(13)).await.unwrap();
        let accept = Publish::committed(CommitSpec::by("ada")).accept(&contract);
        commits.push(legacy.publish(None, accept).await.unwrap().unwrap());

        let check = case.check().await;
        assert_eq!(check.outcome, Outcome::CheckPassed, "{check:#?}");
        assert_eq!(check.work.legacy_commits, 9);
        assert_eq!(check.work.schema_contents, 2);
        let done = case.execute().await;
        assert_eq!((done.outcome, done.work), (Outcome::Completed, check.work));
        let root = case.root().await;
        for id in commits {
            let shown = snapshot(&root, None, &At::Commit(id)).await.unwrap();
            assert_eq!(shown.head.schema_contract, Some(contract.head()));
        }
    });
}

/// At stamps 8 and 9 such a ref is a lock to retire; here it is a branch like any other.
#[test]
fn a_schema_apply_lock_is_a_branch_at_13() {
    run(|| async {
        let case = Kind::S13.copy().await;
        let mut legacy = case.legacy(&[]).await;
        let native = legacy.fork("__schema_apply_lock__", None).await.unwrap();
        let report = case.execute().await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
        assert!(report.findings.is_empty());
        assert_eq!((report.work.live_refs, report.work.retired_refs), (5, 2));
        let heads = left(&case).await.heads;
        let (state, _) = &heads[&Some(native)];
        assert_eq!(state.head.graph_commit_id, case.names.commit(4));
    });
}

/// A resumed run reads the row of the pinned version, and nothing but that.
#[test]
fn a_fenced_rerun_reads_the_pinned_row() {
    run(|| async {
        let case = stopped(Kind::S13, |c| *c == Crossing::AfterFence).await;
        let archives = case.path().join("__history/schemas");
        for entry in std::fs::read_dir(&archives).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let done = case.run(UpgradeOptions::default()).await;
        assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
        assert_eq!(std::fs::read_dir(&archives).unwrap().count(), 2);
        assert_eq!(done.work.table_opens, 0);
    });
}

/// Behaviour 53 on the sample roots: every commit is served with the contract of the version it wrote.
#[test]
fn b53_commits_of_the_samples_keep_their_contracts() {
    run(|| async {
        let Some(samples) = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR"))) else {
            return;
        };
        for (name, commits, contracts) in [("s13-observa", 13, 1), ("s13-evolution", 10, 5)] {
            let unpacked = unpack(&samples, name).unwrap();
            let uri = unpacked.path().to_str().unwrap();
            let root = Root::open(uri, RootOptions::default()).await.unwrap();
            let done = upgrade(&root, &UpgradeOptions::default()).await;
            assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
            let all = HistoryReader::new(root.clone())
                .full_lineage()
                .await
                .unwrap();
            assert_eq!(all.len(), commits, "{name}");
            let mut texts = BTreeSet::new();
            for commit in all.values() {
                let served = read_commit_contract(&root, commit).await.unwrap().unwrap();
                let native = commit.native_branch.as_deref();
                let version = Some(commit.graph_manifest_version);
                let stored = root.open_manifest(native, version).await.unwrap();
                let mut rows = Vec::new();
                for batch in scan(&stored.dataset).await.unwrap() {
                    rows.extend(decode(&batch).unwrap());
                }
                let row = contract_row(&mut rows);
                assert_eq!(row.metadata, Some(served.head.to_json()), "{name}");
                assert_eq!(row.schema_source.as_ref(), Some(&served.source), "{name}");
                assert_eq!(row.schema_ir.as_ref(), Some(&served.ir), "{name}");
                texts.insert(served.ir);
            }
            assert_eq!(texts.len(), contracts, "{name}");
        }
    });
}
