//! Types, annotations, names and declarations (`docs/format/tables-and-schema.md` 4.2 to 4.4, 4.6).

use super::*;

#[test]
fn types() {
    all_refused(&[
        ("node A { k: Vector(0) }", "at least 1"),
        ("node A { k: Vector(2147483648) }", "at most 2147483647"),
        (
            "node A { k: Vector(99999999999999999999) }",
            "at most 2147483647",
        ),
        ("node A { k: [Blob] }", "a list of Blob"),
        ("interface I { k: [Blob]? }", "a list of Blob"),
        ("node A { k: enum(b, a, b) }", "the value 'b' twice"),
        ("interface I { k: enum(a, a) }", "the value 'a' twice"),
    ]);
}

#[test]
fn declarations_are_unique() {
    all_refused(&[
        ("node A {} node A {}", "node type A is declared twice"),
        (
            "interface A {} interface A {}",
            "interface A is declared twice",
        ),
        (
            "node N {} edge A: N -> N edge A: N -> N",
            "edge type A is declared twice",
        ),
        (
            "node N {} edge Ab: N -> N edge AB: N -> N",
            "differs from Ab only in case",
        ),
        ("node A { a: I32 a: I32 }", "declares property 'a' twice"),
        (
            "interface A { a: I32 a: I32 }",
            "declares property 'a' twice",
        ),
        (
            "node A {} edge E: A -> A { a: I32 a: I32 }",
            "declares property 'a' twice",
        ),
        (
            "node A {} edge E: A -> B",
            "names B, which is no declared node type",
        ),
        (
            "interface I {} node A {} edge E: I -> A",
            "names I, which is no declared node type",
        ),
        (
            "node A {} edge E: A -> A @card(2..1)",
            "at least 2 and at most 1",
        ),
        (
            "node A {} edge E: A -> A @card(4294967296..)",
            "above 4294967295",
        ),
        (
            "node A {} edge E: A -> A @card(0..4294967296)",
            "above 4294967295",
        ),
    ]);
    // Kinds have name spaces of their own.
    admit("interface A {} node A {} edge A: A -> A");
}

