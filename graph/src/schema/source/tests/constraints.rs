//! Body constraints (`docs/format/tables-and-schema.md` 4.2 and 4.5).

use super::*;
use crate::schema::shape::ConstraintShape;
use crate::schema::types::Bound;

fn keys(constraints: &[ConstraintShape]) -> Vec<String> {
    constraints.iter().map(ConstraintShape::sort_key).collect()
}

#[test]
fn keys_of_nodes() {
    all_refused(&[
        ("node A { a: I32 @key b: I32 @key }", "more than one key"),
        ("node A { a: I32 @key(a) @key(a) }", "more than one key"),
        ("node A { a: I32 @key @key(a) }", "more than one key"),
        (
            "interface I { a: I32 @key } node A implements I { b: I32 @key }",
            "more than one key",
        ),
        ("node A { a: I32? @key(a) }", "nullable"),
        ("node A { a: [I32] @key(a) }", "cannot be part of a key"),
        ("node A { a: Vector(2) @key(a) }", "cannot be part of a key"),
        ("node A { a: Blob @key(a) }", "cannot be part of a key"),
        ("node A { a: I32 @key(b) }", "has no property 'b'"),
        ("node A { a: I32 @key(src) }", "has no property 'src'"),
        ("node A { a: I32 @key(@src) }", "no endpoint @src"),
        ("node A { a: I32 @key(a, \"b\") }", "is a property name"),
        ("node A { a: I32 @key(a, 1) }", "is a property name"),
        ("node A { a: I32 @key(1..2) }", "is a property name"),
        ("node A { a: I32 @key(true) }", "is a property name"),
    ]);
    let shape = admit("node A { b: F64 a: enum(x) @key(b, a, b) }");
    assert_eq!(keys(&shape.nodes[0].constraints), ["key:a,b"]);
    let shape = admit("interface I { c: Date } node A implements I { @key(c) }");
    assert_eq!(keys(&shape.nodes[0].constraints), ["key:c"]);
}

#[test]
fn keys_of_edges() {
    let edge = |body: &str| format!("node A {{}} edge E: A -> A {{ a: I32 n: I32? {body} }}");
    for (body, expected) in [
        ("@key(a)", "both @src and @dst"),
        ("@key(@src, a)", "both @src and @dst"),
        ("@key(@src, @dst, n)", "nullable"),
        ("@key(@src, @dst) @key(@src, @dst)", "more than one key"),
        ("@key(@id, @src, @dst)", "@id"),
    ] {
        all_refused(&[(&edge(body), expected)]);
    }
    let shape = admit(&edge("@key(@dst, a, @src)"));
    assert_eq!(keys(&shape.edges[0].constraints), ["key:@dst,@src,a"]);
    let legacy = admit(&edge("@key(dst, src, @src)")).respelled(Vintage::Legacy);
    assert_eq!(keys(&legacy.edges[0].constraints), ["key:dst,src"]);
}

#[test]
fn unique_and_index() {
    all_refused(&[
        ("node A { a: Blob @index(a) }", "cannot be indexed"),
        (
            "node A {} edge E: A -> A { a: Blob @index(a, @src) }",
            "cannot be indexed",
        ),
        ("node A { @unique(a) }", "has no property 'a'"),
        (
            "node A {} edge E: A -> A { @index(id) }",
            "has no property 'id'",
        ),
    ]);
    only_tolerated(&[
        ("node A { a: Blob @unique(a) }", "cannot be unique"),
        (
            "node A {} edge E: A -> A { a: Blob @unique(a, @src) }",
            "cannot be unique",
        ),
        ("node A { a: I32 @unique(@id) }", "@id cannot be a member"),
        (
            "node A {} edge E: A -> A { @index(@id) }",
            "@id cannot be a member",
        ),
        (
            "node A {} edge E: A -> A { @index(@ src) }",
            "without a space",
        ),
    ]);
    let shape =
        admit("node A { a: [I32] v: Vector(2) @unique(v, a) @index(a) b: I32 @index @index(b) }");
    assert_eq!(
        keys(&shape.nodes[0].constraints),
        ["index:a", "index:b", "unique:a,v"]
    );
}

