//! Something else writes between the plan and its effect: nothing foreign is buried, nothing is published over it.

use std::collections::BTreeSet;

use fixtures::tree::{tree_changes, tree_digest};
use graph::model::names::MAIN;
use legacy::publish::{Lineage, publish};
use recover::apply::{Applied, apply};
use recover::listing;
use recover::plan::{Decision, Pass, plan};
use recover::report::Outcome;

use crate::carried::carry;
use crate::support::edit::*;
use crate::support::*;

#[test]
fn a_commit_after_the_proof_is_not_buried() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-armed-partial");
        let opened = open(root.path()).await;
        let listed = listing::list(&opened).await.unwrap();
        let pass = Pass {
            root: &opened,
            listed: &listed,
            now: NOW,
        };
        let (file, sidecar) = (&listed[0].file, listed[0].sidecar.as_ref().unwrap());
        let planned = plan(&pass, file, sidecar).await;
        assert_eq!(planned.decision, Decision::RollBack);
        let target = location(&only_sidecar(root.path()), "node:Target");
        raw_delete(&opened, &target, None, "true").await;
        let head = newest(&opened, &target, None).await.manifest().version;
        let applied = apply(&pass, file, sidecar, &planned).await.unwrap();
        assert!(matches!(applied, Applied::Again(_)), "{applied:?}");
        assert_eq!(
            newest(&opened, &target, None).await.manifest().version,
            head
        );
        // The next plan sees it.
        assert_eq!(confirm(root.path()).await.outcome, Outcome::Refused);
    });
}

#[test]
fn a_publish_after_the_decision_is_not_published_over() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-confirmed");
        let opened = open(root.path()).await;
        let listed = listing::list(&opened).await.unwrap();
        let pass = Pass {
            root: &opened,
            listed: &listed,
            now: NOW,
        };
        let (file, sidecar) = (&listed[0].file, listed[0].sidecar.as_ref().unwrap());
        let planned = plan(&pass, file, sidecar).await;
        assert_eq!(planned.decision, Decision::RollForward);
        let lineage = Lineage {
            id: "01M8PZZZZZZZZZZZZZZZZZZZZZ".into(),
            actor: None,
            merged_parent: None,
            created_at: 1,
        };
        publish(&opened, None, None, &[], &lineage).await.unwrap();
        let before = tree_digest(root.path()).unwrap();
        let applied = apply(&pass, file, sidecar, &planned).await.unwrap();
        assert!(
            matches!(&applied, Applied::Again(why) if why.contains("graph_head:main")),
            "{applied:?}"
        );
        let after = tree_digest(root.path()).unwrap();
        assert_eq!(tree_changes(&before, &after), [""; 0]);
        let report = confirm(root.path()).await;
        assert_eq!(
            report.sidecars[0].decision,
            Decision::RollBack,
            "{report:#?}"
        );
    });
}

#[test]
fn a_fork_of_stamp_8_belongs_to_its_owner() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for (owner, outcome) in [
            ("touch", Outcome::Recovered),
            ("touch.01ARZ3NDEKTSV4RRFFQ69G5FAV", Outcome::Refused),
        ] {
            let root = stopped(&archives, "sc-touch-fork");
            carry(root.path(), 8).await;
            let file = only_sidecar(root.path());
            let observed = location(&file, "edge:Observed");
            let opened = open(root.path()).await;
            raw_append(&opened, &observed, Some("touch")).await;
            let dataset = newest(&opened, &observed, Some("touch")).await;
            let uuid = dataset.read_transaction().await.unwrap().unwrap().uuid;
            edit(&file, |v| {
                payload(v)["effects"][1]["planned_transaction"]["uuid"] = uuid.into();
                v["tables"][1]["table_fork_owner"] = owner.into();
            });
            let report = confirm(root.path()).await;
            assert_eq!(report.outcome, outcome, "{report:#?}");
            if outcome == Outcome::Refused {
                assert!(report.sidecars[0].reason.contains(owner), "{report:#?}");
                continue;
            }
            let after = left(root.path(), &BTreeSet::new()).await;
            let pin = &after.pins["touch"]["edge:Observed"];
            assert_eq!((pin.0, pin.1.as_deref()), (4, Some("touch")));
            assert!(
                pin.3.contains("Some(\"touch\")"),
                "the pin names its owner: {}",
                pin.3
            );
            let rows = |branch: &str| after.rows[&format!("{branch} edge:Observed")].clone();
            assert_eq!(rows("touch"), rows(MAIN));
        }
    });
}
