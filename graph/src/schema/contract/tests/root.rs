//! The root objects (`docs/format/upgrade-protocol.md` 6.3).

use bytes::Bytes;

use super::*;
use crate::digest::sha256_hex;

fn objects() -> RootObjects {
    let ir = ir(SOURCE);
    RootObjects {
        source: Some(Bytes::from_static(SOURCE.as_bytes())),
        ir: Some(ir.pretty().into()),
        state: Some(SchemaState::of(&ir).pretty().into()),
    }
}

fn edit(object: &mut Option<Bytes>, from: &str, to: &str) {
    let text = std::str::from_utf8(object.as_ref().unwrap()).unwrap();
    assert!(text.contains(from), "{text}");
    *object = Some(text.replacen(from, to, 1).into());
}

#[test]
fn state_text_is_exact() {
    let ir = ir("node A {}");
    assert_eq!(
        SchemaState::of(&ir).pretty(),
        format!(
            "{{\n  \"format_version\": 2,\n  \"schema_shape_hash\": \"{}\",\n  \"schema_ir_hash\": \"{}\",\n  \"schema_identity_version\": 2,\n  \"schema_identity_domain\": \"{DOMAIN}\"\n}}",
            ir.shape().shape_hash(),
            ir.ir_hash()
        )
    );
}

#[test]
fn the_contract_is_byte_exact() {
    let (contract, ir) = read_root_contract(&objects()).unwrap();
    assert_eq!(contract.source, SOURCE);
    assert_eq!(contract.ir, ir.pretty());
    assert_eq!(
        contract.head.schema_ir_hash,
        format!("sha256:{}", sha256_hex(ir.compact().as_bytes()))
    );
    assert_eq!(contract.validate().unwrap(), ir);

    let mut other = objects();
    edit(
        &mut other.source,
        "// accepted\n",
        "/*c*/ edge E: A -> A { @unique(@dst, @src) } //\n",
    );
    edit(
        &mut other.source,
        "\nedge E: A -> A { @unique(src, dst) }\n",
        "",
    );
    edit(&mut other.source, "v: I32?", "v: I32? @rename_from(\"w\")");
    edit(&mut other.ir, "{", "{ \"zz\": [1.5e300],\r\n");
    edit(&mut other.state, "{", "{\"future\": {\"a\": 1, \"a\": 2}, ");
    let (contract, _) = read_root_contract(&other).unwrap();
    assert_eq!(contract.ir.as_bytes(), &other.ir.unwrap()[..]);
    assert_eq!(contract.source.as_bytes(), &other.source.unwrap()[..]);
}

/// What to change, which cause it must have, and what the cause must say.
type Case = (
    fn(&mut RootObjects),
    fn(&RootContractError) -> bool,
    &'static str,
);

