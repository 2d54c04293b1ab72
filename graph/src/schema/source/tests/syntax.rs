//! Lexis and grammar (`docs/format/tables-and-schema.md` 4.1 and 4.2).

use super::*;
use crate::schema::source::ast::ArgValue;
use crate::schema::types::Scalar;

#[test]
fn nothing_is_a_schema() {
    for source in ["", " \t\r\n", "// only a comment", "/**/", "/* a /* b */"] {
        assert_eq!(admit(source), SchemaShape::default());
    }
    assert_eq!(admit("node A {}interface B {}edge C:A->A").edges.len(), 1);
}

#[test]
fn white_space_is_allowed_everywhere_and_needed_nowhere() {
    let tight = "interfaceI{a:I32}nodeA@x(\"y\")implementsI{k:String@key d:DateTimeq:I32@unique(k,q)}edgeE:A->A@card(0..1)@z{w:[I32]?v:enum(a,b)?}";
    let loose = "
        interface I { a : I32 }
        node A @ x ( \"y\" ) implements I { k : String @ /* c */ key
          d : DateTime // c
          q : I32 @ unique ( k , q ) }
        edge E : A -> A @card ( 0 .. 1 ) @z { w : [ I32 ] ? v : enum ( a , b ) ? }
    ";
    assert_eq!(admit(tight), admit(loose));
}

#[test]
fn tokens_are_not_split() {
    all_refused(&[
        ("edge E: A - > A", "expected '->'"),
        ("node A {} edge E: A -> A @ card(0..1)", "expected ')'"),
        ("node A { k: I32 @range(k, 1. .2) }", "expected"),
        ("node A { k: I32 @range(k, - 1..2) }", "expected"),
        ("no de A {}", "expected"),
        ("node A { k: I 32 }", "expected a type"),
    ]);
}

#[test]
fn syntax_errors_name_place_and_expectation() {
    for (source, expected) in [
        (
            "node A {\n  k String\n}",
            "line 2, column 5: expected ':', found 'S'",
        ),
        (
            "node A {",
            "line 1, column 9: expected a name (lower case first), '@' or '}', found the end of the source",
        ),
        (
            "nod A {}",
            "line 1, column 1: expected a declaration, found 'n'",
        ),
        (
            "\u{feff}node A {}",
            "line 1, column 1: expected a declaration, found the character U+FEFF",
        ),
        (
            "/* é */ node a {}",
            "line 1, column 14: expected a type name (upper case first), found 'a'",
        ),
        (
            "node A { k: Strin }",
            "line 1, column 13: expected a type, found 'S'",
        ),
    ] {
        assert_eq!(refused(source), expected, "{source}");
    }
    all_refused(&[
        ("node A {}\u{c}", "U+000C"),
        ("node A { k: enum() }", "expected an enum value"),
        ("node A { k: [enum(a)] }", "expected a type"),
        ("node A { k: [[I32]] }", "expected a type"),
        ("node A { k: [Vector(2)] }", "expected a type"),
        ("node A { k: Vector(2)[] }", "expected"),
        ("node A { k: I32?? }", "expected"),
        ("node A { @key() }", "expected an argument"),
        ("node A { @key(k,) }", "expected an argument"),
        ("node A { k: I32 @range(k, ..) }", "expected a number"),
        ("node A { k: I32 @foo() }", "expected a literal"),
        ("node A { k: I32 @foo(1, 2) }", "expected a name"),
        ("node A { k: I32 @foo(1,) }", "expected a name"),
        ("node A { k: I32 @foo(1, a=b) }", "expected a literal"),
        ("node A { k: I32 @foo(-1) }", "expected"),
        ("node A { k: I32 @foo(truey) }", "expected"),
        ("node A { truey: I32 @index(truey) }", "expected"),
        ("interface I @a {}", "expected '{'"),
        ("interface I { a: I32 @index(a) }", "found '('"),
        ("node A implements {}", "expected a type name"),
        ("node A implements I @a {}", "expected"),
        ("edge E: A -> A @x @card(0..1)", "expected"),
        ("node A { /* }", "never closed"),
        ("node A { k: I32 @foo(\"a) }", "never closed"),
        ("node A { k: I32 @foo(\"\\x\") }", "backslash"),
    ]);
}

