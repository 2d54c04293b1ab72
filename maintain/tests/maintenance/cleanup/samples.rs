//! Converted sample roots (behaviours 20, 21, 24 and 29): linear versions of older releases, forks, foreign commits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fixtures::sample::{SAMPLES_ENV, UnpackedRoot, samples_folder, unpack};
use fixtures::tree::tree_digest;
use graph::store::Root;
use graph::view::At;
use maintain::cleanup::facts::place;
use maintain::cleanup::listing::manifest_name;
use maintain::cleanup::reason::Reason;
use upgrade::{Outcome, UpgradeOptions, upgrade};

use super::support::*;

/// A sample, converted when it is not yet; `None`, after one line on stderr, where there are no samples.
async fn sample(name: &str) -> Option<(UnpackedRoot, Root)> {
    let Some(folder) = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR"))) else {
        eprintln!("skipped: no sample roots (set {SAMPLES_ENV} to their folder)");
        return None;
    };
    let unpacked = unpack(&folder, name).unwrap();
    let root = open(unpacked.path()).await;
    if !name.starts_with("s14") {
        let report = upgrade(&root, &UpgradeOptions::default()).await;
        assert_eq!(report.outcome, Outcome::Completed, "{name}: {report:#?}");
    }
    Some((unpacked, root))
}

/// Rows of every live branch's head.
async fn heads(root: &Root) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for listed in write::branches::list(root).await.unwrap() {
        let name = (listed.branch != "main").then_some(listed.branch.as_str());
        let rows = rows(root, name, &At::Head).await.unwrap();
        out.insert(listed.branch.clone(), rows);
    }
    out
}

/// Everything on disk that the heads' table versions refer to, indexes and deletion files too.
async fn referenced(root: &Root, folder: &Path) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for listed in write::branches::list(root).await.unwrap() {
        let name = (listed.branch != "main").then_some(listed.branch.as_str());
        let shown = graph::view::snapshot(root, name, &At::Head).await.unwrap();
        for table in &shown.tables {
            let Some(pin) = table.state.pin() else {
                continue;
            };
            let (path, native) = graph::table::table_location(table, pin);
            let place = place(&path, native.as_deref());
            let version = pin.metadata.staged_version.unwrap_or(pin.table_version);
            let key = format!("{place}/_versions/{}", manifest_name(version));
            let parts = root
                .read_manifest_parts(&place, &key, native.as_deref(), version)
                .await
                .unwrap();
            let files = parts.manifest.fragments.iter().flat_map(|f| &f.files);
            let bases = &parts.manifest.base_paths;
            for file in files {
                let below = match file.base_id {
                    None => folder.join(&place),
                    Some(id) => bases[&id].path.clone().into(),
                };
                out.insert(below.join("data").join(&file.path).display().to_string());
            }
            for index in parts.indices.iter().filter(|i| i.base_id.is_none()) {
                let below = format!("{place}/_indices/{}", index.uuid);
                assert!(folder.join(&below).is_dir(), "{below}");
                for entry in std::fs::read_dir(folder.join(&below)).unwrap() {
                    out.insert(entry.unwrap().path().display().to_string());
                }
            }
            for fragment in parts.manifest.fragments.iter() {
                if let Some(file) = fragment
                    .deletion_file
                    .as_ref()
                    .filter(|d| d.base_id.is_none())
                {
                    let path =
                        lance_table::io::deletion::relative_deletion_file_path(fragment.id, file);
                    out.insert(folder.join(&place).join(path).display().to_string());
                }
            }
        }
    }
    assert!(out.iter().all(|p| Path::new(p).exists()), "{out:#?}");
    out
}

async fn verified(root: &Root, name: &str) {
    let report = verify::verify(root, &verify::VerifyOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, verify::Outcome::Ok, "{name}: {report:#?}");
}

#[test]
fn heads_of_every_sample_survive_keep_1() {
    run(|| async {
        for name in [
            "s14-observa",
            "s14-evolution",
            "s8-observa1",
            "s9-evolution",
            "s9-cleaned",
            "s13-observa",
        ] {
            let Some((unpacked, root)) = sample(name).await else {
                return;
            };
            verified(&root, name).await;
            let before = heads(&root).await;
            let uses = referenced(&root, unpacked.path()).await;
            let files = tree_digest(unpacked.path()).unwrap();
            let report = clean(&root, keep(1)).await.unwrap();
            fine(&report);
            assert_eq!(heads(&root).await, before, "{name}");
            assert_eq!(referenced(&root, unpacked.path()).await, uses, "{name}");
            verified(&root, name).await;
            let after = tree_digest(unpacked.path()).unwrap();
            for (key, digest) in &after {
                assert_eq!(
                    files.get(key),
                    Some(digest),
                    "{name}: {key} is new or changed"
                );
            }
            for key in files.keys().filter(|k| !after.contains_key(*k)) {
                let table = key.starts_with("nodes/") || key.starts_with("edges/");
                assert!(table || key.starts_with("__manifest/"), "{name}: {key}");
                assert!(!key.starts_with("__manifest/_versions"), "{name}: {key}");
            }
            idle(&clean(&root, keep(1)).await.unwrap());
            assert_eq!(tree_digest(unpacked.path()).unwrap(), after, "{name}");
        }
    });
}