#[test]
fn every_rule_has_its_cause() {
    use RootContractError as E;
    let cases: Vec<Case> = vec![
        (
            |o| o.source = None,
            |e| *e == E::SourceMissing,
            "_schema.pg is missing",
        ),
        (
            |o| {
                o.ir = None;
                o.state = None;
            },
            |e| *e == E::Missing,
            "are missing",
        ),
        (
            |o| o.ir = None,
            |e| *e == E::Incomplete(ContractObject::Ir),
            "_schema.ir.json is missing",
        ),
        (
            |o| o.state = None,
            |e| *e == E::Incomplete(ContractObject::State),
            "__schema_state.json is missing",
        ),
        (
            |o| {
                edit(&mut o.source, "node", "nod");
                o.ir = None;
            },
            |e| matches!(e, E::Source(_)),
            "_schema.pg does not compile: line 2, column 1: expected",
        ),
        (
            |o| edit(&mut o.source, "node", "nod"),
            |e| matches!(e, E::Source(_)),
            "line 2, column 1",
        ),
        (
            |o| edit(&mut o.ir, "{", "["),
            |e| matches!(e, E::Ir(_)),
            "_schema.ir.json is not readable",
        ),
        (
            |o| edit(&mut o.ir, "\"ir_version\": 2", "\"ir_version\": 9"),
            |e| matches!(e, E::Ir(_)),
            "ir_version 9 is newer",
        ),
        (
            |o| edit(&mut o.state, "{", "["),
            |e| matches!(e, E::State(_)),
            "__schema_state.json is not readable",
        ),
        (
            |o| edit(&mut o.state, "format_version", "x"),
            |e| matches!(e, E::State(_)),
            "missing field `format_version`",
        ),
        (
            |o| edit(&mut o.state, "schema_shape_hash", "x"),
            |e| matches!(e, E::State(_)),
            "missing field",
        ),
        (
            |o| edit(&mut o.state, "{", "{\"format_version\": 2,"),
            |e| matches!(e, E::State(_)),
            "duplicate field",
        ),
        (
            |o| {
                edit(
                    &mut o.state,
                    "\"format_version\": 2",
                    "\"format_version\": -2",
                )
            },
            |e| matches!(e, E::State(_)),
            "not readable",
        ),
        (
            |o| {
                edit(
                    &mut o.state,
                    "\"format_version\": 2",
                    "\"format_version\": 3",
                )
            },
            |e| *e == E::FormatVersion(3),
            "format_version 3, expected 2",
        ),
        (
            |o| {
                edit(
                    &mut o.state,
                    "identity_version\": 2",
                    "identity_version\": 1",
                )
            },
            |e| *e == E::IdentityVersion(1),
            "schema_identity_version 1, expected 2",
        ),
        (
            |o| edit(&mut o.state, DOMAIN, "01arz3ndektsv4rrffq69g5fav"),
            |e| matches!(e, E::IdentityDomain(_)),
            "no canonical ULID",
        ),
        (
            |o| edit(&mut o.ir, "\"ir_version\": 2", "\"ir_version\": 3"),
            |e| matches!(e, E::IrInvalid(_)),
            "not acceptable",
        ),
        (
            |o| {
                edit(
                    &mut o.ir,
                    "\"next_identity_id\": 7",
                    "\"next_identity_id\": 6",
                )
            },
            |e| matches!(e, E::IrInvalid(_)),
            "in use",
        ),
        (
            |o| {
                edit(
                    &mut o.ir,
                    "\"next_identity_id\": 7",
                    "\"next_identity_id\": 9",
                )
            },
            |e| matches!(e, E::IrHash { .. }),
            "names schema_ir_hash",
        ),
        (
            |o| {
                let hash = ir(SOURCE).ir_hash();
                let digits = hash.trim_start_matches("sha256:").to_uppercase();
                edit(&mut o.state, &hash, &format!("sha256:{digits}"));
            },
            |e| matches!(e, E::IrHash { .. }),
            "names schema_ir_hash",
        ),
        (
            |o| edit(&mut o.state, &ir(SOURCE).shape().shape_hash(), "sha256:00"),
            |e| matches!(e, E::ShapeHash { .. }),
            "names schema_shape_hash sha256:00",
        ),
        (
            |o| edit(&mut o.state, DOMAIN, "01M8PK6329VC5DRE8X1YH9472S"),
            |e| matches!(e, E::DomainMismatch { .. }),
            "identity domain 01M8PK",
        ),
        (
            |o| edit(&mut o.source, "v: I32?", "v: I64?"),
            |e| matches!(e, E::SourceDiffers(_)),
            "not the same schema: node type A: property v: the type is I64? in the source and I32? in the IR",
        ),
        (
            |o| o.source = Some(Bytes::from_static(b"node A {}\n// \xff")),
            |e| {
                *e == E::NotText {
                    object: ContractObject::Source,
                    valid_up_to: 13,
                }
            },
            "_schema.pg is not UTF-8 text (byte 13",
        ),
        (
            |o| o.ir = Some(Bytes::from_static(b"\xfe")),
            |e| {
                matches!(
                    e,
                    E::NotText {
                        object: ContractObject::Ir,
                        ..
                    }
                )
            },
            "_schema.ir.json is not UTF-8",
        ),
        (
            |o| o.state = Some(Bytes::from_static(b"{\xc3")),
            |e| {
                matches!(
                    e,
                    E::NotText {
                        object: ContractObject::State,
                        ..
                    }
                )
            },
            "__schema_state.json is not UTF-8",
        ),
        (
            |o| o.ir = Some(vec![b' '; MAX_SCHEMA_BYTES + 1].into()),
            |e| {
                matches!(
                    e,
                    E::TooLarge {
                        object: ContractObject::Ir,
                        ..
                    }
                )
            },
            "_schema.ir.json has 67108865 bytes, above the limit of 67108864",
        ),
    ];
    for (change, is_cause, text) in cases {
        let mut objects = objects();
        change(&mut objects);
        let error = read_root_contract(&objects).unwrap_err();
        assert!(is_cause(&error), "{error:?}");
        assert!(error.to_string().contains(text), "{error}\n{text}");
    }
}

#[test]
fn object_names() {
    let names: Vec<_> = ContractObject::ALL
        .iter()
        .map(|o| (o.name(), o.staging_name()))
        .collect();
    for (name, staging) in names {
        assert_eq!(format!("{name}.staging"), staging);
    }
}
