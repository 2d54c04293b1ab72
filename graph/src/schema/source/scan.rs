//! A bound on what the grammar is asked to parse.
//!
//! A source may have 64 MiB, and most of it may be comments. The parser keeps a few hundred bytes for
//! every token, so a hostile source of nothing but tokens would cost gigabytes. One pass over the
//! text counts them first, and finds comments and strings that nothing ends, which the grammar could
//! only report as an unexpected character.

use super::error::SourceError;
use crate::schema::MAX_SCHEMA_BYTES;

/// Most tokens of a source: names, punctuation marks, numbers and strings.
pub const MAX_TOKENS: usize = 1_000_000;

/// Refuse a source that is too large, has too many tokens, or ends inside a comment or string.
pub fn check(source: &str) -> Result<(), SourceError> {
    check_bounds(source, MAX_SCHEMA_BYTES, MAX_TOKENS)
}

fn check_bounds(source: &str, max_bytes: usize, max_tokens: usize) -> Result<(), SourceError> {
    if source.len() > max_bytes {
        return Err(SourceError::at(
            source,
            0,
            format!(
                "the source has {} bytes, above the limit of {max_bytes}",
                source.len()
            ),
        ));
    }
    let bytes = source.as_bytes();
    let mut at = 0;
    let mut tokens = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        match (byte, next) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {
                at += 1;
                continue;
            }
            (b'/', Some(b'/')) => {
                at = find(source, at, "\n").unwrap_or(bytes.len());
                continue;
            }
            (b'/', Some(b'*')) => {
                at = match find(source, at + 2, "*/") {
                    Some(end) => end + 2,
                    None => return Err(SourceError::at(source, at, "the comment is never closed")),
                };
                continue;
            }
            (b'"', _) => {
                at = string_end(source, at)?;
            }
            _ if is_word(byte) => {
                while bytes.get(at).is_some_and(|b| is_word(*b)) {
                    at += 1;
                }
            }
            _ => at += 1,
        }
        tokens += 1;
        if tokens > max_tokens {
            return Err(SourceError::at(
                source,
                at.saturating_sub(1),
                format!("the source has more than {max_tokens} tokens"),
            ));
        }
    }
    Ok(())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The offset of `needle` at or after `from`.
fn find(source: &str, from: usize, needle: &str) -> Option<usize> {
    source.get(from..)?.find(needle).map(|found| from + found)
}

/// The offset after the closing quote of the string that opens at `open`.
fn string_end(source: &str, open: usize) -> Result<usize, SourceError> {
    let bytes = source.as_bytes();
    let unclosed = || SourceError::at(source, open, "the string is never closed");
    let mut at = open + 1;
    loop {
        match bytes.get(at).ok_or_else(unclosed)? {
            b'"' => return Ok(at + 1),
            b'\\' => {
                let escaped = bytes.get(at + 1).ok_or_else(unclosed)?;
                if !matches!(escaped, b'"' | b'\\' | b'n' | b'r' | b't') {
                    return Err(SourceError::at(
                        source,
                        at,
                        r#"a backslash in a string is followed by ", \, n, r or t"#,
                    ));
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counts_tokens_and_nothing_else() {
        let source = "node A /* {{{{ */ {\n  // }}}}\n  k: String @check(k, \"a b { \\\" }\")\n}";
        let tokens = [
            "node", "A", "{", "k", ":", "String", "@", "check", "(", "k", ",", "s", ")", "}",
        ];
        assert_eq!(check_bounds(source, 1000, tokens.len()), Ok(()));
        let error = check_bounds(source, 1000, tokens.len() - 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 4, column 1: the source has more than 13 tokens"
        );
        assert!(check_bounds(source, 10, 100).is_err());
    }

    #[test]
    fn unclosed_comment_and_string_are_named_where_they_open() {
        for (source, expected) in [
            (
                "node A {}\n /* x",
                "line 2, column 2: the comment is never closed",
            ),
            ("é /*/", "line 1, column 3: the comment is never closed"),
            (
                "@a(\"x\\\")",
                "line 1, column 4: the string is never closed",
            ),
            ("\"\\", "line 1, column 1: the string is never closed"),
            (
                "\"a\\q\"",
                r#"line 1, column 3: a backslash in a string is followed by ", \, n, r or t"#,
            ),
        ] {
            assert_eq!(check(source).unwrap_err().to_string(), expected);
        }
    }
}
