//! Behaviours 14, 15, 20, 23, 27, 28: policy, a moving source, stamps of refs, locks, tables, history.

use std::sync::{Arc, Mutex};

use fixtures::contract::Vintage;
use fixtures::damage::objects::{RootObjectDamage, extended, stage};
use fixtures::damage::rows;
use fixtures::fixture_s::contract_s;
use fixtures::legacy_writer::{
    CommitSpec, Layout, LegacyRoot, Publish, Retirement, RootSpec, Route, insert,
};
use graph::refs;
use graph::view::{At, snapshot};
use lance::dataset::WriteMode;
use upgrade::{Authorizer, Crossing, Outcome, UpgradeOptions, Work, upgrade};

use crate::support::*;

/// Denies one branch and remembers what it was asked.
#[derive(Debug, Default)]
struct Policy {
    denied: &'static str,
    asked: Mutex<Vec<String>>,
}

impl Authorizer for Policy {
    fn authorize(&self, actor: &str, action: &str, branch: &str) -> Result<(), String> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("{actor} {action} {branch}"));
        if branch == self.denied {
            return Err(format!("{actor} may not touch {branch}"));
        }
        Ok(())
    }
}

fn under(policy: &Arc<Policy>, actor: Option<&str>) -> UpgradeOptions {
    UpgradeOptions {
        authorizer: Some(policy.clone()),
        actor: actor.map(str::to_string),
        ..UpgradeOptions::default()
    }
}

#[test]
fn b14_a_denial_comes_before_every_finding_about_the_root() {
    run(|| async {
        let denied = Refused {
            code: "preflight_failed",
            route: Some(9),
            identity: false,
            says: &["eve may not touch feature"],
            recovery: None,
        };
        for damage in 0..4 {
            let kind = if damage == 3 { Kind::S9Lock } else { Kind::S9 };
            let case = kind.copy().await;
            match damage {
                1 => stage(&case.path(), "_schema.pg").unwrap(),
                2 => RootObjectDamage::SourceUnparsable
                    .apply(&case.path(), &case.names.contract)
                    .unwrap(),
                _ => {}
            }
            let policy = Arc::new(Policy {
                denied: "feature",
                ..Policy::default()
            });
            denied.with(&case, under(&policy, Some("eve"))).await;
            let asked = policy.asked.lock().unwrap().clone();
            let one = [
                "eve SchemaApply main",
                "eve SchemaApply child",
                "eve SchemaApply feature",
            ];
            assert_eq!(asked, [one, one].concat());
        }
    });
}

#[test]
fn b14_a_policy_needs_an_actor_and_may_allow() {
    run(|| async {
        let case = Kind::S9Lock.copy().await;
        let policy = Arc::new(Policy::default());
        Refused {
            code: "preflight_failed",
            route: Some(9),
            identity: false,
            says: &["actor"],
            recovery: None,
        }
        .with(&case, under(&policy, None))
        .await;
        let done = case.run(under(&policy, Some("ada"))).await;
        assert_eq!(done.outcome, Outcome::Completed);
        let asked = policy.asked.lock().unwrap().clone();
        // The lock is not asked for.
        assert_eq!(asked.len(), 4, "{asked:?}");
    });
}

#[test]
fn b14_a_denial_on_a_fenced_graph_is_an_interruption() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let stop = Stopper::after_fence();
        case.run(UpgradeOptions {
            observer: stop,
            ..UpgradeOptions::default()
        })
        .await;
        let before = case.digest();
        let policy = Arc::new(Policy {
            denied: "main",
            ..Policy::default()
        });
        let report = case.run(under(&policy, Some("eve"))).await;
        assert_eq!(report.outcome, Outcome::RecoveryRequired);
        assert_eq!(codes(&report), ["upgrade_interrupted"]);
        assert_eq!(
            report.last_durable_completed_boundary.as_deref(),
            Some("source_fenced")
        );
        assert_eq!(before, case.digest());
    });
}

/// A publish on main by another process.
async fn publish_on(uri: String, contract: fixtures::contract::Contract, native: Option<String>) {
    let natives: Vec<&str> = native.as_deref().into_iter().collect();
    let mut other = LegacyRoot::open(std::path::Path::new(&uri), contract, 99, &natives)
        .await
        .unwrap();
    let publish = Publish::committed(CommitSpec::by("late"));
    other.publish(native.as_deref(), publish).await.unwrap();
}

