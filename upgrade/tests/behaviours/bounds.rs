//! Behaviours 9 to 13: record, lineage and budget findings of the census.

use std::sync::Arc;

use census::Limits;
use fixtures::damage::rows;
use fixtures::legacy_writer::{CommitSpec, Publish};
use upgrade::{Outcome, UpgradeOptions};

use crate::support::*;

fn limited(limits: Limits) -> UpgradeOptions {
    UpgradeOptions {
        limits,
        ..UpgradeOptions::default()
    }
}

/// Rows of one head.
async fn rows_of(case: &Case, native: Option<&str>) -> u64 {
    let root = case.root().await;
    let head = root.open_manifest(native, None).await.unwrap();
    head.dataset.count_rows(None).await.unwrap() as u64
}

#[test]
fn b09_a_commit_over_the_record_bound_is_named() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let mut legacy = case.legacy(&[]).await;
        let id = rows::over_bound_commit(&mut legacy, None)
            .await
            .unwrap()
            .unwrap();
        let report = Refused::routed("legacy_record_over_bound", 9, &["262144"])
            .by(&case)
            .await;
        says(message(&report), &[&id]);
    });
}

#[test]
fn b10_main_without_its_head_row_is_corrupt() {
    run(|| async {
        let case = Kind::S9.copy().await;
        rows::no_head_row(&mut case.legacy(&[]).await, None)
            .await
            .unwrap();
        Refused::routed("legacy_lineage_corrupt", 9, &["graph_head:main"])
            .by(&case)
            .await;
    });
}

#[test]
fn b10_other_lineage_damages_have_their_codes() {
    run(|| async {
        let refused = |code, case: Case, says: &'static [&'static str]| async move {
            Refused::routed(code, 9, says).by(&case).await;
        };
        let case = Kind::S9.copy().await;
        let id = case.names.commit(2).to_string();
        rows::first_parent_absent(&mut case.legacy(&[]).await, None, &id)
            .await
            .unwrap();
        refused("legacy_lineage_incomplete", case, &[rows::FOREIGN_ULID]).await;

        let case = Kind::S9.copy().await;
        let mut legacy = case.legacy(&[]).await;
        let pin = legacy.pin(None, &case.names.person).unwrap();
        let pin = legacy.append(&case.names.person, &pin, 1).await.unwrap();
        rows::pin_without_commit(&mut legacy, None, &case.names.person, &pin)
            .await
            .unwrap();
        refused("legacy_uncommitted_change", case, &["version 5"]).await;

        let case = Kind::S9.copy().await;
        rows::lower_case_commit(&mut case.legacy(&[]).await, None)
            .await
            .unwrap();
        refused("unsupported_source", case, &["ULID"]).await;

        let case = Kind::S9.copy().await;
        let id = case.names.commit(4).to_string();
        rows::second_commit_at(&mut case.legacy(&[]).await, None, &id)
            .await
            .unwrap();
        refused("legacy_lineage_corrupt", case, &["version 4"]).await;
    });
}

#[test]
fn b11_the_cell_bound_is_exact_and_comes_before_any_version() {
    run(|| async {
        // Nothing follows from manifests where every publish overwrites all rows.
        let case = Kind::S9Overwritten.copy().await;
        let need = case.check().await.work.census_cells;
        let phases = Arc::new(Phases::default());
        let with = |cells| UpgradeOptions {
            observer: phases.clone(),
            ..limited(Limits {
                cells,
                ..Limits::default()
            })
        };
        let scanned = format!("scanning {need} rows, above the limit of {}", need - 1);
        let refused = Refused {
            says: &[&scanned],
            ..Refused::routed("legacy_census_over_bound", 9, &[])
        };
        refused.with(&case, with(need - 1)).await;
        assert!(phases.has("reading branch heads"));
        assert!(!phases.has("reading retained versions"));
        let exact = case
            .run(UpgradeOptions {
                check: true,
                ..with(need)
            })
            .await;
        assert_eq!(exact.outcome, Outcome::CheckPassed, "{exact:#?}");
        assert!(phases.has("reading retained versions"));
    });
}

#[test]
fn b11_the_cells_of_versions_that_had_to_be_read_count_too() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let need = case.check().await.work.census_cells;
        let with = |cells| {
            limited(Limits {
                cells,
                ..Limits::default()
            })
        };
        // Version 1, below the rename.
        assert!(need > 0);
        Refused::routed("legacy_census_over_bound", 9, &["limit of"])
            .with(&case, with(need - 1))
            .await;
        let exact = UpgradeOptions {
            check: true,
            ..with(need)
        };
        assert_eq!(case.run(exact).await.outcome, Outcome::CheckPassed);
    });
}

