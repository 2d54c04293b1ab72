//! Behaviours 44 to 47, and the pending graphs of section 8: what a resumed run refuses.

use fixtures::damage::bytes::{flip, replace, truncate};
use fixtures::damage::objects::{remove, sidecar};
use fixtures::fault_store::{Effect, Fault, FaultStore, Kind as Request, On, seen_uri};
use fixtures::legacy_writer::{CommitSpec, Publish, Retirement, set_metadata};
use graph::history::legacy::Directory;
use graph::stamp::PENDING_KEY;
use graph::store::{Root, RootOptions};
use upgrade::{Outcome, UpgradeOptions, upgrade};

use crate::interrupted::other_attempt;
use crate::resumed::{FENCING, RERUN, completes, fenced, refuses, with_directory};
use crate::support::*;
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
