//! A second process that writes between two steps. The fence stops every reader and writer that looks;
//! one that looked before can still land. The run must then end in a named state, convert no ref under
//! that writer, and leave what it wrote in the root.

use fixtures::contract::Contract;
use fixtures::legacy_writer::refs::{read_ref, write_ref};
use fixtures::legacy_writer::{CommitSpec, LegacyRoot, Publish, Retirement, set_metadata};
use futures::future::BoxFuture;
use graph::refs;
use graph::stamp::{PENDING_KEY, StampReading};
use graph::store::{MANIFEST_DIR, Root, RootOptions};
use upgrade::{Crossing, Outcome};

use crate::support::*;

/// What the other process knows.
#[derive(Debug, Clone)]
struct Other {
    uri: String,
    contract: Contract,
    feature: String,
    fresh: String,
}

impl Other {
    fn of(case: &Case) -> Self {
        Self {
            uri: case.uri(),
            contract: case.names.contract.clone(),
            feature: case.names.feature.clone(),
            fresh: case.names.fresh.clone(),
        }
    }

    async fn open(&self, natives: &[&str]) -> LegacyRoot {
        let path = std::path::Path::new(&self.uri);
        LegacyRoot::open(path, self.contract.clone(), 99, natives)
            .await
            .unwrap()
    }

    /// A merge insert of 0.11.x, landing right above whatever is the head.
    async fn publish(self, native: Option<String>) {
        let natives: Vec<&str> = native.as_deref().into_iter().collect();
        let mut root = self.open(&natives).await;
        let publish = Publish::committed(CommitSpec::by("late"));
        root.publish(native.as_deref(), publish).await.unwrap();
    }

    async fn create_branch(self) {
        let mut root = self.open(&[&self.fresh]).await;
        let late = root.fork("late", Some(&self.fresh)).await.unwrap();
        root.publish(Some(&late), Publish::committed(CommitSpec::by("late")))
            .await
            .unwrap();
    }

    async fn compact(self, native: Option<String>) {
        let natives: Vec<&str> = native.as_deref().into_iter().collect();
        let mut root = self.open(&natives).await;
        root.compact_manifest(native.as_deref()).await.unwrap();
    }

    async fn delete_branch(self) {
        let mut root = self.open(&[&self.fresh]).await;
        root.retire(&self.fresh, Retirement::Archived).unwrap();
    }

    async fn recreate_branch(self) {
        let path = std::path::PathBuf::from(&self.uri);
        let mut contents = read_ref(&path, &self.fresh).unwrap();
        let last = contents.identifier.version_mapping.last_mut().unwrap();
        last.1 = "ab".repeat(16);
        write_ref(&path, &self.fresh, &contents).unwrap();
    }

    /// A metadata commit on a main that is converted already.
    async fn touch_main(self) {
        let root = Root::open(&self.uri, RootOptions::default()).await.unwrap();
        let head = root.open_manifest(None, None).await.unwrap();
        set_metadata(&root, &head.dataset, &[("note", Some("late".into()))])
            .await
            .unwrap();
    }
}

/// Whether the last commit of the other process is in the newest version of a ref.
async fn holds_late_commit(case: &Case, native: Option<&str>) -> bool {
    let root = case.root().await;
    let versions = root.linear_versions(MANIFEST_DIR, native).await.unwrap();
    let dataset = root
        .open_dataset(MANIFEST_DIR, native, versions.last().copied())
        .await
        .unwrap();
    let mut rows = Vec::new();
    for batch in fixtures::legacy_writer::scan(&dataset).await.unwrap() {
        rows.extend(fixtures::legacy_writer::row::decode(&batch).unwrap());
    }
    rows.iter()
        .filter_map(fixtures::legacy_writer::LegacyRow::commit_fields)
        .any(|c| c.actor.as_deref() == Some("late"))
}

/// Run beside `action` at the first crossing that fits: the run, a check and a rerun must all say that
/// the upgrade stands, and no later ref than `converted` may have been converted.
async fn collides(
    case: &Case,
    at: impl Fn(&Crossing) -> bool + Send + Sync + 'static,
    action: impl FnOnce(Other) -> BoxFuture<'static, ()> + Send + 'static,
    converted: &[&str],
    words: &[&str],
) {
    let other = Other::of(case);
    let (options, act) = Act::options(at, move || action(other));
    let report = case.run(options).await;
    assert!(act.happened());
    for (n, report) in [report, case.execute().await].iter().enumerate() {
        assert_eq!(report.outcome, Outcome::RecoveryRequired, "{report:#?}");
        assert_eq!(codes(report), ["upgrade_interrupted"], "{n}: {report:#?}");
        says(message(report), words);
        let recovery = report.recovery.as_ref().unwrap();
        assert_eq!(
            recovery.executable_compatibility,
            "this omnigraph executable"
        );
    }
    assert_eq!(codes(&case.check().await), ["pending_upgrade"]);
    let root = case.root().await;
    for r in refs::live_refs(&root).await.unwrap() {
        let head = root.open_manifest(Some(&r.native), None).await.unwrap();
        let now = StampReading::of(&head) == StampReading::Number(14);
        assert_eq!(now, converted.contains(&r.logical()), "{}", r.native);
    }
    let main = root.open_manifest(None, None).await.unwrap();
    assert!(main.metadata(PENDING_KEY).is_some());
}

