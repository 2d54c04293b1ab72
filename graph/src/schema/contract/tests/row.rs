//! The `schema_contract` row (`docs/format/tables-and-schema.md` 6.4).

use super::*;

fn refused(change: fn(&mut Contract), expected: &str) -> Error {
    let mut contract = Contract::of(SOURCE, &ir(SOURCE));
    change(&mut contract);
    let error = contract.validate().unwrap_err();
    assert!(error.to_string().contains(expected), "{error}\n{expected}");
    error
}

#[test]
fn a_valid_row_hands_back_its_ir() {
    let contract = Contract::of(SOURCE, &ir(SOURCE));
    assert_eq!(contract.validate().unwrap(), ir(SOURCE));
    let mut reformatted = contract;
    reformatted.ir = ir(SOURCE).compact();
    reformatted.source = SOURCE.replace("// accepted", "/* since */ // accepted");
    reformatted.validate().unwrap();
}

#[test]
fn every_rule_refuses() {
    for (change, expected) in [
        (
            (|c| c.source.push('x')) as fn(&mut Contract),
            "the source does not compile: line 4, column 1",
        ),
        (|c| c.ir.truncate(10), "does not parse"),
        (
            |c| c.ir = c.ir.replace("\"name\": \"E\"", "\"name\": \"F\""),
            "invalid",
        ),
        (
            |c| c.head.schema_identity_version = 1,
            "identity version is 1, expected 2",
        ),
        (
            |c| c.head.schema_identity_version = 0,
            "identity version is 0",
        ),
        (
            |c| c.head.schema_identity_domain.make_ascii_lowercase(),
            "no canonical ULID",
        ),
        (
            |c| c.head.schema_ir_hash.make_ascii_uppercase(),
            "the head names IR SHA256:",
        ),
        (
            |c| c.head.schema_identity_domain = "01M8PK6329VC5DRE8X1YH9472S".into(),
            "identity domain",
        ),
        (
            |c| c.source = c.source.replace("I32?", "I64?"),
            "property v: the type is I64? in the source",
        ),
    ] {
        assert!(matches!(refused(change, expected), Error::Internal(_)));
    }
}

#[test]
fn a_newer_contract_is_refused_by_name() {
    for (change, expected) in [
        (
            (|c| c.ir = c.ir.replace("\"ir_version\": 2", "\"ir_version\": 7"))
                as fn(&mut Contract),
            "ir_version 7",
        ),
        // Even when the source speaks a language of its own.
        (
            |c| {
                c.ir = r#"{"ir_version":5,"features":["new"]}"#.into();
                c.source = "graph {}".into();
            },
            "unknown feature 'new'",
        ),
    ] {
        assert!(matches!(refused(change, expected), Error::Refused(_)));
    }
}

#[test]
fn a_lone_upper_bound_agrees_with_either_reading() {
    let options = CompileOptions {
        mode: ParseMode::Tolerant,
        vintage: None,
        upper_bound: UpperBound::AsMaximum,
    };
    let compiled = compile_with(SOURCE, options).unwrap();
    let other = resolve(&compiled, None, DOMAIN, Vintage::Legacy).unwrap();
    assert_ne!(other.ir_hash(), ir(SOURCE).ir_hash());
    assert_eq!(Contract::of(SOURCE, &other).validate().unwrap(), other);
    let strange = SOURCE.replace("..5", "..6");
    assert!(Contract::of(strange, &other).validate().is_err());
}
