#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use proptest::prelude::*;
use ulid::Ulid;

use super::*;
use crate::digest::sha256_hex;
use crate::error::{Error, Result};
use crate::history::path::ObjectKey;
use crate::history::testing::{ABSENT, FEATURE, commit, example_records, root, ulid};
use crate::model::HistoryRecord;
use crate::store::Root;

/// The bytes of a hex dump as the format text prints it, offsets left out.
fn dump(text: &str) -> Vec<u8> {
    hex::decode(text.split_whitespace().collect::<String>()).unwrap()
}

fn attempt() -> Ulid {
    Ulid::from_string("01K6R3000000000000000000A7").unwrap()
}

pub(crate) fn example_chains() -> Vec<Chain> {
    let mut records = example_records().into_iter().map(Arc::new);
    let (a1, b2, c3) = (
        records.next().unwrap(),
        records.next().unwrap(),
        records.next().unwrap(),
    );
    vec![
        Chain {
            kind: ChainKind::Live,
            native: Some(FEATURE.into()),
            parent: None,
            parent_version: 2,
            head_version: 3,
            records: vec![c3],
        },
        Chain {
            kind: ChainKind::Main,
            native: None,
            parent: None,
            parent_version: 0,
            head_version: 2,
            records: vec![a1, b2],
        },
    ]
}

fn absent() -> BTreeSet<Ulid> {
    [Ulid::from_string(ABSENT).unwrap()].into()
}

fn example_plan() -> PlannedObjects {
    plan(
        &example_chains(),
        &LegacyLayout::CURRENT,
        attempt(),
        13,
        &absent(),
    )
    .unwrap()
}

/// Main with `n` commits of one version each.
fn long_chain(n: u64) -> Chain {
    let mut parent: Option<String> = None;
    let records = (1..=n)
        .map(|version| {
            let id = ulid(u128::from(version)).to_string();
            let commit = commit(&id, version, parent.as_deref());
            parent = Some(id);
            Arc::new(HistoryRecord {
                commit,
                tables: Vec::new(),
            })
        })
        .collect();
    Chain {
        kind: ChainKind::Main,
        native: None,
        parent: None,
        parent_version: 0,
        head_version: n,
        records,
    }
}

#[test]
fn record_digests_of_the_example() {
    let records = example_records();
    let json = |r: &[HistoryRecord]| serde_json::to_string(r).unwrap();
    assert_eq!(json(&records[..2]).len(), 1_953);
    assert_eq!(json(&records[2..]).len(), 1_162);
    let digest = |r: &[HistoryRecord]| hex::encode(record_digest(r).unwrap());
    assert_eq!(
        digest(&records[..2]),
        "e0f2b2adb195584c4665f714167e0a61f75d8b25f4652fc27e130e39c80a8112"
    );
    assert_eq!(
        digest(&records[2..]),
        "1f2285581e649b5b93c223d30e68af3e1dbcc4f215e984739b4849293a635bb4"
    );
    assert_eq!(digest(&[]), sha256_hex(b"[]"));
}

#[test]
fn measures_of_the_example() {
    use crate::model::measure::{commit_bytes, record_bytes};
    let records = example_records();
    assert_eq!(
        records
            .iter()
            .map(|r| commit_bytes(&r.commit))
            .collect::<Vec<_>>(),
        [225, 256, 318]
    );
    assert_eq!(
        records.iter().map(record_bytes).collect::<Vec<_>>(),
        [722, 1_054, 1_116]
    );
    assert_eq!(example_plan().record_bytes, 722 + 1_054 + 1_116);
}

