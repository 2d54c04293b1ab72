//! Graphs that were converted from stamps 8, 9 and 13 take writes like any other
//! (`docs/format/upgrade-protocol.md` 11, behaviours 32, 34 and 37).

use fixtures::fixture_s::{FixtureS, SpecS};
use graph::history::lookup::HistoryReader;
use graph::model::names::logical_name;
use graph::view::{At, commit_list, snapshot};
use upgrade::{Outcome, UpgradeOptions, upgrade};
use write::branches::{create, delete};
use write::load::{LoadOptions, Mode};

use crate::support::*;

fn person(name: &str) -> String {
    format!("{{\"type\":\"Person\",\"data\":{{\"name\":\"{name}\",\"age\":7}}}}\n")
}

#[test]
fn b37_every_converted_branch_takes_loads_and_settles_its_legacy_head() {
    on_deep_stack(|| async {
        for spec in [SpecS::stamp_8(), SpecS::stamp_9(), SpecS::stamp_13()] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s");
            let s = FixtureS::create(&path, spec).await.unwrap();
            let root = open(&path).await;
            let report = upgrade(&root, &UpgradeOptions::default()).await;
            assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
            let singletons = path.join("__history/singletons");
            assert!(!singletons.exists());
            for (native, legacy_head) in s.head_commits() {
                let branch = native.map(|n| logical_name(n).to_string());
                let name = branch.as_deref();
                let before = export(&root, name, &At::Head).await;
                let reader = HistoryReader::new(root.clone());
                let legacy = reader.record(legacy_head).await.unwrap().unwrap();
                let mut ids = Vec::new();
                // The first publish holds the legacy head, a later one closes a block, the one after that releases.
                for n in 0..5 {
                    let mode = [Mode::Append, Mode::Merge][n % 2];
                    let options = LoadOptions {
                        branch: branch.clone(),
                        budget: 1_024,
                        ..options(mode)
                    };
                    let text = person(&format!("new {n}"));
                    let loaded = load_into(&root, &text, &options).await.unwrap();
                    ids.push(loaded.graph_commit_id.unwrap());
                }
                let lineage: Vec<String> = commit_list(&root, name)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|c| c.graph_commit_id)
                    .collect();
                let mut newest: Vec<String> = ids.clone();
                newest.reverse();
                newest.push(legacy_head.to_string());
                assert_eq!(lineage[..6], newest, "stamp {} {name:?}", spec.stamp);
                // The settled copy equals the record of the legacy objects.
                let settled = HistoryReader::new(root.clone());
                let copy = settled.record(legacy_head).await.unwrap().unwrap();
                assert_eq!(copy, legacy);
                let shown = export(&root, name, &At::Commit(legacy_head.into())).await;
                assert_eq!(shown, before);
                let now = export(&root, name, &At::Head).await;
                assert_eq!(now.lines().count(), before.lines().count() + 5);
            }
            assert_eq!(std::fs::read_dir(&singletons).unwrap().count(), 4);
            // Numbers from before the upgrade serve what they did.
            for version in 1..=3 {
                let old = snapshot(&root, None, &At::Version(version)).await.unwrap();
                assert_eq!(old.manifest_version, version);
            }
            verified(&root).await;
            // A branch cut now crosses the upgrade as well, and can go.
            create(&root, "later", Some("feature")).await.unwrap();
            let options = LoadOptions {
                branch: Some("later".into()),
                ..options(Mode::Append)
            };
            load_into(&root, &person("later"), &options).await.unwrap();
            let lineage = commit_list(&root, Some("later")).await.unwrap();
            assert_eq!(lineage.last().unwrap().graph_commit_id, s.commit(1));
            delete(&root, "feature").await.unwrap();
            delete(&root, "later").await.unwrap();
            verified(&root).await;
        }
    })
    .unwrap();
}

/// The change feed is no command of this toolkit; what it walks is the lineage, which has no gap at the upgrade.
#[test]
fn b32_commit_lists_and_lookups_cross_the_upgrade_down_to_genesis() {
    on_deep_stack(|| async {
        for spec in [SpecS::stamp_8(), SpecS::stamp_9(), SpecS::stamp_13()] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s");
            let s = FixtureS::create(&path, spec).await.unwrap();
            let root = open(&path).await;
            let report = upgrade(&root, &UpgradeOptions::default()).await;
            assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
            let loaded = load_into(&root, &person("new"), &options(Mode::Append))
                .await
                .unwrap();
            let new = loaded.graph_commit_id.unwrap();
            let listed = commit_list(&root, None).await.unwrap();
            let ids: Vec<&str> = listed.iter().map(|c| c.graph_commit_id.as_str()).collect();
            assert_eq!(ids, [&new, s.commit(4), s.commit(2), s.commit(1)]);
            for pair in listed.windows(2) {
                let parent = pair[0].parent_commit_id.as_deref();
                assert_eq!(parent, Some(pair[1].graph_commit_id.as_str()));
            }
            assert_eq!(listed[3].parent_commit_id, None);
            for number in 1..=6 {
                let at = At::Commit(s.commit(number).into());
                let found = snapshot(&root, None, &at).await.unwrap();
                assert_eq!(found.head.graph_commit_id, s.commit(number));
            }
            // A state from before the drop of a type names what cannot be printed, or prints it.
            let mut out = Vec::new();
            let first = At::Commit(s.commit(1).into());
            let printed = write::export::export(&root, None, &first, &mut out, &|_| {}).await;
            match printed {
                Ok(_) => assert_eq!(spec.stamp, 13),
                Err(e) => assert!(e.to_string().contains("node:Draft"), "{e}"),
            }
        }
    })
    .unwrap();
}
