//! Behaviours 39 to 47: what a resumed run reads, refuses and completes.

use census::Limits;
use fixtures::contract::{IR_OBJECT, SOURCE_OBJECT, Vintage};
use fixtures::damage::bytes::{flip, replace, truncate};
use fixtures::damage::objects::{remove, sidecar, stage, widened};
use fixtures::fault_store::{Effect, Fault, FaultStore, Kind as Request, On, seen_uri};
use fixtures::legacy_writer::{CommitSpec, Publish, Retirement, set_metadata};
use fixtures::tree::tree_changes;
use graph::history::legacy::Directory;
use graph::stamp::PENDING_KEY;
use graph::store::{Root, RootOptions};
use upgrade::{Crossing, Outcome, Report, UpgradeOptions, Work, upgrade};

use crate::interrupted::{other_attempt, whole};
use crate::support::*;

const FENCING: &str = "the omnigraph executable that fenced the graph";
const RERUN: &str = "this omnigraph executable";

/// A copy of `kind`, stopped at the first crossing that fits.
pub async fn stopped(kind: Kind, fits: impl Fn(&Crossing) -> bool + Send + Sync + 'static) -> Case {
    let case = kind.copy().await;
    let observer = Stopper::when(fits);
    let report = case
        .run(UpgradeOptions {
            observer,
            ..UpgradeOptions::default()
        })
        .await;
    assert_eq!(report.outcome, Outcome::RecoveryRequired, "{report:#?}");
    case
}

async fn fenced(kind: Kind) -> Case {
    stopped(kind, |c| *c == Crossing::AfterFence).await
}

/// Stopped once the directory stands.
async fn with_directory(kind: Kind) -> Case {
    stopped(kind, |c| *c == Crossing::LegacyValidated).await
}

/// A fenced run stops with this finding and compatibility, and nothing is written.
async fn refuses(
    case: &Case,
    options: UpgradeOptions,
    code: &str,
    by: &str,
    words: &[&str],
) -> Report {
    let before = case.digest();
    let report = case.run(options).await;
    assert_eq!(report.outcome, Outcome::RecoveryRequired, "{report:#?}");
    assert_eq!(codes(&report), [code], "{report:#?}");
    says(message(&report), words);
    let recovery = report.recovery.clone().unwrap();
    assert_eq!(recovery.executable_compatibility, by);
    assert_eq!(tree_changes(&before, &case.digest()), [""; 0]);
    report
}

async fn completes(case: &Case, kind: Kind) -> Report {
    let done = case.execute().await;
    assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
    assert_eq!(left(case).await, whole(kind).await.left);
    done
}

#[test]
fn b39_a_fenced_rerun_does_not_look_at_the_root_objects() {
    run(|| async {
        // Every damage with a lock, and one each without.
        for (kind, damages) in [(Kind::S8, 4..5), (Kind::S9, 1..2), (Kind::S9Lock, 0..5)] {
            let base = fenced(kind).await;
            for damage in damages {
                let case = base.copy();
                let (path, contract) = (case.path(), case.names.contract.clone());
                match damage {
                    0 => remove(&path, SOURCE_OBJECT).unwrap(),
                    1 => widened(&contract).write_objects(&path).unwrap(),
                    2 => replace(&path.join(IR_OBJECT), b"not json").unwrap(),
                    3 => stage(&path, IR_OBJECT).unwrap(),
                    _ => {
                        let mut other = contract;
                        other.vintage = match other.vintage {
                            Vintage::Bare => Vintage::Underscored,
                            Vintage::Underscored => Vintage::Bare,
                        };
                        other.write_objects(&path).unwrap();
                    }
                }
                let objects = |case: &Case| {
                    let all = case.digest().into_iter();
                    all.filter(|(key, _)| !key.contains('/'))
                        .collect::<Vec<_>>()
                };
                let before = objects(&case);
                let done = completes(&case, kind).await;
                assert_eq!(done.work.table_opens, 0);
                assert_eq!(objects(&case), before, "{kind:?} {damage}");
            }
        }
    });
}

#[test]
fn b40_without_the_bound_archive() {
    run(|| async {
        for damage in 0..3 {
            let case = fenced(Kind::S9).await;
            let archive = std::fs::read_dir(case.path().join("__history/schemas"))
                .unwrap()
                .map(|e| e.unwrap().path())
                .next()
                .unwrap();
            let kept = std::fs::read(&archive).unwrap();
            match damage {
                0 => std::fs::remove_file(&archive).unwrap(),
                1 => truncate(&archive, kept.len() - 1).unwrap(),
                _ => flip(&archive, kept.len() / 2, 0).unwrap(),
            }
            let digest = archive.file_stem().unwrap().to_str().unwrap().to_string();
            let report = refuses(
                &case,
                UpgradeOptions::default(),
                "legacy_objects_differ",
                FENCING,
                &[&digest],
            )
            .await;
            assert_eq!(
                report.last_durable_completed_boundary.as_deref(),
                Some("source_fenced")
            );
            assert_eq!(
                (report.graph_identity, report.work),
                (None, Work::default())
            );
            replace(&archive, &kept).unwrap();
            completes(&case, Kind::S9).await;
        }
    });
}