#[test]
fn endpoints_by_vintage() {
    let source = "node A {} edge E: A -> A { @unique(src, dst) }";
    compile(source, ParseMode::Admission, Some(Vintage::Legacy)).unwrap();
    compile(source, ParseMode::Tolerant, None).unwrap();
    let error = compile(source, ParseMode::Admission, Some(Vintage::Current)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 36: edge E has no property 'src'; the endpoint is spelled @src"
    );
    let own = "node A {} edge E: A -> A { src: I32 @unique(src, @src) }";
    let shape = compile(own, ParseMode::Admission, Some(Vintage::Current))
        .unwrap()
        .shape;
    assert_eq!(keys(&shape.edges[0].constraints), ["unique:@src,src"]);
}

#[test]
fn ranges() {
    all_refused(&[
        (
            "node A { a: String @range(a, 1..2) }",
            "needs a number, but 'a' is String",
        ),
        ("node A { a: [String] @range(a, 1..2) }", "needs a number"),
        ("node A { a: Vector(2) @range(a, 1..2) }", "needs a number"),
        ("node A { a: Date @range(a, 1..2) }", "needs a number"),
        ("node A { a: I32 @range(b, 1..2) }", "has no property 'b'"),
        (
            "node A { a: I32 @range(@id, 1..2) }",
            "must name a property",
        ),
        ("node A { a: I32 @range(1..2, a) }", "must name a property"),
        ("node A { a: I32 @range(a) }", "second argument of @range"),
        (
            "node A { a: I32 @range(a, 1) }",
            "second argument of @range",
        ),
        (
            "node A {} edge E: A -> A { a: I32 @range(a, 1..2) }",
            "cannot have @range",
        ),
    ]);
    let huge = format!("node A {{ a: F64 @range(a, 1..{}) }}", "9".repeat(400));
    all_refused(&[(&huge, "no 64-bit float")]);
    let shape = admit(
        "node A { a: [U64]? b: F32 @range(a, -1..2.0, \"ignored\") @range(b, 9..1) @range(b, 1.5..)
           @range(b, 9223372036854775808..) @range(b, -9223372036854775808..) }",
    );
    assert_eq!(
        keys(&shape.nodes[0].constraints),
        [
            "range:a:Some(Integer(-1)):Some(Float(2.0))",
            "range:b:Some(Float(1.5)):None",
            "range:b:Some(Float(9.223372036854776e18)):None",
            "range:b:Some(Integer(-9223372036854775808)):None",
            "range:b:Some(Integer(9)):Some(Integer(1))",
        ]
    );
}

#[test]
fn a_lone_upper_bound_has_two_readings() {
    let source = "node A { a: I32 @range(a, ..5) }";
    let read = |upper_bound| {
        let options = CompileOptions {
            mode: ParseMode::Tolerant,
            vintage: None,
            upper_bound,
        };
        let shape = compile_with(source, options).unwrap().shape;
        shape.nodes[0].constraints[0].clone()
    };
    let expected = |min, max| ConstraintShape::Range {
        property: "a".into(),
        min,
        max,
    };
    let five = Some(Bound::Integer(5));
    assert_eq!(read(UpperBound::AsMinimum), expected(five, None));
    assert_eq!(read(UpperBound::AsMaximum), expected(None, five));
}

#[test]
fn checks() {
    all_refused(&[
        (
            "node A { a: I32 @check(a, \"x\") }",
            "needs text, but 'a' is I32",
        ),
        ("node A { a: Blob @check(a, \"x\") }", "needs text"),
        ("node A { a: String @check(a) }", "a quoted pattern"),
        ("node A { a: String @check(a, x) }", "a quoted pattern"),
        ("node A { a: String @check(a, 1..2) }", "a quoted pattern"),
        (
            "node A { a: String @check(\"a\", \"x\") }",
            "must name a property",
        ),
        (
            "node A {} edge E: A -> A { a: String @check(a, \"x\") }",
            "cannot have @range or @check",
        ),
    ]);
    let shape = admit("node A { a: [String] b: enum(x)? @check(a, \"[\") @check(b, \"\", 1) }");
    assert_eq!(keys(&shape.nodes[0].constraints), ["check:a:[", "check:b:"]);
}
