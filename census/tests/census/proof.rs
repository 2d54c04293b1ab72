//! What follows from manifests is what reading every version finds (`docs/format/legacy-manifest.md` 7.8).

use fixtures::contract::Vintage;
use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::history_gen::{HistorySpec, generate};
use fixtures::legacy_writer::{CommitSpec, Layout, LegacyRoot, Publish};
use graph::history::legacy::{LegacyLayout, plan};
use graph::store::Root;
use lance::Dataset;
use tempfile::TempDir;

use crate::common;

/// Take the census with and without reading every version. Both must find the same, to the byte of every
/// planned object. Returns the rows each scanned.
pub async fn both_ways(root: &Root) -> [u64; 2] {
    let (mut input, _) = common::input(root).await;
    let mut found = Vec::new();
    for exhaustive in [false, true] {
        input.exhaustive = exhaustive;
        let census = match common::take(root, &input).await.unwrap() {
            Ok(census) => census,
            Err(findings) => {
                found.push((Err(findings), 0));
                continue;
            }
        };
        let objects = plan(
            &census.chains,
            &LegacyLayout::CURRENT,
            input.attempt,
            census.source_stamp,
            &census.absent_parents,
        )
        .unwrap();
        let counts = census.counts;
        let cells = counts.census_cells;
        let same = (
            counts.legacy_commits,
            counts.bookkeeping_versions,
            counts.census_reads,
        );
        let contracts: Vec<String> = census
            .contracts
            .iter()
            .map(|c| c.content_hash().to_string())
            .collect();
        found.push((
            Ok((
                format!("{objects:?}"),
                format!("{:?}", census.heads),
                contracts,
                same,
            )),
            cells,
        ));
    }
    assert_eq!(found[0].0, found[1].0);
    [found[0].1, found[1].1]
}

async fn fixture(spec: SpecS) -> (TempDir, FixtureS) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("root");
    (folder, FixtureS::create(&dir, spec).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fixture_s_in_every_layout() {
    let nine = SpecS::stamp_9();
    let overwritten = SpecS {
        layout: Layout::Overwrite,
        ..nine
    };
    let bare = SpecS {
        vintage: Vintage::Bare,
        ..nine
    };
    for (spec, proves) in [
        (SpecS::stamp_8(), true),
        (nine, true),
        (bare, true),
        (overwritten, false),
        (SpecS::stamp_13(), false),
    ] {
        let (_folder, s) = fixture(spec).await;
        let [cells, exhaustive] = both_ways(s.root.root()).await;
        if proves {
            // Version 1 alone, below the rename.
            assert!(
                cells > 0 && cells * 3 < exhaustive,
                "{spec:?}: {cells} of {exhaustive}"
            );
        } else {
            assert!(cells > 0, "{spec:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_history_is_proved_from_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("root");
    let spec = HistorySpec {
        compact_every: 7,
        ..HistorySpec::stamp_9(40)
    };
    let history = generate(&dir, spec).await.unwrap();
    let [cells, exhaustive] = both_ways(history.root.root()).await;
    assert_eq!(cells, 0, "of {exhaustive}");
}

/// What something else than a release may do to `__manifest`.
#[derive(Debug, Clone, Copy)]
enum Foreign {
    Compact,
    Restore,
    Delete,
    VersionGone,
    Overwrite,
}

async fn apply(root: &mut LegacyRoot, what: Foreign) {
    let head = root.state(None).unwrap().dataset.clone();
    let version = head.manifest().version;
    match what {
        Foreign::Compact => {
            root.compact_manifest(None).await.unwrap();
        }
        Foreign::Restore => {
            let mut old = head.checkout_version(version - 1).await.unwrap();
            old.restore().await.unwrap();
            root.load(None).await.unwrap();
        }
        Foreign::Delete => {
            let mut dataset = Dataset::clone(&head);
            dataset.delete("object_type = 'graph_head'").await.unwrap();
            root.load(None).await.unwrap();
        }
        Foreign::VersionGone => {
            let name = format!("{:020}.manifest", u64::MAX - (version - 1));
            let path = root.path().join("__manifest/_versions").join(name);
            std::fs::remove_file(path).unwrap();
        }
        Foreign::Overwrite => {
            root.rewrite(None, |_, _| ()).await.unwrap();
        }
    }
    root.publish(None, Publish::committed(CommitSpec::by("after")))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_else_wrote_the_versions() {
    for what in [
        Foreign::Compact,
        Foreign::Restore,
        Foreign::Delete,
        Foreign::VersionGone,
        Foreign::Overwrite,
    ] {
        let (_folder, mut s) = fixture(SpecS::stamp_9()).await;
        apply(&mut s.root, what).await;
        let [cells, exhaustive] = both_ways(s.root.root()).await;
        assert!(cells <= exhaustive, "{what:?}");
    }
}
