//! Stores that ignore the condition of a create, and stores that answer a conflict over nothing.

use fixtures::fault_store::{Effect, Fault, FaultStore, Kind as Request, On, seen_uri};
use fixtures::tree::tree_changes;
use graph::Error;
use graph::store::{PROBE_DIR, Root, RootOptions};
use upgrade::{Outcome, UpgradeOptions, upgrade};

use crate::support::*;

async fn watched(case: &Case) -> (Root, FaultStore) {
    let faults = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(faults.wrapper()),
    };
    let root = Root::open(&seen_uri(&case.path()), options).await.unwrap();
    faults.reset();
    (root, faults)
}

fn every(kind: Request, path: &str, effect: Effect) -> Fault {
    Fault {
        on: On::EveryPath(kind, path.into()),
        effect,
    }
}

#[test]
fn a_store_that_honours_the_condition_is_proved_with_an_object_of_its_own() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let before = case.digest();
        let (root, faults) = watched(&case).await;
        root.prove_conditional_create().await.unwrap();
        assert_eq!(tree_changes(&before, &case.digest()), [""; 0]);
        for request in faults.requests() {
            assert!(request.path.contains(PROBE_DIR), "{request:?}");
        }
        let counts = faults.counts();
        assert_eq!(counts.requests(Request::Create), 2);
        assert_eq!(counts.requests(Request::Delete), 1);
        assert_eq!(counts.mutations(), 3);
    });
}

#[test]
fn a_store_that_ignores_the_condition_is_refused() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let before = case.digest();
        let (root, faults) = watched(&case).await;
        faults.arm(every(Request::Create, "", Effect::IgnoreCondition));
        let refused = root.prove_conditional_create().await.unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{refused:?}");
        says(
            &refused.to_string(),
            &[
                "replaced the probe object",
                "nothing of the graph was written",
            ],
        );
        assert_eq!(tree_changes(&before, &case.digest()), [""; 0]);
    });
}

#[test]
fn a_proof_without_an_answer_is_no_proof() {
    run(|| async {
        let case = Kind::S9.copy().await;
        for (n, effect) in [
            (1, Effect::Fail),
            (2, Effect::Fail),
            (2, Effect::LoseAnswer),
        ] {
            let (root, faults) = watched(&case).await;
            faults.arm(Fault::path(Request::Create, PROBE_DIR, n, effect));
            let unknown = root.prove_conditional_create().await.unwrap_err();
            assert!(unknown.is_storage(), "{n} {effect:?}: {unknown:?}");
            says(&unknown.to_string(), &["cannot tell whether"]);
        }
        // The object of a lost answer, and a conflict before it exists, are read and tried again.
        for effect in [Effect::LoseAnswer, Effect::Conflict] {
            let (root, faults) = watched(&case).await;
            faults.arm(Fault::path(Request::Create, PROBE_DIR, 1, effect));
            root.prove_conditional_create().await.unwrap();
        }
        // A probe that cannot be deleted stays, and the graph does not mind.
        let (root, faults) = watched(&case).await;
        faults.arm(every(Request::Delete, PROBE_DIR, Effect::Fail));
        root.prove_conditional_create().await.unwrap();
        assert_eq!(root.list_sorted(PROBE_DIR).await.unwrap().len(), 1);
        assert_eq!(case.check().await.outcome, Outcome::CheckPassed);
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
    });
}

#[test]
fn a_conflict_over_a_version_nobody_wrote_is_tried_again() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let (root, faults) = watched(&case).await;
        // Fence, four conversions, activation: the first create of each is refused.
        for n in [1, 3, 5, 7, 9, 11] {
            faults.arm(Fault::path(
                Request::Create,
                "_versions/",
                n,
                Effect::Conflict,
            ));
        }
        let report = upgrade(&root, &UpgradeOptions::default()).await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
        assert_eq!(faults.injected(), 6);
    });
}

#[test]
fn a_conflict_that_does_not_end_leaves_a_named_state() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let (root, faults) = watched(&case).await;
        faults.arm(every(Request::Create, "_versions/", Effect::Conflict));
        let report = upgrade(&root, &UpgradeOptions::default()).await;
        assert_eq!(codes(&report), ["fence_publication_attempted"]);
        assert_eq!(faults.injected(), 5);
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
    });
}