#[test]
fn b12_the_snapshot_bound_comes_before_any_version() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let phases = Arc::new(Phases::default());
        let options = UpgradeOptions {
            observer: phases.clone(),
            ..limited(Limits {
                snapshot_bytes: 0,
                ..Limits::default()
            })
        };
        Refused::routed("legacy_census_over_bound", 9, &["limit of 0"])
            .with(&case, options)
            .await;
        assert!(!phases.has("reading retained versions"));
    });
}

/// S with `gone` grown to more rows than any live head.
async fn with_a_large_retired_ref(kind: Kind) -> (Case, u64) {
    let case = kind.copy().await;
    let gone = case.names.gone.clone();
    let mut legacy = case.legacy(&[&gone]).await;
    for _ in 0..6 {
        legacy
            .publish(Some(&gone), Publish::committed(CommitSpec::by("bo")))
            .await
            .unwrap();
    }
    let rows = rows_of(&case, Some(&gone)).await;
    assert!(rows > rows_of(&case, Some(&case.names.feature)).await + 1);
    assert!(rows > rows_of(&case, None).await + 1);
    (case, rows)
}

#[test]
fn b13_a_retired_head_over_the_row_budget() {
    run(|| async {
        let (case, rows) = with_a_large_retired_ref(Kind::S9).await;
        let phases = Arc::new(Phases::default());
        let with = |head_rows| UpgradeOptions {
            observer: phases.clone(),
            ..limited(Limits {
                head_rows,
                ..Limits::default()
            })
        };
        let report = Refused::routed(
            "unsupported_source",
            9,
            &["cleanup --keep <N> --confirm", "rows, above the limit"],
        )
        .with(&case, with(rows - 1))
        .await;
        says(message(&report), &[&case.names.gone, &rows.to_string()]);
        assert!(!phases.has("reading branch heads"));
        let exact = case
            .run(UpgradeOptions {
                check: true,
                ..with(rows)
            })
            .await;
        assert_eq!(exact.outcome, Outcome::CheckPassed, "{exact:#?}");
    });
}

#[test]
fn b13_every_head_over_a_budget_is_a_finding_of_its_own() {
    run(|| async {
        let case = Kind::S9.copy().await;
        for limits in [
            Limits {
                head_rows: 0,
                ..Limits::default()
            },
            Limits {
                head_bytes: 0,
                ..Limits::default()
            },
        ] {
            let before = case.digest();
            for check in [true, false] {
                let report = case
                    .run(UpgradeOptions {
                        check,
                        ..limited(limits)
                    })
                    .await;
                assert_eq!(report.outcome, Outcome::CheckFailed);
                // main, child, feature, fresh, then the retired gone and idle.
                assert_eq!(codes(&report), ["unsupported_source"; 6]);
                let hints: Vec<bool> = report
                    .findings
                    .iter()
                    .map(|f| f.message.contains("cleanup --keep"))
                    .collect();
                assert_eq!(hints, [false, false, false, false, true, true]);
                assert_eq!(report.work, upgrade::Work::default());
            }
            assert_eq!(before, case.digest());
        }
    });
}

#[test]
fn b13_too_many_retired_refs_are_refused_before_a_head_is_opened() {
    run(|| async {
        // The lock of a schema apply is read as a retired ref and does not count against the bound.
        let case = Kind::S9Lock.copy().await;
        let with = |retired_refs| {
            limited(Limits {
                retired_refs,
                ..Limits::default()
            })
        };
        let check = case
            .run(UpgradeOptions {
                check: true,
                ..with(2)
            })
            .await;
        assert_eq!(check.outcome, Outcome::CheckPassed, "{check:#?}");
        let case = Kind::S9.copy().await;
        // A retired tree without versions: opening its head would be a failure of its own.
        std::fs::remove_dir_all(
            case.path()
                .join("__manifest/tree")
                .join(&case.names.idle)
                .join("_versions"),
        )
        .unwrap();
        Refused::routed(
            "unsupported_source",
            9,
            &["2 retired refs", "limit of 1", "cleanup --keep"],
        )
        .with(&case, with(1))
        .await;
    });
}