#[test]
fn b15_main_moved_between_inventory_and_fence() {
    run(|| async {
        for (at, code) in [
            (Crossing::BeforeArchive, "preflight_failed"),
            (Crossing::AfterArchive, "preflight_failed"),
            (Crossing::BeforeFence, "fence_publication_attempted"),
        ] {
            let case = Kind::S9.copy().await;
            let (uri, contract) = (case.uri(), case.names.contract.clone());
            let (options, act) = Act::options(
                move |c| *c == at,
                move || Box::pin(publish_on(uri, contract, None)),
            );
            let report = case.run(options).await;
            assert!(act.happened());
            assert_eq!(codes(&report), [code], "{report:#?}");
            assert_eq!(report.last_durable_completed_boundary, None);
            if code == "preflight_failed" {
                assert_eq!(
                    (report.outcome, &report.recovery),
                    (Outcome::CheckFailed, &None)
                );
                says(
                    message(&report),
                    &["version 5", "version 4", "run the check again"],
                );
            } else {
                assert_eq!(report.outcome, Outcome::RecoveryRequired);
                let recovery = report.recovery.clone().unwrap();
                says(
                    &recovery.executable_compatibility,
                    &["started the conversion"],
                );
            }
            // Nothing was fenced: check tells, and a later run converts the write too.
            let check = case.check().await;
            assert_eq!(check.outcome, Outcome::CheckPassed, "{check:#?}");
            let done = case.execute().await;
            assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
            assert_eq!(done.work.legacy_commits, 7);
            let root = case.root().await;
            let head = snapshot(&root, None, &At::Head).await.unwrap();
            assert_eq!(head.head.actor_id.as_deref(), Some("late"));
        }
    });
}

#[test]
fn b20_a_named_ref_of_another_stamp() {
    run(|| async {
        for (kind, stamp) in [(Kind::S9, 8), (Kind::S8, 9)] {
            let case = kind.copy().await;
            let feature = case.names.feature.clone();
            let mut legacy = case.legacy(&[]).await;
            let version = legacy.restamp(Some(&feature), Some(stamp)).await.unwrap();
            let (version, stamp) = (format!("version {version}"), format!("stamp {stamp}"));
            Refused {
                code: "preflight_failed",
                route: Some(kind.stamp()),
                identity: true,
                says: &[&feature, &version, &stamp],
                recovery: None,
            }
            .by(&case)
            .await;
        }
    });
}

#[test]
fn b23_a_live_lock_is_retired() {
    run(|| async {
        let case = Kind::S9Lock.copy().await;
        let lock = case.names.lock.clone().unwrap();
        let before = case.digest();
        let check = case.check().await;
        assert_eq!(check.outcome, Outcome::CheckPassed, "{check:#?}");
        assert_eq!(codes(&check), ["schema_apply_lock_retired"]);
        says(message(&check), &[&lock]);
        assert_eq!(before, case.digest());
        let counted = Work {
            census_reads: 0,
            census_cells: 0,
            legacy_bytes: 0,
            ..check.work
        };
        assert_eq!(counted, case.names.work());
        assert_eq!(counted.retired_refs, 3);
        let root = case.root().await;
        let identity = refs::read_ref(&root, &lock)
            .await
            .unwrap()
            .unwrap()
            .identifier;

        let done = case.execute().await;
        assert_eq!(done.outcome, Outcome::Completed, "{done:#?}");
        assert_eq!((done.findings, done.work), (check.findings, check.work));
        let inventory = refs::inventory(&root).await.unwrap();
        let retired = inventory.retired.iter().find(|r| r.native == lock).unwrap();
        assert_eq!(retired.contents.identifier, identity);
        assert_eq!(inventory.live.len(), 3);
        assert_eq!(refs::read_ref(&root, &lock).await.unwrap(), None);
        // Its tree stays.
        assert!(root.open_manifest(Some(&lock), None).await.is_ok());
    });
}

#[test]
fn b23_a_retired_lock_is_an_ordinary_retired_ref() {
    run(|| async {
        for how in [
            Retirement::Marked,
            Retirement::ArchivedBoth,
            Retirement::Archived,
        ] {
            let case = Kind::S9Lock.copy().await;
            let lock = case.names.lock.clone().unwrap();
            case.legacy(&[]).await.retire(&lock, how).unwrap();
            let check = case.check().await;
            assert_eq!(check.outcome, Outcome::CheckPassed);
            assert!(check.findings.is_empty());
            assert_eq!(check.work.retired_refs, 3);
            assert_eq!(case.execute().await.outcome, Outcome::Completed);
        }
    });
}

