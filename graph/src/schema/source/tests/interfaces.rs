//! Interfaces and what nodes take from them (`docs/format/tables-and-schema.md` 4.4 and 4.7).

use super::*;
use crate::schema::names::OwnerKind;

#[test]
fn refusals() {
    all_refused(&[
        (
            "node A implements I {}",
            "implements I, which is not declared",
        ),
        (
            "interface I { a: I32 } node A implements I { a: I64 }",
            "A.a is I64, but interface I says I32",
        ),
        (
            "interface I { a: I32 } node A implements I { a: I32? }",
            "A.a is I32?",
        ),
        (
            "interface I { a: enum(x) } node A implements I { a: enum(x, y) }",
            "says enum(x)",
        ),
        (
            "interface I { a: I32 } interface J { a: I64 } node A implements I, J {}",
            "disagree about 'a'",
        ),
        (
            "interface I { a: I32 @index } interface J { a: I32 } node A implements I, J {}",
            "disagree",
        ),
        (
            "interface I { a: I32 @x } interface J { a: I32 } node A implements I, J {}",
            "disagree",
        ),
        (
            "interface I { s: String v: Vector(2) @embed(s) } interface J { s: String v: Vector(2) } node A implements I, J {}",
            "disagree about 'v'",
        ),
        (
            "interface I { v: Vector(2) @embed(s) }",
            "no property of the interface",
        ),
        // Annotation rules reach what is injected.
        (
            "interface I { a: [I32] @index } node A implements I {}",
            "@index on A.a (injected) cannot stand",
        ),
        (
            "interface I { a: I32 @index @index } node A implements I {}",
            "given twice",
        ),
        (
            "interface I { a: I32? @key } node A implements I {}",
            "not nullable",
        ),
        (
            "interface I { a: I32 @instruction(\"x\") } node A implements I {}",
            "only for nodes and edges",
        ),
    ]);
}

#[test]
fn what_no_node_implements_is_hardly_checked() {
    admit(
        "interface I { a: [I32] @index @index b: I32? @key c: I32 @description s: I32 v: String @embed(s)
           d: I32 @rename_from @instruction(\"x\") }",
    );
    // Nor is what a node overrides with a declaration of its own.
    admit("interface I { a: [I32] @index @index } node A implements I { a: [I32] }");
}

#[test]
fn injection_and_own_properties() {
    let shape = admit(
        "interface Tagged { title: String @b @a @index tags: [String]? }
         interface Named { title: String @index @a @b @rename_from(\"name\") }
         node A implements Tagged, Named, Tagged { code: I32 }
         node B implements Named { title: String @unique }",
    );
    let a = &shape.nodes[0];
    assert_eq!(a.implements, ["Named", "Tagged"]);
    let title = &a.properties[2];
    assert!(!title.declared_directly);
    let owners: Vec<_> = title
        .satisfies_interface_properties
        .iter()
        .map(|l| l.owner_name.as_str())
        .collect();
    assert_eq!(owners, ["Named", "Tagged"]);
    assert_eq!(a.constraints.len(), 1);
    let own = &shape.nodes[1].properties[0];
    assert!(own.declared_directly);
    assert_eq!(own.satisfies_interface_properties.len(), 1);
    assert!(
        own.annotations.is_empty(),
        "only the node's own annotations count"
    );
    assert_eq!(shape.nodes[1].constraints[0].sort_key(), "unique:title");
}

#[test]
fn hints_are_collected_beside_the_shape() {
    let compiled = compile(
        "interface I { a: I32 @rename_from(\"old\") }
         node A @rename_from(\"B\") implements I { b: I32 @rename_from(c) }
         edge E: A -> A @rename_from(\"F\") { d: I32 @rename_from(\"e\") }",
        ParseMode::Admission,
        None,
    )
    .unwrap();
    assert!(!compiled.shape.compact().contains("rename_from"));
    let hints = compiled.hints;
    assert_eq!(hints.types[&(OwnerKind::Node, "A".to_string())], "B");
    assert_eq!(hints.types[&(OwnerKind::Edge, "E".to_string())], "F");
    let property = |kind, owner: &str, name: &str| {
        hints.properties[&(kind, owner.to_string(), name.to_string())].clone()
    };
    assert_eq!(property(OwnerKind::Interface, "I", "a"), "old");
    assert_eq!(property(OwnerKind::Node, "A", "a"), "old");
    assert_eq!(property(OwnerKind::Node, "A", "b"), "c");
    assert_eq!(property(OwnerKind::Edge, "E", "d"), "e");
}
