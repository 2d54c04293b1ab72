//! The census of genuine roots, compared with what their upgrade must report and with what another
//! implementation of the format wrote. Skipped where the sample roots are not at hand.

use std::path::{Path, PathBuf};

use census::{Census, check_budgets};
use fixtures::legacy_writer::row::decode;
use fixtures::legacy_writer::scan;
use fixtures::sample::{expected, samples_folder, unpack};
use graph::history::legacy::{LegacyLayout, PlannedObjects, plan};
use legacy::{LegacySource, Role};
use serde_json::{Map, Value, json};
use ulid::Ulid;

use crate::common;

const SOURCES: [&str; 7] = [
    "s8-observa1",
    "s8-lock-ab1",
    "s9-evolution",
    "s9-cleaned",
    "s9-foreign",
    "s13-observa",
    "s13-evolution",
];
/// A source and the same root converted by another implementation.
const CONVERTED: [(&str, &str); 2] = [
    ("s8-observa1", "s14-observa"),
    ("s9-evolution", "s14-evolution"),
];

fn samples() -> Option<PathBuf> {
    let found = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR")));
    if found.is_none() {
        eprintln!("skipped: no sample roots");
    }
    found
}

fn planned(census: &Census, attempt: Ulid) -> PlannedObjects {
    plan(
        &census.chains,
        &LegacyLayout::CURRENT,
        attempt,
        census.source_stamp,
        &census.absent_parents,
    )
    .unwrap()
}

fn work(census: &Census, objects: &PlannedObjects) -> Value {
    let c = &census.counts;
    json!({
        "live_refs": c.live_refs,
        "retired_refs": c.retired_refs,
        "orphan_writers": c.orphan_writers,
        "legacy_commits": c.legacy_commits,
        "bookkeeping_versions": c.bookkeeping_versions,
        "absent_parents": c.absent_parents,
        "schema_contents": c.schema_contents,
        "data_files": objects.data_files.len(),
        "id_shards": objects.id_shards.len(),
        "writer_shards": objects.writer_shards.len(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_and_heads_are_the_expected_ones() {
    let Some(samples) = samples() else { return };
    let expected = expected(&samples).unwrap();
    for name in SOURCES {
        let unpacked = unpack(&samples, name).unwrap();
        let root = common::open(unpacked.path()).await;
        let (input, locks) = common::input(&root).await;
        assert_eq!(check_budgets(&root, &input, locks).await.unwrap(), []);
        let census = common::take(&root, &input).await.unwrap().unwrap();
        let objects = planned(&census, Ulid::nil());
        assert_eq!(census.counts.legacy_bytes, objects.record_bytes);

        let mut want = expected[name]["work"].clone();
        want.as_object_mut().unwrap().remove("table_opens");
        assert_eq!(work(&census, &objects), want, "{name}");
        let heads: Map<_, _> = census
            .heads
            .iter()
            .map(|h| {
                let named = h.native.clone().unwrap_or_else(|| "main".into());
                (named, json!([h.pinned, h.record.commit.graph_commit_id]))
            })
            .collect();
        let want: Map<_, _> = expected[name]["heads"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (k.clone(), json!([v["source_version"], v["head_commit"]])))
            .collect();
        assert_eq!(heads, want, "{name}");
    }
}

/// The directory lists the digest of every record, so equal directories mean equal records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_objects_equal_those_of_another_implementation() {
    let Some(samples) = samples() else { return };
    for (source, converted) in CONVERTED {
        let (source, converted) = (
            unpack(&samples, source).unwrap(),
            unpack(&samples, converted).unwrap(),
        );
        let census = common::clean(&common::open(source.path()).await).await;
        let history = converted.path().join("__history");
        let locator = history.join("legacy").join("locator");
        let directory = std::fs::read(locator.join("directory.oglx")).unwrap();
        let objects = planned(
            &census,
            Ulid::from_bytes(directory[16..32].try_into().unwrap()),
        );
        assert_eq!(objects.directory, directory);
        for (kind, shards) in [
            ("ids", &objects.id_shards),
            ("writers", &objects.writer_shards),
        ] {
            for (n, shard) in shards.iter().enumerate() {
                let stored = std::fs::read(locator.join(format!("{kind}/{n:08}.oglx"))).unwrap();
                assert_eq!(*shard, stored, "{kind} {n}");
            }
        }
        for contract in &census.contracts {
            let archive = format!("schemas/{}.schema", contract.content_hash());
            let stored = std::fs::read(history.join(archive)).unwrap();
            assert_eq!(contract.contract().encode().unwrap(), stored);
        }
    }
}

/// At stamp 13 every commit names the contract row of the version it wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stamp_13_commits_name_their_own_contract() {
    let Some(samples) = samples() else { return };
    for (name, contracts) in [("s13-observa", 1), ("s13-evolution", 5)] {
        let unpacked = unpack(&samples, name).unwrap();
        let root = common::open(unpacked.path()).await;
        let census = common::clean(&root).await;
        let digests: Vec<&str> = census.contracts.iter().map(|c| c.content_hash()).collect();
        assert_eq!(digests.len(), contracts, "{name}");
        assert!(digests.is_sorted(), "{name}");
        for chain in &census.chains {
            for record in &chain.records {
                let commit = &record.commit;
                let version = Some(commit.graph_manifest_version);
                let opened = root
                    .open_manifest(chain.native.as_deref(), version)
                    .await
                    .unwrap();
                let stamp = LegacySource::Stamp13
                    .admit(&opened, Role::Retained)
                    .unwrap();
                let stored = legacy::read_contract(&opened, stamp)
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!(
                    commit.schema_content_hash.as_deref(),
                    Some(stored.content_hash()),
                    "{name} {version:?}"
                );
                assert_eq!(commit.schema_contract.as_ref(), Some(stored.head()));
                stored.contract().validate().unwrap();
            }
        }
        // Pins are kept as they are stored, whatever they say of staging and the linear head.
        for head in &census.heads {
            let opened = root
                .open_manifest(head.native.as_deref(), Some(head.pinned))
                .await
                .unwrap();
            let mut rows = Vec::new();
            for batch in scan(&opened.dataset).await.unwrap() {
                rows.extend(decode(&batch).unwrap());
            }
            for table in &head.record.tables {
                let Some(pin) = table.state.pin() else {
                    continue;
                };
                let id = format!(
                    "table_version:{}:{:020}",
                    table.identity, pin.manifest_version
                );
                let row = rows.iter().find(|r| r.object_id == id).unwrap();
                assert_eq!(row.metadata, Some(pin.metadata.to_json()), "{name} {id}");
                assert_eq!(row.table_version, Some(pin.table_version), "{name} {id}");
            }
        }
    }
}

/// Nothing of a genuine root at 8 or 9 is read but what its earlier upgrades and renames hide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proofs_find_what_reading_finds() {
    let Some(samples) = samples() else { return };
    for name in SOURCES {
        let unpacked = unpack(&samples, name).unwrap();
        let root = common::open(unpacked.path()).await;
        let [cells, exhaustive] = crate::proof::both_ways(&root).await;
        eprintln!("{name}: {cells} of {exhaustive} rows scanned");
        assert!(cells <= exhaustive, "{name}");
        if name.starts_with("s9") || name.starts_with("s8") {
            assert!(cells * 2 < exhaustive, "{name}: {cells} of {exhaustive}");
        }
    }
}