#[test]
fn b41_a_partial_legacy_write_is_completed() {
    run(|| async {
        let case = stopped(
            Kind::S9,
            |c| matches!(c, Crossing::BeforeObject { key } if key.ends_with("data/00000002.lance")),
        )
        .await;
        let legacy = || {
            let all = case.digest().into_keys();
            all.filter(|k| k.starts_with("__history/legacy/")).count()
        };
        assert_eq!(legacy(), 2);
        completes(&case, Kind::S9).await;
        assert_eq!(legacy(), 6);
    });
}

#[test]
fn b41_an_object_of_other_content_interrupts() {
    run(|| async {
        for key in [
            "data/00000000.lance",
            "locator/ids/00000000.oglx",
            "locator/writers/00000000.oglx",
        ] {
            let base = stopped(
                Kind::S9,
                |c| matches!(c, Crossing::BeforeObject { key } if key.ends_with("directory.oglx")),
            )
            .await;
            let path = base.path().join("__history/legacy").join(key);
            let kept = std::fs::read(&path).unwrap();
            truncate(&path, kept.len() - 1).unwrap();
            let by = UpgradeOptions::default();
            refuses(&base, by, "upgrade_interrupted", RERUN, &[key]).await;
            replace(&path, &kept).unwrap();
            completes(&base, Kind::S9).await;
        }
    });
}

#[test]
fn b42_resume_after_the_directory_counts_the_plan_alone() {
    run(|| async {
        let case = with_directory(Kind::S8).await;
        let done = completes(&case, Kind::S8).await;
        let expected = Work {
            live_refs: 4,
            legacy_commits: 6,
            data_files: 3,
            id_shards: 1,
            writer_shards: 1,
            ..Work::default()
        };
        assert_eq!(done.work, expected);
    });
}

#[test]
fn b43_a_fenced_census_applies_the_budgets() {
    run(|| async {
        let budgets = [
            Limits {
                head_rows: 0,
                ..Limits::default()
            },
            Limits {
                head_bytes: 0,
                ..Limits::default()
            },
            Limits {
                retired_refs: 0,
                ..Limits::default()
            },
        ];
        let case = fenced(Kind::S9).await;
        for (n, limits) in budgets.into_iter().enumerate() {
            let options = UpgradeOptions {
                limits,
                ..UpgradeOptions::default()
            };
            let report = refuses(
                &case,
                options,
                "unsupported_source",
                FENCING,
                &["the limit of 0"],
            )
            .await;
            let joined = message(&report).matches("; ").count();
            assert_eq!(joined, if n == 2 { 0 } else { 5 }, "{}", message(&report));
            assert!(!message(&report).contains("cleanup"));
        }
        for (limits, code) in [
            (
                Limits {
                    cells: 0,
                    ..Limits::default()
                },
                "legacy_census_over_bound",
            ),
            (
                Limits {
                    record_bytes: 1,
                    ..Limits::default()
                },
                "legacy_record_over_bound",
            ),
        ] {
            let options = UpgradeOptions {
                limits,
                ..UpgradeOptions::default()
            };
            refuses(&case, options, code, FENCING, &[]).await;
        }
        completes(&case, Kind::S9).await;
        for limits in budgets {
            let case = with_directory(Kind::S9).await;
            let done = case
                .run(UpgradeOptions {
                    limits,
                    ..UpgradeOptions::default()
                })
                .await;
            assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
        }
    });
}

