//! Behaviours 39 to 43: what a resumed run reads and completes.

use census::Limits;
use fixtures::contract::{IR_OBJECT, SOURCE_OBJECT, Vintage};
use fixtures::damage::bytes::{flip, replace, truncate};
use fixtures::damage::objects::{remove, stage, widened};
use fixtures::tree::tree_changes;
use upgrade::{Crossing, Outcome, Report, UpgradeOptions, Work};

use crate::interrupted::whole;
use crate::support::*;

/// Remedy F.
pub const FENCING: &str = "the omnigraph executable that fenced the graph";
/// Remedy R.
pub const RERUN: &str = "this omnigraph executable";

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

/// Stopped right after the fence.
pub async fn fenced(kind: Kind) -> Case {
    stopped(kind, |c| *c == Crossing::AfterFence).await
}

/// Stopped once the directory stands.
pub async fn with_directory(kind: Kind) -> Case {
    stopped(kind, |c| *c == Crossing::LegacyValidated).await
}

/// A fenced run stops with this finding and compatibility, and nothing is written.
pub async fn refuses(
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

/// A rerun completes with what an uninterrupted run leaves.
pub async fn completes(case: &Case, kind: Kind) -> Report {
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
