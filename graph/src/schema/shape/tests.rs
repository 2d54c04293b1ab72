#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::schema::source::{ParseMode, compile};

fn shape(source: &str) -> SchemaShape {
    compile(source, ParseMode::Tolerant, None).unwrap().shape
}

fn range(min: Option<Bound>, max: Option<Bound>) -> ConstraintShape {
    ConstraintShape::Range {
        property: "p".into(),
        min,
        max,
    }
}

#[test]
fn key_strings_print_floats_as_rust_does() {
    for (value, key) in [
        (1.0, "Some(Float(1.0))"),
        (-0.0, "Some(Float(-0.0))"),
        (1e-4, "Some(Float(0.0001))"),
        (1e-5, "Some(Float(1e-5))"),
        (1e16, "Some(Float(1e16))"),
        (
            1.234_567_890_123_456_8e17,
            "Some(Float(1.2345678901234568e17))",
        ),
    ] {
        let constraint = range(Some(Bound::Float(value)), None);
        assert_eq!(constraint.sort_key(), format!("range:p:{key}:None"));
    }
    assert_eq!(
        range(None, Some(Bound::Integer(5))).sort_key(),
        "range:p:None:Some(Integer(5))"
    );
}

#[test]
fn canonical_constraints_drop_equal_values_only() {
    let zero = |value| range(Some(Bound::Float(value)), None);
    assert_eq!(canonical_constraints(vec![zero(0.0), zero(-0.0)]).len(), 1);
    let kept = canonical_constraints(vec![zero(0.0), zero(-0.0)]);
    assert_eq!(kept[0].sort_key(), "range:p:Some(Float(-0.0)):None");
    let members = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        canonical_constraints(vec![
            ConstraintShape::Unique(members(&["b", "a", "b"])),
            ConstraintShape::Unique(members(&["a", "b"])),
            ConstraintShape::Key(members(&["a"])),
            range(Some(Bound::Integer(1)), None),
            range(Some(Bound::Float(1.0)), None),
        ]),
        [
            ConstraintShape::Key(members(&["a"])),
            range(Some(Bound::Float(1.0)), None),
            range(Some(Bound::Integer(1)), None),
            ConstraintShape::Unique(members(&["a", "b"])),
        ]
    );
}

#[test]
fn annotations_are_ordered_by_their_json() {
    let shape =
        shape("node A @b @a(\"z\") @a @a @b(1, l=2, k=1) @embedded { p: I32 @index @unique @x }");
    let json = serde_json::to_string(&shape.nodes[0].annotations).unwrap();
    assert_eq!(
        json,
        r#"[{"name":"a","value":"z"},{"name":"a","value":null},{"name":"b","value":"1","kwargs":{"k":"1","l":"2"}},{"name":"b","value":null},{"name":"embedded","value":null}]"#
    );
    let property = serde_json::to_string(&shape.nodes[0].properties[0]).unwrap();
    assert!(
        property.contains(r#""property_constraints":["unique","index"]"#),
        "{property}"
    );
}

#[test]
fn order_and_comments_do_not_matter() {
    let one =
        "interface I { b: I32 a: I32 } node B implements I {} node A { e: enum(x, y) d: I32 }";
    let two = "node A { d: I32 /* d */ e: enum(y, x) } interface I { a: I32 b: I32 } node B implements I, I {}";
    assert_eq!(shape(one).shape_hash(), shape(two).shape_hash());
    assert_eq!(shape(one).difference(&shape(two)), None);
}

#[test]
fn respelling_reorders_constraints_and_members() {
    let shape = shape(
        "node A {} edge E: A -> A { a: I32 @unique(@dst, a) @index(@src) @index(a) @index(src) }",
    );
    let keys = |shape: &SchemaShape| -> Vec<String> {
        shape.edges[0]
            .constraints
            .iter()
            .map(ConstraintShape::sort_key)
            .collect()
    };
    assert_eq!(
        keys(&shape),
        ["index:@src", "index:a", "index:src", "unique:@dst,a"]
    );
    assert_eq!(
        keys(&shape.clone().respelled(Vintage::Current)),
        keys(&shape)
    );
    assert_eq!(
        keys(&shape.respelled(Vintage::Legacy)),
        ["index:a", "index:src", "unique:a,dst"]
    );
}

#[test]
fn a_hash_in_the_older_float_spelling_is_accepted() {
    let large = shape("node A { p: F64 @range(p, 10000000000000000.0..99999999999999999999.0) }");
    let older = large.compact().replace("e+", "e");
    assert_ne!(older, large.compact());
    let older = format!("sha256:{}", sha256_hex(older.as_bytes()));
    assert!(large.matches_hash(&large.shape_hash()));
    assert!(large.matches_hash(&older));
    assert!(!large.matches_hash(&older.to_uppercase()));
    assert!(!shape("node A {}").matches_hash(&older));
}

#[test]
fn differences_are_named() {
    let base = "interface I { a: I32 } node A implements I { k: String @key } node B {} edge E: A -> B { w: F64 }";
    for (other, expected) in [
        ("node A {}", "interface I is only in the IR"),
        (
            &base.replace("w: F64", "w: F32"),
            "edge type E: property w: the type is F32 in the source and F64 in the IR",
        ),
        (
            &base.replace("E: A -> B", "E: A -> A"),
            "edge type E: the endpoints differ",
        ),
        (
            &base.replace("A -> B", "A -> B @card(1..)"),
            "edge type E: the cardinalities differ",
        ),
        (
            &base.replace("node B {}", "node B @x {}"),
            "node type B: the annotations differ",
        ),
        (
            &base.replace("node B {}", "node B { x: I32 }"),
            "node type B: property x is only in the source",
        ),
        (
            &base.replace("k: String @key", "j: String k: String @key"),
            "node type A: property j is only in the source",
        ),
        (
            &base.replace("@key", "@key @x"),
            "node type A: property k: annotations or provenance differ",
        ),
        (
            &base.replace("@key", "@key @unique(k, a)"),
            "node type A: the constraints differ",
        ),
        (
            &base
                .replace("implements I ", "implements I, J ")
                .replace("node B", "interface J {} node B"),
            "interface J is only in the source",
        ),
    ] {
        let found = shape(other).difference(&shape(base)).unwrap();
        assert_eq!(found, expected, "{other}");
    }
}