fn at(crossing: Crossing) -> impl Fn(&Crossing) -> bool + Send + Sync + 'static {
    move |c| *c == crossing
}

fn staged(logical: &'static str) -> impl Fn(&Crossing) -> bool + Send + Sync + 'static {
    move |c| matches!(c, Crossing::Staged { name } if name.starts_with(logical))
}

fn after(logical: &'static str) -> impl Fn(&Crossing) -> bool + Send + Sync + 'static {
    move |c| matches!(c, Crossing::Converted { name } if name.starts_with(logical))
}

const ASIDE: &str = "copy the whole root aside";

#[test]
fn w_a_publish_on_main_above_the_fence_is_found_before_any_conversion() {
    run(|| async {
        for crossing in [Crossing::AfterFence, Crossing::LegacyValidated] {
            let case = Kind::S9.copy().await;
            let publish = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.publish(None)) };
            collides(
                &case,
                at(crossing),
                publish,
                &[],
                &["main", "version 6", ASIDE],
            )
            .await;
            assert!(holds_late_commit(&case, None).await);
        }
    });
}

#[test]
fn w_a_publish_on_main_beside_its_staged_conversion() {
    run(|| async {
        let case = Kind::S8.copy().await;
        let publish = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.publish(None)) };
        let named = ["child", "feature", "fresh"];
        collides(&case, staged("main"), publish, &named, &["main"]).await;
        assert!(holds_late_commit(&case, None).await);
        // The rerun knows that it was a write.
        says(message(&case.execute().await), &[ASIDE]);
    });
}

#[test]
fn w_a_publish_on_a_named_ref() {
    run(|| async {
        type At = Box<dyn Fn(&Crossing) -> bool + Send + Sync>;
        let points: [(At, &[&str]); 4] = [
            (Box::new(at(Crossing::BeforeFence)), &[]),
            (Box::new(at(Crossing::AfterFence)), &[]),
            (Box::new(at(Crossing::LegacyValidated)), &[]),
            (Box::new(after("child")), &["child"]),
        ];
        for (point, converted) in points {
            let case = Kind::S9.copy().await;
            let feature = case.names.feature.clone();
            let publish = |o: Other| -> BoxFuture<'static, ()> {
                let feature = o.feature.clone();
                Box::pin(o.publish(Some(feature)))
            };
            collides(
                &case,
                point,
                publish,
                converted,
                &[&feature, "version 6", ASIDE],
            )
            .await;
            assert!(holds_late_commit(&case, Some(&feature)).await);
        }
    });
}

#[test]
fn w_a_publish_on_a_named_ref_beside_its_staged_conversion() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let feature = case.names.feature.clone();
        let publish = |o: Other| -> BoxFuture<'static, ()> {
            let feature = o.feature.clone();
            Box::pin(o.publish(Some(feature)))
        };
        collides(&case, staged("feature"), publish, &["child"], &[&feature]).await;
        assert!(holds_late_commit(&case, Some(&feature)).await);
    });
}

#[test]
fn w_a_branch_is_created() {
    run(|| async {
        let create = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.create_branch()) };
        let case = Kind::S9.copy().await;
        collides(
            &case,
            at(Crossing::BeforeFence),
            create,
            &[],
            &["late", "appeared", ASIDE],
        )
        .await;
        let case = Kind::S9.copy().await;
        collides(
            &case,
            at(Crossing::LegacyValidated),
            create,
            &[],
            &["late", "appeared", ASIDE],
        )
        .await;
        // Found by the validation of the whole, with every ref but the new one converted.
        let case = Kind::S9.copy().await;
        let all = ["child", "feature", "fresh"];
        collides(
            &case,
            after("feature"),
            create,
            &all,
            &["late", "appeared", ASIDE],
        )
        .await;
        let root = case.root().await;
        let live = refs::live_refs(&root).await.unwrap();
        let late = live.iter().find(|r| r.logical() == "late").unwrap();
        assert!(holds_late_commit(&case, Some(&late.native)).await);
    });
}