#[test]
fn b44_an_intent_of_layout_version_2() {
    run(|| async {
        for (from, to, words) in [
            (
                r#""layout":{"version":1"#,
                r#""layout":{"version":2"#,
                "layout version 2, this build writes version 1",
            ),
            (r#""protocol":6"#, r#""protocol":7"#, "protocol 7"),
            (r#""target_format":14"#, r#""target_format":15"#, "to 15"),
        ] {
            let case = fenced(Kind::S9).await;
            let root = case.root().await;
            let head = root.open_manifest(None, None).await.unwrap();
            let text = head.metadata(PENDING_KEY).unwrap();
            assert!(text.contains(from));
            let text = Some(text.replacen(from, to, 1));
            set_metadata(&root, &head.dataset, &[(PENDING_KEY, text)])
                .await
                .unwrap();
            Refused {
                code: "unknown_upgrade_ownership",
                route: None,
                identity: false,
                says: &[words],
                recovery: Some((
                    "the omnigraph executable that started the conversion",
                    UNROUTED,
                )),
            }
            .by(&case)
            .await;
        }
    });
}

#[test]
fn b45_a_retired_ref_with_a_commit_appears_after_the_fence() {
    run(|| async {
        let case = fenced(Kind::S9).await;
        let mut legacy = case.legacy(&[]).await;
        let feature = case.names.feature.clone();
        let late = legacy.fork("late", Some(&feature)).await.unwrap();
        legacy
            .publish(Some(&late), Publish::committed(CommitSpec::by("late")))
            .await
            .unwrap();
        legacy.retire(&late, Retirement::Archived).unwrap();
        let report = refuses(
            &case,
            UpgradeOptions::default(),
            "legacy_plan_changed",
            FENCING,
            &["7 commits", "6 commits"],
        )
        .await;
        assert_eq!(
            report.last_durable_completed_boundary.as_deref(),
            Some("source_fenced")
        );
        let digests = message(&report)
            .split(|c: char| !c.is_ascii_hexdigit())
            .filter(|word| word.len() == 64)
            .count();
        assert_eq!(digests, 2);
    });
}

#[test]
fn b46_a_changed_legacy_object() {
    run(|| async {
        let base = with_directory(Kind::S9).await;
        for (key, flipped) in [
            ("locator/ids/00000000.oglx", true),
            ("locator/writers/00000000.oglx", true),
            ("locator/directory.oglx", false),
            ("data/00000001.lance", false),
        ] {
            let case = base.copy();
            let path = case.path().join("__history/legacy").join(key);
            let kept = std::fs::read(&path).unwrap();
            if flipped {
                flip(&path, kept.len() / 2, 3).unwrap();
            } else if key.contains("directory") {
                // Another attempt: decodes, and hashes to something else.
                let mut other = Directory::decode(&kept).unwrap();
                other.attempt = other_attempt().unwrap();
                replace(&path, &other.encode().unwrap()).unwrap();
            } else {
                std::fs::remove_file(&path).unwrap();
            }
            let by = UpgradeOptions::default();
            let report = refuses(&case, by, "legacy_objects_differ", FENCING, &[]).await;
            says(
                &report.recovery.unwrap().action,
                &["restore the whole root"],
            );
            replace(&path, &kept).unwrap();
            completes(&case, Kind::S9).await;
        }
    });
}

#[test]
fn b46_a_directory_that_cannot_be_decoded_interrupts() {
    run(|| async {
        let case = with_directory(Kind::S9).await;
        let path = case.path().join("__history/legacy/locator/directory.oglx");
        let kept = std::fs::read(&path).unwrap();
        truncate(&path, kept.len() - 1).unwrap();
        let by = UpgradeOptions::default();
        refuses(&case, by, "upgrade_interrupted", RERUN, &["directory.oglx"]).await;
        replace(&path, &kept).unwrap();
        completes(&case, Kind::S9).await;
    });
}

/// Permissions do not bind a superuser, so the store refuses the reads instead.
#[test]
fn b47_an_unreadable_object_interrupts() {
    run(|| async {
        for object in [
            "locator/ids/",
            "locator/writers/",
            "locator/directory",
            "legacy/data/",
            "__history/schemas/",
        ] {
            let case = with_directory(Kind::S9).await;
            let faults = FaultStore::new();
            let options = RootOptions {
                wrapper: Some(faults.wrapper()),
            };
            let root = Root::open(&seen_uri(&case.path()), options).await.unwrap();
            for kind in [Request::Get, Request::Head] {
                faults.arm(Fault {
                    on: On::EveryPath(kind, object.into()),
                    effect: Effect::Fail,
                });
            }
            let before = case.digest();
            let report = upgrade(&root, &UpgradeOptions::default()).await;
            assert_eq!(
                codes(&report),
                ["upgrade_interrupted"],
                "{object}: {report:#?}"
            );
            assert_eq!(report.recovery.unwrap().executable_compatibility, RERUN);
            assert_eq!(before, case.digest());
            completes(&case, Kind::S9).await;
        }
    });
}

#[test]
fn b38_a_pending_graph_with_a_sidecar_or_another_target() {
    run(|| async {
        let case = fenced(Kind::S9).await;
        let options = UpgradeOptions {
            target: Some(13),
            ..UpgradeOptions::default()
        };
        let before = case.digest();
        let report = case.run(options).await;
        assert_eq!(
            (report.outcome, codes(&report)),
            (Outcome::CheckFailed, vec!["unsupported_target"])
        );
        assert_eq!(
            (&report.recovery, &report.last_durable_completed_boundary),
            (&None, &None)
        );
        assert_eq!(before, case.digest());
        let id = "01M9000000000000000000000Z";
        sidecar(&case.path(), &case.names.contract, case.names.commit(4), id).unwrap();
        let by = "the omnigraph build that wrote the recovery sidecars";
        let report = refuses(
            &case,
            UpgradeOptions::default(),
            "source_recovery_required",
            by,
            &[id],
        )
        .await;
        assert_eq!(report.recovery.unwrap().failed_handler, route(9));
        remove(&case.path(), &format!("__recovery/{id}.json")).unwrap();
        completes(&case, Kind::S9).await;
    });
}
