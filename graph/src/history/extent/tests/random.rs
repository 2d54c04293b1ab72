#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

prop_compose! {
    fn any_text()(text in prop::option::of(prop_oneof!["[ -~]{0,20}", "\\PC{0,8}"])) -> Option<String> {
        text
    }
}

prop_compose! {
    fn any_table(stable: u64)(
        key in prop_oneof![Just("node:Å"), Just("edge:B")],
        state in 0..3,
        numbers in any::<[u64; 4]>(),
        texts in (any_text(), any_text(), "[a-z/]{0,9}"),
        size in any::<Option<u64>>(),
    ) -> TableRow {
        let identity = TableIdentity::new(stable, 3).unwrap();
        let state = match state {
            0 => TableState::Registered,
            1 => TableState::Dropped { dropped_at: numbers[0], sealed_version: numbers[1] },
            _ => TableState::Pinned(Pin {
                table_version: numbers[0],
                table_branch: texts.0,
                row_count: numbers[1],
                metadata: PinMetadata {
                    manifest_path: texts.2,
                    manifest_size: size,
                    e_tag: texts.1,
                    staged_version: size,
                    ..PinMetadata::default()
                },
                manifest_version: numbers[2],
            }),
        };
        let table_path = crate::model::table::canonical_path(key, identity).unwrap();
        TableRow { identity, table_key: key.into(), table_path, state }
    }
}

prop_compose! {
    fn any_record()(
        id in "[!-~]{1,9}",
        texts in (any_text(), any_text(), any_text(), any_text(), any_text()),
        numbers in any::<(u64, u64, i64)>(),
        contract in prop::option::of(("[a-z]{0,5}", 1u32.., "[a-z]{0,5}")),
        tables in prop::collection::btree_map(1u64..50, 0u8..1, 0..6)
            .prop_flat_map(|m| m.into_keys().map(any_table).collect::<Vec<_>>()),
    ) -> HistoryRecord {
        let contract = contract.map(|(hash, version, domain)| crate::model::ContractHead {
            schema_ir_hash: hash,
            schema_identity_version: version,
            schema_identity_domain: domain,
        });
        HistoryRecord {
            commit: Commit {
                graph_commit_id: id,
                schema_content_hash: contract.as_ref().map(|_| SCHEMA.to_string()),
                schema_contract: contract,
                graph_branch: texts.0,
                native_branch: texts.1,
                graph_manifest_version: numbers.0,
                generation: numbers.1,
                parent_commit_id: texts.2,
                merged_parent_commit_id: texts.3,
                actor_id: texts.4,
                created_at: numbers.2,
            },
            tables,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_records_round_trip(records in prop::collection::vec(any_record(), 1..12)) {
        let back = runtime().block_on(async {
            decode_records("x", encoded(&records).await).await
        });
        prop_assert_eq!(back.unwrap(), records);
    }

    /// Damage is an error or other values, never a panic that reaches the caller.
    #[test]
    fn damaged_extents_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        near_end in any::<bool>(),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let runtime = runtime();
        let mut bytes = runtime.block_on(encoded(&example_records())).to_vec();
        let from = if near_end { bytes.len() - 1_200 } else { 0 };
        for (at, value) in flips {
            let at = from + at.index(bytes.len() - from);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match runtime.block_on(decode_records("x", bytes.into())) {
            Ok(_) | Err(Error::Internal(_)) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn random_bytes_are_refused(
        body in prop::collection::vec(any::<u8>(), 0..300),
        footer in any::<bool>(),
    ) {
        let mut bytes = body;
        if footer {
            bytes.extend_from_slice(&[2, 0, 2, 0, b'L', b'A', b'N', b'C']);
        }
        let refused = runtime().block_on(decode_records("x", bytes.into()));
        prop_assert!(matches!(refused, Err(Error::Internal(_))));
    }
}