#[test]
fn property_annotations() {
    all_refused(&[
        (
            "node A { a: String @key @key }",
            "@key on A.a is given twice",
        ),
        ("node A { a: String @unique @unique }", "given twice"),
        ("node A { a: String @index @index }", "given twice"),
        ("node A { a: String? @key }", "not nullable"),
        (
            "node A { a: [String] @key }",
            "cannot stand on the type [String]",
        ),
        (
            "node A { a: [String] @unique }",
            "cannot stand on the type [String]",
        ),
        (
            "node A { a: [String] @index }",
            "cannot stand on the type [String]",
        ),
        ("node A { a: Blob @key }", "cannot stand on the type Blob"),
        (
            "node A { a: Blob @unique }",
            "cannot stand on the type Blob",
        ),
        ("node A { a: Blob @index }", "cannot stand on the type Blob"),
        (
            "node A { a: Vector(2) @key }",
            "cannot stand on the type Vector(2)",
        ),
        (
            "node A { a: Vector(2) @unique }",
            "cannot stand on the type Vector(2)",
        ),
        (
            "node A {} edge E: A -> A { a: I32 @key }",
            "not for properties of an edge",
        ),
        (
            "node A {} edge E: A -> A { a: [I32] @index }",
            "cannot stand on",
        ),
        ("node A { s: String a: [I32] @embed(s) }", "needs a vector"),
        ("node A { s: String a: Blob @embed(s) }", "needs a vector"),
        ("node A { s: String a: String @embed(s) }", "needs a vector"),
        (
            "node A { s: String a: Vector(2) @embed }",
            "needs the property to embed",
        ),
        (
            "node A { s: String a: Vector(2) @embed(t) }",
            "'t', which is no property",
        ),
        (
            "node A { s: I32 a: Vector(2) @embed(s) }",
            "which is I32 and not text",
        ),
        ("node A { s: [String] a: Vector(2) @embed(s) }", "not text"),
        (
            "node A { s: String a: Vector(2) @embed(s, modell=\"m\") }",
            "no keyword 'modell'",
        ),
        (
            "node A { s: String a: Vector(2) @embed(s) @embed(s) }",
            "given twice",
        ),
        (
            "node A {} edge E: A -> A { s: String a: Vector(2) @embed(s) }",
            "not for properties of an edge",
        ),
        ("node A { a: I32 @rename_from }", "needs the old name"),
        (
            "node A { a: I32 @rename_from(\" \") }",
            "needs the old name",
        ),
        (
            "node A { a: I32 @rename_from(\"b\", c=1) }",
            "takes no keywords",
        ),
        (
            "node A { a: I32 @rename_from(b) @rename_from(c) }",
            "given twice",
        ),
        ("node A { a: I32 @description }", "not blank"),
        ("node A { a: I32 @description(\"\\t\") }", "not blank"),
        (
            "node A { a: I32 @description(\"x\") @description(\"y\") }",
            "given twice",
        ),
        (
            "node A { a: I32 @instruction(\"x\") }",
            "only for nodes and edges",
        ),
        (
            "node A {} edge E: A -> A { a: I32 @instruction(\"x\") }",
            "only for nodes and edges",
        ),
    ]);
    admit(
        "node A { s: enum(a)? t: Vector(2)? @embed(\"s\", model=\"m\") @index @x @x @x(1)
           d: Date @key @unique @index @description(d) @rename_from(\"e\") }
         edge E: A -> A { a: I32? @unique @index @description(\"d\") @rename_from(b) }",
    );
}

#[test]
fn declaration_annotations() {
    for name in ["key", "unique", "index", "embed"] {
        all_refused(&[
            (&format!("node A @{name} {{}}"), "only for properties"),
            (
                &format!("node A {{}} edge E: A -> A @{name}"),
                "only for properties",
            ),
        ]);
    }
    for name in ["description", "instruction", "rename_from"] {
        let blank = if name == "rename_from" {
            "needs the old name"
        } else {
            "not blank"
        };
        all_refused(&[
            (&format!("node A @{name} {{}}"), blank),
            (&format!("node A @{name}(\" \") {{}}"), blank),
            (&format!("node A {{}} edge E: A -> A @{name}(\"\")"), blank),
            (&format!("node A @{name}(a) @{name}(b) {{}}"), "given twice"),
            (
                &format!("node A {{}} edge E: A -> A @{name}(a) @{name}(b)"),
                "given twice",
            ),
        ]);
    }
    all_refused(&[("node A @rename_from(\"B\", c=1) {}", "takes no keywords")]);
    let shape = admit(
        "node A @rename_from(\"B\") @description(\"x\") @instruction(i) @own @own @own(1) {}",
    );
    let names: Vec<_> = shape.nodes[0]
        .annotations
        .iter()
        .map(|a| a.name.as_str())
        .collect();
    assert_eq!(names, ["description", "instruction", "own", "own"]);
}

#[test]
fn names_no_vintage_admits() {
    all_refused(&[
        ("node A { _rowid: I32 }", "property '_rowid' of node A"),
        (
            "interface I { _rowaddr: I32 }",
            "property '_rowaddr' of interface I",
        ),
        (
            "node A {} edge E: A -> A { _rowoffset: I32 }",
            "property '_rowoffset' of edge E",
        ),
        (
            "node A { _row_created_at_version: I32 }",
            "cannot have that name",
        ),
        (
            "node A { _row_last_updated_at_version: I32 }",
            "cannot have that name",
        ),
        ("node A { __id: I32 }", "cannot have that name"),
        (
            "node A {} edge E: A -> A { __src: I32 }",
            "cannot have that name",
        ),
        (
            "node A {} edge E: A -> A { __dst: I32 }",
            "cannot have that name",
        ),
    ]);
    only_tolerated(&[
        ("node A { _score: F32 }", "search results"),
        ("interface I { _distance: F32 }", "search results"),
        (
            "node A {} edge E: A -> A { from: I32 }",
            "import and export",
        ),
        ("node A {} edge E: A -> A { to: I32 }", "import and export"),
    ]);
    admit(
        "node A { from: I32 to: I32 src: I32 dst: I32 id: I32 } edge E: A -> A { id: I32 src: I32 }",
    );
}

#[test]
fn names_by_vintage() {
    let check = |vintage, source: &str| compile(source, ParseMode::Admission, Some(vintage));
    for source in [
        "node A { id: I32 }",
        "interface I { id: I32 }",
        "node A { __id: I32 }",
        "node A { _rowid: I32 }",
        "node A {} edge E: A -> A { id: I32 }",
        "node A {} edge E: A -> A { src: I32 }",
        "node A {} edge E: A -> A { dst: I32 }",
        "node A {} edge E: A -> A { __dst: I32 }",
    ] {
        assert!(check(Vintage::Legacy, source).is_err(), "{source}");
    }
    for source in [
        "node A { _a: I32 }",
        "interface I { __id: I32 }",
        "node A { _: I32 }",
    ] {
        assert!(check(Vintage::Current, source).is_err(), "{source}");
    }
    check(Vintage::Legacy, "node A { _a: I32 src: I32 __src: I32 }").unwrap();
    check(
        Vintage::Current,
        "node A { id: I32 } edge E: A -> A { src: I32 id: I32 }",
    )
    .unwrap();
}
