//! What stays, and that nothing of it is touched.

use std::path::Path;

use fixtures::legacy_writer::create_branch;
use fixtures::tree::{TreeDigest, copy_tree, tree_changes, tree_digest};
use recover::report::{Outcome, Status};
use recover::{Report, render};

use crate::support::edit::*;
use crate::support::*;

/// Check and confirm refuse alike and change nothing; what they say is handed back.
async fn refuses(path: &Path) -> Report {
    let before = tree_digest(path).unwrap();
    let checked = check(path).await;
    let report = confirm(path).await;
    let after: TreeDigest = tree_digest(path).unwrap();
    assert_eq!(tree_changes(&before, &after), [""; 0], "{report:#?}");
    assert_eq!(checked.outcome, Outcome::Refused, "{checked:#?}");
    assert_eq!(report.outcome, Outcome::Refused, "{report:#?}");
    assert!(!report.is_success());
    for sidecar in report
        .sidecars
        .iter()
        .filter(|s| s.status == Status::Refused)
    {
        let remedy = sidecar.remedy.as_deref().unwrap();
        assert!(remedy.contains(&sidecar.file), "{remedy}");
    }
    report
}

fn says(report: &Report, words: &[&str]) {
    let text = render(report);
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

#[test]
fn a_foreign_commit_above_an_own_one() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in [
            "sc-load-confirmed",
            "sc-load-armed-partial",
            "sc-merge-confirmed",
            "sc-schema-staged",
        ] {
            let root = stopped(&archives, name);
            let file = only_sidecar(root.path());
            let key = match name {
                "sc-schema-staged" => "node:Night",
                "sc-load-armed-partial" => "node:Target",
                _ => "edge:Observed",
            };
            let opened = open(root.path()).await;
            raw_delete(
                &opened,
                &location(&file, key),
                None,
                "id = 'nobody' OR true",
            )
            .await;
            says(&refuses(root.path()).await, &[key, "Delete"]);
        }
    });
}

#[test]
fn a_foreign_commit_in_the_place_of_an_own_one() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        // The second table was not written; something foreign was.
        let root = stopped(&archives, "sc-load-armed-partial");
        let file = only_sidecar(root.path());
        let opened = open(root.path()).await;
        raw_append(&opened, &location(&file, "edge:Observed"), None).await;
        says(
            &refuses(root.path()).await,
            &["edge:Observed", "not the write's own"],
        );
    });
}

#[test]
fn a_transaction_that_is_not_the_planned_one() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-merge-confirmed");
        let file = only_sidecar(root.path());
        edit(&file, |v| {
            disarm(v);
            payload(v)["effects"][0]["kind"]["planned_transactions"][0]["uuid"] = "other".into();
        });
        says(
            &refuses(root.path()).await,
            &["do not prove whose they are"],
        );
    });
}

#[test]
fn a_root_that_was_copied() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-confirmed");
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        copy_tree(root.path(), &copy).unwrap();
        says(&refuses(&copy).await, &["table_path", "moved or copied"]);
    });
}

#[test]
fn a_damaged_file_keeps_nobody_from_diagnosing_the_rest() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-confirmed");
        let recovery = root.path().join("__recovery");
        for residue in [".DS_Store", "01A.json#1", "notes.txt"] {
            std::fs::write(recovery.join(residue), "x").unwrap();
        }
        for (bytes, word) in [
            ("{not json", "not valid JSON"),
            ("{}", "schema_version"),
            (r#"{"schema_version": 10}"#, "a later release"),
            (r#"{"schema_version": 9}"#, "could not be read"),
        ] {
            std::fs::write(recovery.join("00BROKEN.json"), bytes).unwrap();
            let report = refuses(root.path()).await;
            says(&report, &[word, "__recovery/00BROKEN.json"]);
            assert_eq!(report.sidecars.len(), 2);
            assert_eq!(report.sidecars[1].status, Status::NotAttempted);
            assert_eq!(
                report.sidecars[1].tables.len(),
                2,
                "the other one is still diagnosed"
            );
        }
        std::fs::remove_file(recovery.join("00BROKEN.json")).unwrap();
        assert_eq!(confirm(root.path()).await.outcome, Outcome::Recovered);
        assert!(recovery.join(".DS_Store").exists() && recovery.join("01A.json#1").exists());
    });
}

#[test]
fn a_sidecar_under_another_name_is_worked_on_by_that_name() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-armed-partial");
        let file = only_sidecar(root.path());
        std::fs::rename(&file, file.with_file_name("renamed.json")).unwrap();
        let report = confirm(root.path()).await;
        assert_eq!(report.outcome, Outcome::Recovered, "{report:#?}");
        assert_eq!(report.sidecars[0].file, "renamed.json");
        says(&report, &["__recovery/renamed.json"]);
        assert!(
            std::fs::read_dir(root.path().join("__recovery"))
                .unwrap()
                .next()
                .is_none()
        );
    });
}

#[test]
fn a_live_child_ref_and_a_ref_that_moved() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-touch-fork");
        let file = only_sidecar(root.path());
        let target = location(&file, "node:Target");
        let opened = open(root.path()).await;
        let fork = newest(&opened, &target, Some("touch")).await;
        create_branch(&opened, &fork, "touch/deep").await.unwrap();
        says(&refuses(root.path()).await, &["touch/deep", "node:Target"]);

        let root = stopped(&archives, "sc-touch-fork");
        let file = only_sidecar(root.path());
        let observed = location(&file, "edge:Observed");
        raw_append(&open(root.path()).await, &observed, Some("touch")).await;
        says(
            &refuses(root.path()).await,
            &["edge:Observed", "not removed"],
        );
    });
}

#[test]
fn a_refusal_ends_the_run_before_later_files() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-armed-partial");
        let file = only_sidecar(root.path());
        let later = file.with_file_name("01ZZZZZZZZZZZZZZZZZZZZZZZZ.json");
        std::fs::copy(&file, &later).unwrap();
        edit(&later, |v| {
            v["operation_id"] = "01ZZZZZZZZZZZZZZZZZZZZZZZZ".into()
        });
        let target = location(&file, "node:Target");
        raw_delete(&open(root.path()).await, &target, None, "true").await;
        let report = refuses(root.path()).await;
        let statuses: Vec<Status> = report.sidecars.iter().map(|s| s.status).collect();
        assert_eq!(statuses, [Status::Refused, Status::NotAttempted]);
    });
}

#[test]
fn stamp_14_and_a_clean_root() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "s14-evolution");
        let error = recover::recover(&open(root.path()).await, &options(true))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("stamp 14"), "{error}");
        let root = stopped(&archives, "evolution");
        assert_eq!(confirm(root.path()).await.outcome, Outcome::Clean);
    });
}