#[test]
fn the_example_plan_is_byte_exact() {
    let planned = example_plan();
    let ids = dump(
        "4f 47 4c 49 30 30 30 31 03 00 00 00 01 99 b0 2b
         83 20 52 94 a5 29 4a 52 94 a5 29 41 00 00 00 00
         00 00 00 00 01 99 b0 2b 83 e0 63 18 c6 31 8c 63
         18 c6 31 83 01 00 00 00 00 00 00 00 01 99 b0 2b
         87 80 5a d6 b5 ad 6b 5a d6 b5 ad 62 00 00 00 00
         01 00 00 00",
    );
    assert_eq!(planned.id_shards, [ids.clone()]);
    assert_eq!(
        sha256_hex(&ids),
        "6de3e18ec76479ca3a740c815fb3b2a81b0045c3895548d6b5df892cd9461578"
    );
    let writers = dump(
        "4f 47 4c 57 30 30 30 31 02 00 00 00 25 8c 91 c4
         13 5a 8b db f3 3a 99 44 0d 40 16 af 70 7f ed ed
         72 56 05 f4 d7 c0 cc 04 da 06 48 73 01 22 00 66
         65 61 74 75 72 65 2e 30 31 4b 36 52 32 51 30 59
         30 44 44 44 44 44 44 44 44 44 44 44 44 44 44 44
         34 00 00 02 00 00 00 00 00 00 00 03 00 00 00 00
         00 00 00 01 99 b0 2b 83 e0 63 18 c6 31 8c 63 18
         c6 31 83 01 00 00 00 01 00 00 00 e3 b0 c4 42 98
         fc 1c 14 9a fb f4 c8 99 6f b9 24 27 ae 41 e4 64
         9b 93 4c a4 95 99 1b 78 52 b8 55 00 00 00 00 00
         00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
         01 99 b0 2b 87 80 5a d6 b5 ad 6b 5a d6 b5 ad 62
         00 00 00 00 01 00 00 00",
    );
    assert_eq!(planned.writer_shards, [writers.clone()]);
    assert_eq!(
        sha256_hex(&writers),
        "bef3a3d402ab5b04952d51555645a50ba9205715737cf2a4cc0d2696461fbea2"
    );
    let directory = dump(
        "4f 47 4c 44 30 30 30 31 01 00 00 00 0d 00 00 00
         01 99 b0 30 00 00 00 00 00 00 00 00 00 00 01 47
         03 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00
         01 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00
         02 00 00 00 00 00 00 00 02 00 00 00 e0 f2 b2 ad
         b1 95 58 4c 46 65 f7 14 16 7e 0a 61 f7 5d 8b 25
         f4 65 2f c2 7e 13 0e 39 c8 0a 81 12 03 00 00 00
         00 00 00 00 03 00 00 00 00 00 00 00 01 00 00 00
         1f 22 85 58 1e 64 9b 5b 93 c2 23 d3 0e 68 af 3e
         1d bc c4 f2 15 e9 84 73 9b 48 49 29 3a 63 5b b4
         01 99 b0 2b 83 20 52 94 a5 29 4a 52 94 a5 29 41
         01 99 b0 2b 87 80 5a d6 b5 ad 6b 5a d6 b5 ad 62
         03 00 00 00 6d e3 e1 8e c7 64 79 ca 3a 74 0c 81
         5f b3 b2 a8 1b 00 45 c3 89 55 48 d6 b5 df 89 2c
         d9 46 15 78 25 8c 91 c4 13 5a 8b db f3 3a 99 44
         0d 40 16 af 70 7f ed ed 72 56 05 f4 d7 c0 cc 04
         da 06 48 73 e3 b0 c4 42 98 fc 1c 14 9a fb f4 c8
         99 6f b9 24 27 ae 41 e4 64 9b 93 4c a4 95 99 1b
         78 52 b8 55 02 00 00 00 be f3 a3 d4 02 ab 5b 04
         95 2d 51 55 56 45 a5 0b a9 20 57 15 73 7c f2 a4
         cc 0d 26 96 46 1f be a2 01 99 b0 2b 7f ff 00 00
         00 00 00 00 00 00 03 a9 22 10 82 d3 13 7e b6 54
         b9 3a 0e a8 e1 0a cc 06 c3 04 3c 76 e6 69 1c f2
         c5 8d 15 32 3c 40 db 9c",
    );
    assert_eq!(planned.directory, directory);
    let json = concat!(
        r#"{"layout":{"version":1,"release_bytes":262144,"file_record_bytes":2097152,"#,
        r#""block_slots":16384,"shard_entries":21844},"commits":3,"data_files":2,"id_shards":1,"#,
        r#""writer_shards":1,"#,
        r#""directory_sha256":"1819164256301b0edb48a8316916406262cc080b3541b5f9445aad0af6f2ba3b"}"#
    );
    assert_eq!(serde_json::to_string(&planned.plan).unwrap(), json);
    let back: LegacyPlan = serde_json::from_str(json).unwrap();
    assert_eq!(back, planned.plan);
    back.check().unwrap();

    assert_eq!(IdShard::decode("x", &ids).unwrap().encode(), ids);
    assert_eq!(
        WriterShard::decode("x", &writers).unwrap().encode(),
        writers
    );
    assert_eq!(
        Directory::decode(&directory).unwrap().encode().unwrap(),
        directory
    );
}

