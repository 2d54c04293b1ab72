#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use ulid::Ulid;

use super::*;
use crate::history::testing::ulid;

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