#[test]
fn b23_a_lock_under_a_tag_is_refused_before_the_fence() {
    run(|| async {
        let case = Kind::S9Lock.copy().await;
        let lock = case.names.lock.clone().unwrap();
        let tags = case.path().join("__manifest/_refs/tags");
        std::fs::create_dir_all(&tags).unwrap();
        let tag = format!(r#"{{"branch":"{lock}","version":4,"manifestSize":1}}"#);
        std::fs::write(tags.join("keep.json"), &tag).unwrap();
        let before = case.digest();
        for check in [true, false] {
            let report = case
                .run(UpgradeOptions {
                    check,
                    ..UpgradeOptions::default()
                })
                .await;
            assert_eq!(report.outcome, Outcome::CheckFailed, "{report:#?}");
            assert_eq!(
                codes(&report),
                ["schema_apply_lock_retired", "preflight_failed"]
            );
            says(&report.findings[1].message, &["keep", &lock]);
        }
        assert_eq!(before, case.digest());
        // A merge input of the engine holds nothing back.
        let input = tags.join("__omnigraph_merge_input_v1_x.json");
        std::fs::rename(tags.join("keep.json"), input).unwrap();
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
    });
}

#[test]
fn b27_a_table_the_objects_do_not_describe() {
    run(|| async {
        for on_main in [true, false] {
            let case = Kind::S9.copy().await;
            let n = &case.names;
            let (_, extra) = extended(&n.contract).unwrap();
            let native = (!on_main).then_some(n.feature.as_str());
            let mut legacy = case.legacy(&[]).await;
            rows::undescribed_table(&mut legacy, native, &extra)
                .await
                .unwrap();
            let of = native.unwrap_or("main");
            Refused {
                code: "unsupported_source",
                route: Some(9),
                identity: true,
                says: &["node:Zebra", of],
                recovery: None,
            }
            .by(&case)
            .await;
        }
    });
}

#[test]
fn b27_a_described_table_main_lacks() {
    run(|| async {
        let case = Kind::S8.copy().await;
        let (more, _) = extended(&case.names.contract).unwrap();
        more.write_objects(&case.path()).unwrap();
        Refused::routed("unsupported_source", 8, &["main", "node:Zebra"])
            .by(&case)
            .await;
    });
}

#[test]
fn b28_a_main_that_crossed_6_7_8_and_9() {
    run(|| async {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("s");
        let (contract, [_, person, knows]) = contract_s(Vintage::Bare).unwrap();
        let spec = RootSpec {
            stamp: None,
            seed: 6,
            layout: Layout::MergeInsert,
            contract,
        };
        let mut root = LegacyRoot::begin(&dir, spec).await.unwrap();
        let p1 = root.create_table(&person).await.unwrap();
        let k1 = root.create_table(&knows).await.unwrap();
        let genesis = Publish::committed(CommitSpec::default())
            .register(&person)
            .register(&knows)
            .pin(&person, &p1)
            .pin(&knows, &k1);
        root.create_manifest(None, genesis).await.unwrap();
        root.set_legacy_config().await.unwrap();
        root.stamp_in_place(None, 6).await.unwrap();
        let p2 = root.append(&person, &p1, 2).await.unwrap();
        let by = |actor| Publish::committed(CommitSpec::by(actor));
        root.publish(None, by("ada").pin(&person, &p2))
            .await
            .unwrap();
        root.fork("survey", None).await.unwrap();
        let p3 = root.append(&person, &p2, 2).await.unwrap();
        root.publish(Some("survey"), by("bo").pin(&person, &p3))
            .await
            .unwrap();
        root.run_route(Route::TO_7, &["survey"]).await.unwrap();
        root.run_route(Route::TO_8, &["survey"]).await.unwrap();
        // The respelling: stamp advance, tables rewritten, one publication.
        let (current, [_, person, knows]) = contract_s(Vintage::Underscored).unwrap();
        root.stamp_in_place(Some("survey"), 9).await.unwrap();
        root.stamp_in_place(None, 9).await.unwrap();
        root.contract = current.clone();
        let mut publish = by("cy");
        for (spec, pin, count) in [(&person, &p3, 2), (&knows, &k1, 0)] {
            let base = root.open_table(spec, pin).await.unwrap();
            let batch = spec.rows(Vintage::Underscored, 0..count).unwrap();
            let next = insert(root.root(), &base, WriteMode::Overwrite, batch)
                .await
                .unwrap();
            let pin = root.pin_of(&next, count as u64).await.unwrap();
            publish = publish.pin(spec, &pin);
        }
        root.publish(None, publish).await.unwrap();
        current.write_objects(&dir).unwrap();

        let opened = root.root().clone();
        let check = UpgradeOptions {
            check: true,
            ..UpgradeOptions::default()
        };
        let check = upgrade(&opened, &check).await;
        assert_eq!(check.outcome, Outcome::CheckPassed, "{check:#?}");
        let w = check.work;
        assert_eq!(
            (w.live_refs, w.retired_refs, w.legacy_commits, w.table_opens),
            (2, 0, 4, 2)
        );
        let done = upgrade(&opened, &UpgradeOptions::default()).await;
        assert_eq!(
            (done.outcome, done.work),
            (Outcome::Completed, w),
            "{done:#?}"
        );
        let last = opened.open_manifest(None, None).await.unwrap().version;
        let mut versions = Vec::new();
        for version in 1..=last {
            let shown = snapshot(&opened, None, &At::Version(version))
                .await
                .unwrap();
            let pin = shown.tables[0].state.pin().unwrap();
            versions.push((pin.table_version, pin.row_count));
        }
        // Genesis to v3 the empty table, the load from v4, the respelled one from its own version.
        assert_eq!(versions[..3], [(1, 0); 3]);
        let respelled = versions.iter().position(|v| v.0 == 4).unwrap();
        assert!(
            versions[3..respelled].iter().all(|v| *v == (2, 2)),
            "{versions:?}"
        );
        assert!(
            versions[respelled..].iter().all(|v| *v == (4, 2)),
            "{versions:?}"
        );
        let survey = snapshot(&opened, Some("survey"), &At::Head).await.unwrap();
        assert_eq!(survey.tables[0].state.pin().unwrap().table_version, 3);
    });
}
