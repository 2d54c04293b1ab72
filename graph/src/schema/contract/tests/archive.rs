//! The archive object (`docs/format/history.md` 6).

use super::*;

fn example() -> Contract {
    Contract {
        head: ContractHead {
            schema_ir_hash: "ir1".into(),
            schema_identity_version: 1,
            schema_identity_domain: "dom1".into(),
        },
        source: "node A {}\n".into(),
        ir: "{}".into(),
    }
}

/// The worked example of `docs/format/history.md` 6.
#[test]
fn worked_example() {
    let bytes = example().encode().unwrap();
    assert_eq!(bytes.len(), 128);
    assert_eq!(
        hex::encode(&bytes[..32]),
        "4f4753433030303154000000000000000a000000000000000200000000000000"
    );
    assert_eq!(
            &bytes[32..],
            br#"{"schema_ir_hash":"ir1","schema_identity_version":1,"schema_identity_domain":"dom1"}node A {}
{}"#
        );
    assert_eq!(
        example().content_hash().unwrap(),
        "e9e00d33c8aa7352daf079ee5ee173ab505b2c8477fd876fb15a3502b2233a4b"
    );
    assert_eq!(Contract::decode(&bytes, "x").unwrap(), example());
}

#[test]
fn empty_texts_round_trip() {
    let mut empty = example();
    empty.source.clear();
    empty.ir.clear();
    assert_eq!(
        Contract::decode(&empty.encode().unwrap(), "x").unwrap(),
        empty
    );
}

fn with_head(head: &str) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for length in [head.len(), 0, 0] {
        bytes.extend_from_slice(&(length as u64).to_le_bytes());
    }
    bytes.extend_from_slice(head.as_bytes());
    bytes
}

#[test]
fn every_deviation_is_refused() {
    let good = example().encode().unwrap();
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (b"OGSC0002".to_vec(), "does not start with OGSC0001"),
        (Vec::new(), "does not start with"),
        (good[..31].to_vec(), "the header is cut short"),
        (good[..32].to_vec(), "the head of 84 bytes is cut short"),
        (good[..120].to_vec(), "the source of 10 bytes is cut short"),
        (good[..127].to_vec(), "the IR of 2 bytes is cut short"),
        ([&good[..], b"\n"].concat(), "1 bytes follow the IR"),
    ];
    for at in [8, 16, 24] {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        cases.push((bytes, "cut short"));
    }
    for (at, what) in [(40, "the head"), (117, "the source"), (127, "the IR")] {
        let mut bytes = good.clone();
        bytes[at] = 0xff;
        cases.push((bytes, what));
    }
    for head in [
        r#"{"schema_ir_hash": "a","schema_identity_version":1,"schema_identity_domain":"d"}"#,
        r#"{"schema_identity_version":1,"schema_ir_hash":"a","schema_identity_domain":"d"}"#,
        r#"{"schema_ir_hash":"\u0061","schema_identity_version":1,"schema_identity_domain":"d"}"#,
        r#"{"schema_ir_hash":"a","schema_identity_version":1,"schema_identity_domain":"d","x":1}"#,
    ] {
        cases.push((with_head(head), "not in its canonical form"));
    }
    for head in [
        "",
        "null",
        r#"{"schema_ir_hash":"a","schema_identity_version":1}"#,
        r#"{"schema_ir_hash":"a","schema_identity_version":4294967296,"schema_identity_domain":"d"}"#,
        r#"{"schema_ir_hash":"a","schema_ir_hash":"a","schema_identity_version":1,"schema_identity_domain":"d"}"#,
    ] {
        cases.push((with_head(head), "no contract head"));
    }
    for (bytes, expected) in cases {
        let error = Contract::decode(&bytes, "schemas/x.schema").unwrap_err();
        assert!(matches!(error, Error::Internal(_)));
        let text = error.to_string();
        assert!(text.starts_with("schemas/x.schema: "), "{text}");
        assert!(text.contains(expected), "{text}\n{expected}");
    }
}

#[test]
fn the_bound_is_64_mib() {
    let mut large = example();
    let fixed = large.encode().unwrap().len() - large.source.len();
    large.source = "x".repeat(64 * 1024 * 1024 - fixed);
    let bytes = large.encode().unwrap();
    assert_eq!(bytes.len(), 64 * 1024 * 1024);
    assert_eq!(Contract::decode(&bytes, "x").unwrap(), large);
    large.source.push('x');
    assert!(matches!(large.encode(), Err(Error::Refused(_))));
    assert!(matches!(large.content_hash(), Err(Error::Refused(_))));
    let error = Contract::decode(&[&bytes[..], b"x"].concat(), "x").unwrap_err();
    assert!(error.to_string().contains("above the limit"));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(
        mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        magic in proptest::prelude::any::<bool>(),
        small in 0_u8..60,
    ) {
        if magic {
            bytes.splice(0..0, MAGIC.iter().copied().chain([small, 0, 0, 0, 0, 0, 0, 0]));
        }
        if let Ok(contract) = Contract::decode(&bytes, "x") {
            proptest::prop_assert_eq!(contract.encode().unwrap(), bytes);
        }
    }
}