#[test]
fn w_a_branch_is_deleted_or_created_again() {
    run(|| async {
        for crossing in [Crossing::AfterFence, Crossing::LegacyValidated] {
            let delete = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.delete_branch()) };
            let case = Kind::S9.copy().await;
            collides(
                &case,
                at(crossing.clone()),
                delete,
                &[],
                &["fresh", "no longer live"],
            )
            .await;
            let recreate = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.recreate_branch()) };
            let case = Kind::S9.copy().await;
            collides(
                &case,
                at(crossing),
                recreate,
                &[],
                &["fresh", "created again"],
            )
            .await;
        }
        let recreate = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.recreate_branch()) };
        let case = Kind::S9.copy().await;
        collides(
            &case,
            after("feature"),
            recreate,
            &["child", "feature"],
            &["fresh"],
        )
        .await;
    });
}

#[test]
fn w_a_compaction_of_the_catalog() {
    run(|| async {
        let compact_main = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.compact(None)) };
        let case = Kind::S9.copy().await;
        collides(
            &case,
            at(Crossing::AfterFence),
            compact_main,
            &[],
            &["main"],
        )
        .await;
        let case = Kind::S9.copy().await;
        let all = ["child", "feature", "fresh"];
        collides(&case, staged("main"), compact_main, &all, &["main"]).await;
        let compact = |o: Other| -> BoxFuture<'static, ()> {
            let feature = o.feature.clone();
            Box::pin(o.compact(Some(feature)))
        };
        let case = Kind::S9.copy().await;
        collides(&case, staged("feature"), compact, &["child"], &["feature"]).await;
    });
}

#[test]
fn w_a_compaction_before_the_fence_is_not_fenced_over() {
    run(|| async {
        // Lance would rebase a metadata commit over a compaction.
        let case = Kind::S9.copy().await;
        let other = Other::of(&case);
        let (options, act) = Act::options(at(Crossing::BeforeFence), move || {
            Box::pin(other.compact(None))
        });
        let report = case.run(options).await;
        assert!(act.happened());
        assert_eq!(codes(&report), ["fence_publication_attempted"]);
        let root = case.root().await;
        let main = root.open_manifest(None, None).await.unwrap();
        assert!(main.version > 4 && main.metadata(PENDING_KEY).is_none());
        assert_eq!(case.execute().await.outcome, Outcome::Completed);
    });
}

#[test]
fn w_a_commit_beside_the_activation_is_not_activated_over() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let touch = |o: Other| -> BoxFuture<'static, ()> { Box::pin(o.touch_main()) };
        let all = ["child", "feature", "fresh"];
        collides(
            &case,
            at(Crossing::BeforeActivation),
            touch,
            &all,
            &["main"],
        )
        .await;
        says(message(&case.execute().await), &["version 7", ASIDE]);
        let case = Kind::S9.copy().await;
        collides(
            &case,
            after("main"),
            touch,
            &all,
            &["main", "version 7", ASIDE],
        )
        .await;
    });
}

#[test]
fn w_two_upgrades_at_once() {
    run(|| async {
        for crossing in [Crossing::BeforeArchive, Crossing::BeforeFence] {
            let case = Kind::S9.copy().await;
            let uri = case.uri();
            let (options, act) = Act::options(at(crossing.clone()), move || {
                Box::pin(async move {
                    let root = Root::open(&uri, RootOptions::default()).await.unwrap();
                    let report = upgrade::upgrade(&root, &upgrade::UpgradeOptions::default()).await;
                    assert_eq!(report.outcome, Outcome::Completed);
                })
            });
            let report = case.run(options).await;
            assert!(act.happened());
            let code = if crossing == Crossing::BeforeFence {
                "fence_publication_attempted"
            } else {
                "preflight_failed"
            };
            assert_eq!(codes(&report), [code], "{report:#?}");
            assert_eq!(case.check().await.outcome, Outcome::AlreadyCurrent);
        }
    });
}

#[test]
fn w_a_rerun_overtakes_a_run_that_hangs() {
    run(|| async {
        // The first run wakes up after a second one finished the upgrade.
        for (crossing, boundary) in [
            (Crossing::AfterFence, "source_fenced"),
            (Crossing::LegacyValidated, "legacy_written"),
            (Crossing::BeforeActivation, "converted:main"),
        ] {
            let case = Kind::S9Lock.copy().await;
            let uri = case.uri();
            let (options, act) = Act::options(at(crossing), move || {
                Box::pin(async move {
                    let root = Root::open(&uri, RootOptions::default()).await.unwrap();
                    let report = upgrade::upgrade(&root, &upgrade::UpgradeOptions::default()).await;
                    assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
                })
            });
            let report = case.run(options).await;
            assert!(act.happened());
            assert_eq!(report.outcome, Outcome::RecoveryRequired, "{report:#?}");
            assert_eq!(
                report.last_durable_completed_boundary.as_deref(),
                Some(boundary)
            );
            let whole = crate::interrupted::whole(Kind::S9Lock).await;
            assert_eq!(left(&case).await, whole.left);
            assert_eq!(case.execute().await.outcome, Outcome::AlreadyCurrent);
        }
    });
}
