//! Sources that nobody would write: no panic, no runaway memory, an error that says why.

use proptest::prelude::*;

use super::*;

const SEED: &str = r#"
interface Named { title: String @index @description("shown") }
node Zed @owner("me", team="core", level=3) @beta implements Named {
  code: String @key
  kind: enum(spot, area, line)
  near: Vector(8)? @embed(title, model="m1") @index /* c */
  @range(score, -1.5..2.0) @check(code, "^[a-z]+\\d$") @unique(score, kind)
  score: F64?  // c
}
edge Links: Zed -> Zed @card(1..5) { w: U32? @index  @unique(w, @src, @dst) }
"#;

#[test]
fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    for opening in [
        "(",
        "[",
        "{",
        "@a(",
        "[[",
        "node A { a: [",
        "/*",
        "\"\\\"",
        "enum(",
    ] {
        let source = opening.repeat(200_000);
        assert!(
            compile(&source, ParseMode::Tolerant, None).is_err(),
            "{opening}"
        );
    }
}

#[test]
fn long_runs_are_read() {
    let comments = "// c\n".repeat(200_000) + "/* c */ ".repeat(100_000).as_str();
    assert_eq!(admit(&comments), SchemaShape::default());
    let long = format!("node A {{ a: String @x(\"{}\") }}", "\\n é".repeat(200_000));
    assert_eq!(admit(&long).nodes.len(), 1);
}

#[test]
fn token_and_size_bounds_are_stated() {
    let many = "node".repeat(10) + &"{".repeat(MAX_TOKENS);
    assert!(refused(&many).contains("more than 1000000 tokens"));
    let large = " ".repeat(crate::schema::MAX_SCHEMA_BYTES + 1);
    assert!(refused(&large).contains("above the limit of 67108864"));
}

#[test]
fn interfaces_cannot_multiply_without_bound() {
    use std::fmt::Write as _;
    let mut source = "interface I {".to_string();
    for i in 0..3000 {
        write!(source, " p{i}: I32 @a(\"{}\")", "x".repeat(40)).unwrap();
    }
    source.push('}');
    for i in 0..3000 {
        write!(source, " node N{i} implements I {{}}").unwrap();
    }
    assert!(refused(&source).contains("compiles to more than 67108864 bytes"));
    // A long type name is repeated in every reference of the IR.
    let mut source = format!("node N{} {{", "x".repeat(1_000_000));
    for i in 0..100 {
        write!(source, " p{i}: I32 @index").unwrap();
    }
    source.push('}');
    assert!(refused(&source).contains("compiles to more than 67108864 bytes"));
}

fn both(source: &str) {
    for mode in [ParseMode::Admission, ParseMode::Tolerant] {
        let _ = compile(source, mode, None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_read_or_refused(source in any::<String>()) {
        both(&source);
    }

    #[test]
    fn any_tokens_are_read_or_refused(tokens in proptest::collection::vec(
        prop::sample::select(vec![
            "node", "edge", "interface", "implements", "A", "B", "a", "b", ":", "->", "{", "}", "(", ")",
            "[", "]", "@", "@card", "@key", "@range", "@src", "..", "-1", "1.5", "2", ",", "?", "=", "enum",
            "Vector", "String", "Blob", "DateTime", "\"s\"", "true", "//c\n", "/*c*/", " ",
        ]), 0..60)) {
        both(&tokens.concat());
    }

    #[test]
    fn a_mutated_source_is_read_or_refused(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<char>(), 0..3_u8), 1..8)
    ) {
        let mut chars: Vec<char> = SEED.chars().collect();
        for (at, c, kind) in edits {
            let at = at.index(chars.len());
            match kind {
                0 => chars[at] = c,
                1 => chars.insert(at, c),
                _ => { chars.remove(at); }
            }
        }
        both(&chars.into_iter().collect::<String>());
    }
}
