//! Every stopped sample, against what the release itself made of it.

use std::collections::BTreeSet;
use std::path::Path;

use fixtures::tree::{tree_changes, tree_digest};
use recover::listing;
use recover::report::{Outcome, Status};

use crate::support::*;

/// The ids that a recovered root may hold: those of the stopped root and those its sidecars name.
pub async fn known(path: &Path) -> BTreeSet<String> {
    let root = open(path).await;
    let mut ids = BTreeSet::new();
    for listed in listing::list(&root).await.unwrap() {
        if let Some(payload) = listed.sidecar.unwrap().payload() {
            ids.insert(payload.lineage.graph_commit_id.clone());
            ids.insert(payload.rollback_graph_commit_id.clone());
        }
    }
    let before = left(path, &BTreeSet::new()).await;
    for commits in before.commits.values() {
        ids.extend(
            commits
                .iter()
                .filter_map(|c| Some(c.split(' ').next()?.to_string())),
        );
    }
    ids
}

#[test]
fn a_check_changes_nothing_and_settles_every_sample() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in STOPPED {
            let root = stopped(&archives, name);
            let before = tree_digest(root.path()).unwrap();
            let report = check(root.path()).await;
            assert_eq!(report.outcome, Outcome::Pending, "{name}: {report:#?}");
            assert!(report.is_success());
            let after = tree_digest(root.path()).unwrap();
            assert_eq!(tree_changes(&before, &after), [""; 0], "{name}");
        }
    });
}

#[test]
fn recovered_samples_are_their_twins() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in STOPPED {
            let root = stopped(&archives, name);
            let known = known(root.path()).await;
            let planned = check(root.path()).await;
            let report = confirm(root.path()).await;
            assert_eq!(report.outcome, Outcome::Recovered, "{name}: {report:#?}");
            for (planned, done) in planned.sidecars.iter().zip(&report.sidecars) {
                assert_eq!(done.status, Status::Settled);
                assert_eq!(
                    planned.actions, done.actions,
                    "{name}: check and run differ"
                );
            }
            let twin = twin(&archives, name);
            let mine = left(root.path(), &known).await;
            assert_eq!(mine, left(twin.path(), &known).await, "{name}");
            assert_eq!(mine.sidecars, [""; 0]);

            let before = tree_digest(root.path()).unwrap();
            let again = confirm(root.path()).await;
            assert_eq!(again.outcome, Outcome::Clean, "{name}: {again:#?}");
            let after = tree_digest(root.path()).unwrap();
            assert_eq!(
                tree_changes(&before, &after),
                [""; 0],
                "{name}: a second run"
            );
        }
    });
}
