//! Trees below `__manifest/tree/` that neither a ref object nor a retirement archive names.

use std::path::PathBuf;

use fixtures::legacy_writer::refs::{archive_path, ref_path};
use fixtures::tree::tree_changes;
use graph::view::{At, commit_list, snapshot};
use upgrade::Outcome;

use crate::support::*;

/// The check refuses the tree of `native` by name, execute too, and nothing changes.
async fn refused(case: &Case, native: &str, words: &[&str]) {
    let before = case.digest();
    for report in [case.check().await, case.execute().await] {
        assert_eq!(report.outcome, Outcome::CheckFailed, "{report:#?}");
        assert_eq!(codes(&report), ["unsupported_source"], "{report:#?}");
        let tree = format!("__manifest/tree/{native}/");
        says(message(&report), &[&tree, "would be left out", "restore"]);
        says(message(&report), words);
    }
    assert_eq!(tree_changes(&before, &case.digest()), [""; 0]);
}

#[test]
fn a_tree_that_published_and_lost_its_ref_or_archive_is_refused() {
    run(|| async {
        for (kind, stamp) in [(Kind::S8, "stamp 8"), (Kind::S9, "stamp 9")] {
            let case = kind.copy().await;
            let n = &case.names;
            let lost: [(&str, PathBuf); 3] = [
                (&n.gone, archive_path(&case.path(), &n.gone)),
                (&n.idle, archive_path(&case.path(), &n.idle)),
                (&n.feature, ref_path(&case.path(), &n.feature)),
            ];
            for (native, object) in lost {
                let bytes = std::fs::read(&object).unwrap();
                std::fs::remove_file(&object).unwrap();
                refused(&case, native, &[stamp]).await;
                std::fs::write(&object, bytes).unwrap();
                assert_eq!(case.check().await.outcome, Outcome::CheckPassed);
            }
        }
    });
}

#[test]
fn a_folder_in_the_place_of_an_archive_is_no_archive() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let archive = archive_path(&case.path(), &case.names.gone);
        std::fs::remove_file(&archive).unwrap();
        std::fs::create_dir(&archive).unwrap();
        std::fs::write(archive.join("note"), b"x").unwrap();
        refused(&case, &case.names.gone, &[]).await;
    });
}

#[test]
fn an_unclaimed_tree_that_does_not_open_is_refused() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let gone = &case.names.gone;
        std::fs::remove_file(archive_path(&case.path(), gone)).unwrap();
        let versions = case
            .path()
            .join(format!("__manifest/tree/{gone}/_versions"));
        for entry in std::fs::read_dir(&versions).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "manifest") {
                std::fs::write(path, b"LANC").unwrap();
            }
        }
        refused(&case, gone, &["cannot be opened"]).await;
    });
}

#[test]
fn what_an_interrupted_creation_or_an_old_deletion_left_is_no_branch() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let mut root = case.legacy(&[]).await;
        let made = root.fork("made", None).await.unwrap();
        let old = root.fork("old", None).await.unwrap();
        root.restamp(Some(&old), Some(6)).await.unwrap();
        for native in [&made, &old] {
            std::fs::remove_file(ref_path(&case.path(), native)).unwrap();
        }
        let report = case.check().await;
        assert_eq!(report.outcome, Outcome::CheckPassed, "{report:#?}");
        assert_eq!(report.work.live_refs, case.names.work().live_refs);
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
        // What may be a lost branch is named afterwards; what cannot be is not.
        let root = case.root().await;
        let verified = verify::verify(&root, &verify::VerifyOptions::default()).await;
        let found: Vec<_> = verified
            .unwrap()
            .findings
            .into_iter()
            .map(|f| (f.code, f.object))
            .collect();
        let tree = format!("__manifest/tree/{made}");
        assert_eq!(found, [(verify::Code::TreeUnclaimed, tree)]);
    });
}

/// A fork of a branch that never committed, which is then deleted with its tree, as releases before stamp 8
/// did: nothing names the deleted ref any more but the fork's parent.
#[test]
fn a_fork_that_outlived_its_parent_converts_by_its_own_head() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let mut root = case.legacy(&[]).await;
        let gone = root.fork("parent", None).await.unwrap();
        let heir = root.fork("heir", Some(&gone)).await.unwrap();
        root.rewrite(Some(&heir), |_, _| ()).await.unwrap();
        std::fs::remove_file(ref_path(&case.path(), &gone)).unwrap();
        let tree = case.path().join(format!("__manifest/tree/{gone}"));
        std::fs::remove_dir_all(tree).unwrap();

        let report = case.check().await;
        assert_eq!(report.outcome, Outcome::CheckPassed, "{report:#?}");
        let report = case.execute().await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
        let root = case.root().await;
        for version in [4, 5] {
            let shown = snapshot(&root, Some("heir"), &At::Version(version)).await;
            let shown = shown.unwrap();
            assert_eq!(shown.head.graph_commit_id, case.names.commit(4));
            assert_eq!(shown.manifest_version, version);
        }
        let listed = commit_list(&root, Some("heir")).await.unwrap();
        let ids: Vec<&str> = listed.iter().map(|c| c.graph_commit_id.as_str()).collect();
        assert_eq!(ids, [4, 2, 1].map(|n| case.names.commit(n)));
    });
}
