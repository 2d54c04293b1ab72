#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::digest::sha256_hex;
use crate::error::Error;
use crate::history::testing::{ABSENT, example_records, ulid};
use crate::model::HistoryRecord;

/// The bytes of a hex dump as the format text prints it, offsets left out.
fn dump(text: &str) -> Vec<u8> {
    hex::decode(text.split_whitespace().collect::<String>()).unwrap()
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
    assert_eq!(planned.id_shards[..], [&ids[..]]);
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
    assert_eq!(planned.writer_shards[..], [&writers[..]]);
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