#[test]
fn what_a_live_fork_borrows_stays() {
    run(|| async {
        let Some((_unpacked, root)) = sample("s14-observa").await else {
            return;
        };
        let before = heads(&root).await;
        let report = clean(&root, keep(1)).await.unwrap();
        fine(&report);
        let forks: Vec<_> = report
            .native_trees
            .iter()
            .filter(|t| t.dataset != "__manifest")
            .collect();
        assert!(forks.iter().any(|t| !t.removed), "{forks:#?}");
        for fork in forks.iter().filter(|t| !t.removed) {
            let table = report
                .datasets
                .iter()
                .find(|r| r.table_path == fork.dataset)
                .unwrap();
            // Its parent's files may be its own.
            assert_eq!(table.files_removed, 0, "{table:#?}");
        }
        let kept = |reason| {
            report
                .datasets
                .iter()
                .any(|r| r.kept.iter().any(|k| k.reason == reason))
        };
        // What it borrows of main are versions from before the upgrade.
        assert!(kept(Reason::Legacy), "{:#?}", report.datasets);
        assert_eq!(heads(&root).await, before);
    });
}

/// What live branches can show of their lineages.
async fn lineages(root: &Root) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for live in write::branches::list(root).await.unwrap() {
        let name = (live.branch != "main").then_some(live.branch.as_str());
        for commit in graph::view::commit_list(root, name).await.unwrap() {
            let id = commit.graph_commit_id;
            if let Ok(rows) = rows(root, None, &At::Commit(id.clone())).await {
                found.insert((live.branch.clone(), id), rows);
            }
        }
    }
    found
}

#[test]
fn lineages_from_before_the_upgrade_outlive_the_branches_they_pass_through() {
    run(|| async {
        for (name, victims) in [
            ("s8-observa1", &["survey"][..]),
            ("s13-observa", &["survey"]),
            ("s13-observa", &["survey-deep"]),
            ("s13-observa", &["survey-deep", "survey"]),
        ] {
            let Some((_unpacked, root)) = sample(name).await else {
                return;
            };
            for victim in victims {
                write::branches::delete(&root, victim).await.unwrap();
            }
            let before = lineages(&root).await;
            fine(&clean(&root, keep(1)).await.unwrap());
            assert!(lineages(&root).await == before, "{name} {victims:?}");
            verified(&root, name).await;
        }
    });
}

#[test]
fn foreign_versions_of_a_converted_root_are_reported_and_kept() {
    run(|| async {
        let Some((unpacked, root)) = sample("s9-foreign").await else {
            return;
        };
        let report = clean(&root, keep(1)).await.unwrap();
        fine(&report);
        let target = row(&report, "node:Target");
        assert_eq!(target.foreign_versions.len(), 2, "{target:#?}");
        let folder = unpacked.path().join(&target.table_path).join("_versions");
        for version in &target.foreign_versions {
            let name = format!("{:020}.manifest", u64::MAX - version);
            assert!(folder.join(name).exists());
        }
        let head = unpacked.path().join(&target.table_path);
        let raw = lance::Dataset::open(head.to_str().unwrap()).await.unwrap();
        assert_eq!(
            raw.version().version,
            *target.foreign_versions.last().unwrap()
        );
        raw.count_rows(None).await.unwrap();
        verified(&root, "s9-foreign").await;
    });
}

#[test]
fn versions_an_older_cleanup_took_are_refused_until_keep_1() {
    run(|| async {
        let Some((unpacked, root)) = sample("s9-cleaned").await else {
            return;
        };
        let files = tree_digest(unpacked.path()).unwrap();
        let report = clean(&root, keep(1000)).await.unwrap();
        let failed: Vec<_> = report
            .datasets
            .iter()
            .filter(|r| r.error.is_some())
            .collect();
        assert!(!failed.is_empty(), "{report:#?}");
        for row in failed {
            let error = row.error.as_deref().unwrap();
            assert!(error.contains("is absent from the listing"), "{error}");
            assert_eq!((row.manifests_removed, row.bytes_removed), (0, 0));
        }
        assert!(report.datasets.iter().all(|r| r.files_removed == 0));
        assert_eq!(tree_digest(unpacked.path()).unwrap(), files);
        fine(&clean(&root, keep(1)).await.unwrap());
        idle(&clean(&root, keep(1)).await.unwrap());
    });
}