#[test]
fn files_are_cut_at_every_bound() {
    let cut = |layout: LegacyLayout| -> Vec<usize> {
        let planned = plan(&[long_chain(10)], &layout, attempt(), 9, &BTreeSet::new()).unwrap();
        planned.data_files.iter().map(Vec::len).collect()
    };
    let base = LegacyLayout::CURRENT;
    assert_eq!(cut(base), [10]);
    assert_eq!(
        cut(LegacyLayout {
            block_slots: 4,
            ..base
        }),
        [4, 4, 2]
    );
    // Commits take 225 bytes, all but the first 251.
    assert_eq!(
        cut(LegacyLayout {
            release_bytes: 225 + 251,
            ..base
        }),
        [2, 1, 1, 1, 1, 1, 1, 1, 1]
    );
    assert_eq!(
        cut(LegacyLayout {
            release_bytes: 3 * 251,
            ..base
        }),
        [3, 3, 3, 1]
    );
    assert_eq!(
        cut(LegacyLayout {
            file_record_bytes: 5 * 251,
            ..base
        }),
        [5, 5]
    );
    // A record above the file bound stands alone.
    assert_eq!(
        cut(LegacyLayout {
            file_record_bytes: 1,
            ..base
        }),
        [1; 10]
    );

    let mut gap = long_chain(4);
    let mut third = HistoryRecord::clone(&gap.records[2]);
    third.commit.parent_commit_id = Some(ABSENT.into());
    gap.records[2] = Arc::new(third);
    let planned = plan(&[gap], &base, attempt(), 9, &BTreeSet::new()).unwrap();
    assert_eq!(
        planned.data_files.iter().map(Vec::len).collect::<Vec<_>>(),
        [2, 2]
    );

    let layout = LegacyLayout {
        shard_entries: 3,
        ..base
    };
    let planned = plan(&[long_chain(10)], &layout, attempt(), 9, &BTreeSet::new()).unwrap();
    assert_eq!(planned.plan.id_shards, 4);
    let directory = Directory::decode(&planned.directory).unwrap();
    assert_eq!(
        directory
            .id_shards
            .iter()
            .map(|s| s.entries)
            .collect::<Vec<_>>(),
        [3, 3, 3, 1]
    );
    assert_eq!(directory.id_shard_of(ulid(4)), Some(1));
    assert_eq!(directory.id_shard_of(ulid(11)), None);
    assert_eq!(directory.id_shard_of(Ulid::from(0)), None);
}