#[test]
fn annotations_keep_source_text() {
    let file = parse(
        r#"node A @a @b(3) @c(1.50) @d(true) @e(name) @f("q\"\\\n\r\t
") @g("x", k=1.0, l="y", k=false) {}"#,
    )
    .unwrap();
    let values: Vec<_> = file.nodes[0]
        .annotations
        .iter()
        .map(|a| a.value.as_deref())
        .collect();
    assert_eq!(
        values,
        [
            None,
            Some("3"),
            Some("1.50"),
            Some("true"),
            Some("name"),
            Some("q\"\\\n\r\t\n"),
            Some("x")
        ]
    );
    let kwargs = &file.nodes[0].annotations[6].kwargs;
    assert_eq!(kwargs.get("k").unwrap(), "false");
    assert_eq!(kwargs.get("l").unwrap(), "y");
}

#[test]
fn a_constraint_name_before_a_parenthesis_is_the_next_item() {
    let file = parse("node A { name: String @key @key /* c */ (name) @keys(name) : I32 }");
    assert!(file.is_err(), "an annotation cannot be a property name");
    let file = parse("node A { name: String @key @index(name) @keys(name) }").unwrap_err();
    assert!(file.message.contains("expected"));
    let file = parse("node A { a: String @keys(name) @key\n@key // c\n (a) }").unwrap();
    let body = &file.nodes[0].body;
    assert_eq!(body.properties[0].annotations.len(), 2);
    assert_eq!(body.constraints.len(), 1);
}

#[test]
fn card_is_an_annotation_when_it_has_no_range() {
    let shape = admit("node A {} edge E: A -> A @card(1) @card(\"x\") edge F: A -> A @cards");
    assert_eq!(shape.edges[0].cardinality.max, None);
    assert_eq!(shape.edges[0].annotations.len(), 2);
    assert_eq!(shape.edges[1].annotations[0].name, "cards");
    let shape = admit("node A {} edge E: A -> A @card(2..5)");
    assert_eq!(
        (
            shape.edges[0].cardinality.min,
            shape.edges[0].cardinality.max
        ),
        (2, Some(5))
    );
}

#[test]
fn arguments_take_their_form_in_order() {
    let file = parse("node A { @check(a, 1..2, ..-3, -1.5.., \"s\", 4, 1.5, false, @id, @ src) }")
        .unwrap();
    let args: Vec<_> = file.nodes[0].body.constraints[0]
        .args
        .iter()
        .map(|a| a.value.clone())
        .collect();
    let range = |min: Option<&str>, max: Option<&str>| ArgValue::Range {
        min: min.map(str::to_string),
        max: max.map(str::to_string),
    };
    assert_eq!(
        args,
        [
            ArgValue::Ident("a".into()),
            range(Some("1"), Some("2")),
            range(None, Some("-3")),
            range(Some("-1.5"), None),
            ArgValue::Text("s".into()),
            ArgValue::Other("4".into()),
            ArgValue::Other("1.5".into()),
            ArgValue::Other("false".into()),
            ArgValue::Meta {
                role: crate::schema::SystemRole::Id,
                spaced: false
            },
            ArgValue::Meta {
                role: crate::schema::SystemRole::Src,
                spaced: true
            },
        ]
    );
}

#[test]
fn every_type_is_read() {
    let shape = admit(
        "node A { a: String b: Blob? c: Bool d: I32 e: I64 f: U32 g: U64 h: F32 i: F64 j: DateTime k: Date
         l: Vector(2147483647) m: [DateTime]? n: enum(b-1, a_2, 3) }",
    );
    let types: Vec<_> = shape.nodes[0]
        .properties
        .iter()
        .map(|p| p.prop_type.to_string())
        .collect();
    assert_eq!(
        types,
        [
            "String",
            "Blob?",
            "Bool",
            "I32",
            "I64",
            "U32",
            "U64",
            "F32",
            "F64",
            "DateTime",
            "Date",
            "Vector(2147483647)",
            "[DateTime]?",
            "enum(3, a_2, b-1)",
        ]
    );
    assert_eq!(
        shape.nodes[0].properties[13].prop_type.scalar,
        Scalar::String
    );
}
