//! The census of genuine roots, compared with what their upgrade must report.
//!
//! `OMNIGRAPH_SAMPLE_ROOTS` lists unpacked roots separated by `:`; the last part of each path is the
//! root's name in the JSON file `OMNIGRAPH_SAMPLE_EXPECTED` names. `OMNIGRAPH_SAMPLE_PAIRS` lists pairs
//! `source=converted` of roots, the second converted from the first by another implementation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use std::collections::BTreeMap;

use census::{Census, CensusInput, Limits, RefInput, census, check_budgets};
use graph::history::legacy::{LegacyLayout, plan};
use graph::model::names::{SCHEMA_APPLY_LOCK, logical_name};
use graph::refs::{NativeRef, inventory};
use graph::stamp::StampReading;
use graph::store::{Root, RootOptions};
use legacy::{LegacySource, root_objects};
use serde_json::{Value, json};
use ulid::Ulid;

async fn pinned(root: &Root, r: Option<&NativeRef>) -> RefInput {
    let native = r.map(|r| r.native.as_str());
    RefInput {
        native: native.map(str::to_string),
        pinned: root.open_manifest(native, None).await.unwrap().version,
        parent: r.and_then(|r| r.contents.parent_branch.clone()),
        parent_version: r.map_or(0, |r| r.contents.parent_version),
    }
}

async fn take(root: &Root) -> (Census, CensusInput, usize) {
    let main = root.open_manifest(None, None).await.unwrap();
    let stamp = StampReading::of(&main).number().unwrap();
    let contract = root_objects::read(root, stamp)
        .await
        .unwrap()
        .unwrap()
        .contract;
    let refs = inventory(root).await.unwrap();
    let (mut live, mut retired) = (vec![pinned(root, None).await], Vec::new());
    let mut locks = 0;
    for r in &refs.live {
        let input = pinned(root, Some(r)).await;
        if logical_name(&r.native) == SCHEMA_APPLY_LOCK {
            locks += 1;
            retired.push(input);
        } else {
            live.push(input);
        }
    }
    for r in &refs.retired {
        retired.push(pinned(root, Some(r)).await);
    }
    let input = CensusInput {
        attempt: Ulid::nil(),
        live,
        retired,
        source: LegacySource::RootContract { stamp, contract },
        limits: Limits::default(),
    };
    let taken = census(root, &input, &|_| {}).await.unwrap();
    (taken.expect("no finding"), input, locks)
}

fn reported(census: &Census) -> (BTreeMap<String, Value>, Value) {
    let objects = plan(
        &census.chains,
        &LegacyLayout::CURRENT,
        census.attempt,
        census.source_stamp,
        &census.absent_parents,
    )
    .unwrap();
    let c = &census.counts;
    assert_eq!(c.legacy_bytes, objects.record_bytes);
    let work = BTreeMap::from([
        ("live_refs".to_string(), json!(c.live_refs)),
        ("retired_refs".into(), json!(c.retired_refs)),
        ("orphan_writers".into(), json!(c.orphan_writers)),
        ("legacy_commits".into(), json!(c.legacy_commits)),
        ("bookkeeping_versions".into(), json!(c.bookkeeping_versions)),
        ("absent_parents".into(), json!(c.absent_parents)),
        ("schema_contents".into(), json!(c.schema_contents)),
        ("data_files".into(), json!(objects.data_files.len())),
        ("id_shards".into(), json!(objects.id_shards.len())),
        ("writer_shards".into(), json!(objects.writer_shards.len())),
    ]);
    let heads = census
        .heads
        .iter()
        .map(|h| {
            let named = h.native.clone().unwrap_or_else(|| "main".into());
            (named, json!([h.pinned, h.record.commit.graph_commit_id]))
        })
        .collect::<serde_json::Map<_, _>>();
    (work, Value::Object(heads))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs OMNIGRAPH_SAMPLE_ROOTS and OMNIGRAPH_SAMPLE_EXPECTED"]
async fn counts_and_heads_are_the_expected_ones() {
    let roots = std::env::var("OMNIGRAPH_SAMPLE_ROOTS").unwrap();
    let expected = std::env::var("OMNIGRAPH_SAMPLE_EXPECTED").unwrap();
    let expected: Value =
        serde_json::from_str(&std::fs::read_to_string(expected).unwrap()).unwrap();
    for path in roots.split(':') {
        let name = path.rsplit('/').next().unwrap();
        let root = Root::open(path, RootOptions::default()).await.unwrap();
        let (census, input, locks) = take(&root).await;
        assert!(
            check_budgets(&root, &input, locks)
                .await
                .unwrap()
                .is_empty()
        );
        let (work, heads) = reported(&census);
        eprintln!("{name}: {:?}", census.counts);
        for (key, want) in expected[name]["work"].as_object().unwrap() {
            if let Some(got) = work.get(key) {
                assert_eq!(got, want, "{name} {key}");
            }
        }
        let want: serde_json::Map<_, _> = expected[name]["heads"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (k.clone(), json!([v["source_version"], v["head_commit"]])))
            .collect();
        assert_eq!(heads, Value::Object(want), "{name}");
    }
}

/// Records, digests, shards and directory must be byte for byte what another implementation wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs OMNIGRAPH_SAMPLE_PAIRS"]
async fn planned_objects_equal_those_of_another_implementation() {
    let pairs = std::env::var("OMNIGRAPH_SAMPLE_PAIRS").unwrap();
    for pair in pairs.split(':') {
        let (source, converted) = pair.split_once('=').unwrap();
        let root = Root::open(source, RootOptions::default()).await.unwrap();
        let (census, ..) = take(&root).await;
        let locator = std::path::Path::new(converted).join("__history/legacy/locator");
        let directory = std::fs::read(locator.join("directory.oglx")).unwrap();
        let attempt = Ulid::from_bytes(directory[16..32].try_into().unwrap());
        let objects = plan(
            &census.chains,
            &LegacyLayout::CURRENT,
            attempt,
            census.source_stamp,
            &census.absent_parents,
        )
        .unwrap();
        for (kind, shards) in [
            ("ids", &objects.id_shards),
            ("writers", &objects.writer_shards),
        ] {
            for (n, shard) in shards.iter().enumerate() {
                let stored = std::fs::read(locator.join(format!("{kind}/{n:08}.oglx"))).unwrap();
                assert_eq!(*shard, stored, "{pair} {kind} {n}");
            }
        }
        assert_eq!(objects.directory, directory, "{pair}");
        for contract in &census.contracts {
            let archive = format!("__history/schemas/{}.schema", contract.content_hash());
            let stored = std::fs::read(std::path::Path::new(converted).join(archive)).unwrap();
            assert_eq!(contract.contract().encode().unwrap(), stored, "{pair}");
        }
    }
}