#[test]
fn contradictory_chains_are_refused() {
    let try_plan = |chains: &[Chain]| {
        plan(
            chains,
            &LegacyLayout::CURRENT,
            attempt(),
            9,
            &BTreeSet::new(),
        )
    };
    let edit = |change: fn(&mut Chain)| {
        let mut chain = long_chain(3);
        change(&mut chain);
        vec![chain]
    };
    fn at(chain: &mut Chain, n: usize) -> &mut HistoryRecord {
        Arc::make_mut(&mut chain.records[n])
    }
    let with = |more: Chain| vec![long_chain(3), more];
    let fork = |kind, native: &str, n: u64| {
        let mut chain = long_chain(n);
        for record in &mut chain.records {
            let record = Arc::make_mut(record);
            record.commit.native_branch = Some(native.into());
            record.commit.graph_commit_id = ulid(77).to_string();
        }
        Chain {
            kind,
            native: Some(native.into()),
            ..chain
        }
    };
    for (what, chains) in [
        ("no main", vec![]),
        ("two mains", vec![long_chain(3), long_chain(3)]),
        ("empty", edit(|c| c.records.clear())),
        (
            "foreign record",
            edit(|c| at(c, 1).commit.native_branch = Some("x".into())),
        ),
        (
            "id is addressed",
            edit(|c| {
                at(c, 2).commit.graph_commit_id = crate::history::testing::block_id(1, 1, 1);
            }),
        ),
        (
            "id is opaque",
            edit(|c| at(c, 2).commit.graph_commit_id = "genesis".into()),
        ),
        (
            "id twice",
            edit(|c| at(c, 2).commit.graph_commit_id = ulid(1).to_string()),
        ),
        (
            "id in two chains",
            with({
                let mut c = fork(ChainKind::Live, "b", 1);
                at(&mut c, 0).commit.graph_commit_id = ulid(1).to_string();
                c
            }),
        ),
        (
            "versions descend",
            edit(|c| at(c, 0).commit.graph_manifest_version = 9),
        ),
        ("above the head", edit(|c| c.head_version = 2)),
        (
            "fields over bound",
            edit(|c| at(c, 1).commit.actor_id = Some("x".repeat(262_144))),
        ),
        (
            "orphan head",
            with(Chain {
                head_version: 5,
                ..fork(ChainKind::Orphaned, "b", 1)
            }),
        ),
        (
            "two tables of one identity",
            edit(|c| {
                let row = example_records()[0].tables[0].clone();
                at(c, 1).tables = vec![row.clone(), row];
            }),
        ),
    ] {
        assert!(
            matches!(try_plan(&chains), Err(Error::Internal(_))),
            "{what}"
        );
    }
    try_plan(&with(fork(ChainKind::Live, "b", 1))).unwrap();
    let mut unsorted = example_chains();
    at(&mut unsorted[0], 0).tables.reverse();
    let planned = plan(&unsorted, &LegacyLayout::CURRENT, attempt(), 13, &absent()).unwrap();
    assert_eq!(planned.plan, example_plan().plan);
}

#[test]
fn a_directory_over_its_bound_is_a_limit() {
    let layout = LegacyLayout {
        block_slots: 1,
        ..LegacyLayout::CURRENT
    };
    let refused = plan(
        &[long_chain(10_100)],
        &layout,
        attempt(),
        9,
        &BTreeSet::new(),
    );
    match refused {
        Err(Error::Limit { limit, actual, .. }) => {
            assert_eq!(limit, 524_288);
            assert_eq!(actual, 56 + 52 * 10_100 + 68 + 100 + 32);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn writer_shards_are_cut_greedily() {
    let writer = |n: usize| WriterEntry {
        kind: ChainKind::Live,
        native: Some(format!("{n:0>60000}")),
        parent: None,
        parent_version: 1,
        head_version: 2,
        head: ulid(n as u128),
        first_file: n as u32,
        files: 1,
    };
    let shards = WriterShard::cut((0..20).map(writer).collect(), |n| n.to_string()).unwrap();
    assert_eq!(
        shards.iter().map(|s| s.entries().len()).collect::<Vec<_>>(),
        [8, 8, 4]
    );
    for shard in &shards {
        let bytes = shard.encode();
        assert!(bytes.len() <= 524_288);
        assert_eq!(WriterShard::decode("x", &bytes).unwrap(), *shard);
    }
    assert!(WriterShard::cut(vec![writer(1), writer(1)], |n| n.to_string()).is_err());
}

/// Every single-byte change of a small object is refused or leaves a self-consistent object.
#[test]
fn changed_locator_bytes_never_pass_for_the_original() {
    let planned = example_plan();
    for at in 0..planned.directory.len() {
        let mut bytes = planned.directory.to_vec();
        bytes[at] ^= 0x41;
        assert!(Directory::decode(&bytes).is_err(), "directory byte {at}");
    }
    for at in 0..planned.writer_shards[0].len() {
        let mut bytes = planned.writer_shards[0].to_vec();
        bytes[at] ^= 0x41;
        if let Ok(shard) = WriterShard::decode("x", &bytes) {
            assert_eq!(shard.encode(), bytes);
        }
    }
    for cut in 0..planned.id_shards[0].len() {
        assert!(IdShard::decode("x", &planned.id_shards[0][..cut]).is_err());
    }
}

#[derive(Default)]
struct StopAt {
    at: Option<usize>,
    seen: Vec<(String, Moment)>,
}

#[async_trait]
impl ObjectObserver for StopAt {
    async fn on_object(&mut self, key: &str, moment: Moment) -> Result<()> {
        if self.at == Some(self.seen.len()) {
            return Err(Error::storage("injected", "stop"));
        }
        self.seen.push((key.to_string(), moment));
        Ok(())
    }
}

pub(crate) async fn write_example(root: &Root) {
    write(root, &example_plan(), &mut ()).await.unwrap();
}

#[tokio::test]
async fn a_write_stopped_anywhere_is_finished_by_the_next() {
    let planned = example_plan();
    let mut all = StopAt::default();
    let (_dir, first) = root().await;
    assert_eq!(verify(&first).await.unwrap(), None);
    write(&first, &planned, &mut all).await.unwrap();
    let keys: Vec<&str> = all.seen.iter().map(|(k, _)| k.as_str()).collect();
    assert_eq!(
        keys.chunks(2).map(|c| c[0]).collect::<Vec<_>>(),
        [
            "__history/legacy/data/00000000.lance",
            "__history/legacy/data/00000001.lance",
            "__history/legacy/locator/ids/00000000.oglx",
            "__history/legacy/locator/writers/00000000.oglx",
            "__history/legacy/locator/directory.oglx",
        ]
    );
    let verified = verify(&first).await.unwrap().unwrap();
    verified.check_plan(&planned.plan).unwrap();
    assert_eq!(verified.counts(), (3, 2, 1, 1));
    for stop in 0..all.seen.len() {
        let (_dir, root) = root().await;
        let mut observer = StopAt {
            at: Some(stop),
            ..StopAt::default()
        };
        assert!(
            write(&root, &planned, &mut observer)
                .await
                .unwrap_err()
                .is_storage()
        );
        // Only a stop after the last create leaves a directory.
        let whole = stop + 1 == all.seen.len();
        assert_eq!(verify(&root).await.unwrap().is_some(), whole, "{stop}");
        write(&root, &planned, &mut ()).await.unwrap();
        verify(&root)
            .await
            .unwrap()
            .unwrap()
            .check_plan(&planned.plan)
            .unwrap();
    }
}

#[tokio::test]
async fn existing_objects_with_other_content_stop_the_write() {
    let (_dir, root) = root().await;
    write_example(&root).await;
    let mut chains = example_chains();
    Arc::make_mut(&mut chains[0].records[0]).commit.actor_id = Some("eve".into());
    let other = plan(&chains, &LegacyLayout::CURRENT, attempt(), 13, &absent()).unwrap();
    let refused = write(&root, &other, &mut ()).await;
    assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("00000001.lance")));
    let other = plan(
        &example_chains(),
        &LegacyLayout::CURRENT,
        attempt(),
        9,
        &absent(),
    )
    .unwrap();
    let refused = write(&root, &other, &mut ()).await;
    assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("directory.oglx")));
}

#[tokio::test]
async fn verification_finds_every_difference() {
    let (dir, root) = root().await;
    write_example(&root).await;
    let legacy = dir.path().join("__history/legacy");
    let internal = async |what: &str| match verify(&root).await {
        Err(Error::Internal(message)) => message,
        other => panic!("{what}: {other:?}"),
    };
    let names = [
        "data/00000000.lance",
        "data/00000001.lance",
        "locator/ids/00000000.oglx",
        "locator/writers/00000000.oglx",
    ];
    for name in names {
        let path = legacy.join(name);
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(internal(name).await.contains("missing"));
        let mut damaged = kept.clone();
        damaged[10] ^= 1;
        std::fs::write(&path, &damaged[..damaged.len() / 2]).unwrap();
        internal(name).await;
        std::fs::remove_file(&path).unwrap();
        if name.starts_with("locator") {
            // A link to itself cannot be read: no difference of content, a failed read.
            std::os::unix::fs::symlink(&path, &path).unwrap();
            let failed = verify(&root).await.unwrap_err();
            assert!(failed.is_storage(), "{name}: {failed:?}");
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::write(&path, kept).unwrap();
        verify(&root).await.unwrap().unwrap();
    }
    // Files in each other's place.
    let (a, b) = (legacy.join(names[0]), legacy.join(names[1]));
    let (in_a, in_b) = (std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    std::fs::write(&a, &in_b).unwrap();
    assert!(internal("swap").await.contains("rows"));
    std::fs::write(&a, &in_a).unwrap();
    // A file too many, a foreign object.
    std::fs::write(legacy.join("data/00000002.lance"), &in_a).unwrap();
    assert!(internal("extra").await.contains("lists 2 data files"));
    std::fs::remove_file(legacy.join("data/00000002.lance")).unwrap();
    std::fs::write(legacy.join("data/x"), b"x").unwrap();
    internal("foreign").await;
    std::fs::remove_file(legacy.join("data/x")).unwrap();
    // Another record at the right place, with a valid file around it.
    std::fs::remove_file(&b).unwrap();
    let mut other = example_records().remove(2);
    other.commit.actor_id = Some("eve".into());
    let key = crate::history::path::ExtentKey::LegacyData(1);
    crate::history::extent::create_extent(&root, &key, &[other])
        .await
        .unwrap();
    assert!(internal("digest").await.contains("hash to"));
    // A directory above its cap is damage, not a limit.
    std::fs::write(
        dir.path().join(ObjectKey::Directory.key()),
        vec![0; 524_289],
    )
    .unwrap();
    internal("directory").await;
}

fn entries() -> impl Strategy<Value = Vec<IdEntry>> {
    prop::collection::btree_map(any::<u128>(), (any::<u32>(), any::<u32>()), 1..60).prop_map(|m| {
        m.into_iter()
            .map(|(id, (file, row))| IdEntry {
                id: Ulid::from(id),
                file,
                row,
            })
            .collect()
    })
}

prop_compose! {
    fn writer()(
        name in "[a-zé/._-]{1,12}",
        parent in prop::option::of("[a-z]{1,8}"),
        kind in 1u8..4,
        numbers in any::<(u64, u64, u128)>(),
        first_file in 0u32..1_000,
        files in 1u32..1_000,
    ) -> WriterEntry {
        WriterEntry {
            kind: ChainKind::from_code(kind).unwrap(),
            native: Some(name),
            parent,
            parent_version: numbers.0,
            head_version: numbers.1,
            head: Ulid::from(numbers.2),
            first_file,
            files,
        }
    }
}

proptest! {
    #[test]
    fn id_shards_round_trip(entries in entries()) {
        let shard = IdShard::new("x", entries).unwrap();
        let back = IdShard::decode("x", &shard.encode()).unwrap();
        prop_assert_eq!(&back, &shard);
        for entry in shard.entries() {
            prop_assert_eq!(back.find(entry.id), Some(*entry));
        }
    }

    #[test]
    fn writer_shards_round_trip(writers in prop::collection::vec(writer(), 1..20)) {
        if let Ok(shards) = WriterShard::cut(writers, |n| n.to_string()) {
            for shard in shards {
                prop_assert_eq!(&WriterShard::decode("x", &shard.encode()).unwrap(), &shard);
            }
        }
    }

    #[test]
    fn directories_round_trip(n in 1u64..40, slots in 1u32..9, per_shard in 1u32..9) {
        let layout = LegacyLayout { block_slots: slots, shard_entries: per_shard, ..LegacyLayout::CURRENT };
        let planned = plan(&[long_chain(n)], &layout, attempt(), 8, &absent()).unwrap();
        let directory = Directory::decode(&planned.directory).unwrap();
        prop_assert_eq!(directory.encode().unwrap(), planned.directory.to_vec());
        prop_assert_eq!(directory.commits, n);
    }

    #[test]
    fn decoders_never_panic(
        pick in 0usize..3,
        random in prop::option::of(prop::collection::vec(any::<u8>(), 0..400)),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let planned = example_plan();
        let mut bytes = random.unwrap_or_else(|| match pick {
            0 => planned.id_shards[0].to_vec(),
            1 => planned.writer_shards[0].to_vec(),
            _ => planned.directory.to_vec(),
        });
        if !bytes.is_empty() {
            for (at, value) in flips {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(cut.index(bytes.len() * 2).min(bytes.len()));
        }
        let _ = IdShard::decode("x", &bytes);
        let _ = WriterShard::decode("x", &bytes);
        // With a trailer that matches, so that the checks behind it are reached.
        let _ = Directory::decode(&bytes);
        if bytes.len() > 32 {
            let at = bytes.len() - 32;
            let trailer = crate::digest::sha256(&bytes[..at]);
            bytes[at..].copy_from_slice(&trailer);
            let _ = Directory::decode(&bytes);
        }
    }
}
