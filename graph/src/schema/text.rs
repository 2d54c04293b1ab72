//! JSON texts whose bytes matter (`docs/format/tables-and-schema.md` 5.3).
//!
//! The hashes cover compact text, and stored objects are pretty text. Both are serde_json's, except
//! that the exponent of a float of 1e16 and above is spelled the same whatever release of serde_json
//! is linked: recent ones print `1e+16`, older ones `1e16`.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// How a positive exponent is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FloatSpelling {
    /// `1e+16`, what contracts are written with.
    #[default]
    Plus,
    /// `1e16`, tried when a stored hash does not fit the other.
    Bare,
}

/// The compact text, without white space.
pub fn compact<T: Serialize>(value: &T, floats: FloatSpelling) -> String {
    render(
        value,
        Spelled {
            inner: CompactFormatter,
            floats,
        },
    )
}

/// The pretty text of a stored object: two-space indent, no trailing newline.
pub fn pretty<T: Serialize>(value: &T) -> String {
    render(
        value,
        Spelled {
            inner: PrettyFormatter::new(),
            floats: FloatSpelling::Plus,
        },
    )
}

fn render<T: Serialize, F: Formatter>(value: &T, formatter: F) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, formatter);
    // The types of this module are structs, lists and string maps, written to memory as UTF-8: no
    // failing path.
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(out).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// A formatter that spells exponents its own way and leaves the rest to `inner`.
struct Spelled<F> {
    inner: F,
    floats: FloatSpelling,
}

impl<F: Formatter> Formatter for Spelled<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut plain = Vec::new();
        self.inner.write_f64(&mut plain, value)?;
        for (at, byte) in plain.iter().enumerate() {
            let after_exponent = at > 0 && plain.get(at - 1) == Some(&b'e');
            match byte {
                b'+' if self.floats == FloatSpelling::Bare => continue,
                b'0'..=b'9' if after_exponent && self.floats == FloatSpelling::Plus => {
                    writer.write_all(b"+")?;
                }
                _ => {}
            }
            writer.write_all(&[*byte])?;
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object_key(writer)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_spelled_as_the_format_says() {
        for (value, plus, bare) in [
            (0.0, "0.0", "0.0"),
            (-0.0, "-0.0", "-0.0"),
            (1.0, "1.0", "1.0"),
            (1e-4, "0.0001", "0.0001"),
            (1e-5, "0.00001", "0.00001"),
            (1e-6, "1e-6", "1e-6"),
            (1e15, "1000000000000000.0", "1000000000000000.0"),
            (1e16, "1e+16", "1e16"),
            (
                -1.234_567_890_123_456_8e17,
                "-1.2345678901234568e+17",
                "-1.2345678901234568e17",
            ),
        ] {
            assert_eq!(compact(&value, FloatSpelling::Plus), plus);
            assert_eq!(compact(&value, FloatSpelling::Bare), bare);
        }
    }

    #[test]
    fn pretty_is_serde_jsons() {
        let value =
            serde_json::json!({"a": [], "b": {}, "c": [1, {"d": "\u{7f}\u{2028}é\u{1}\n"}]});
        assert_eq!(
            pretty(&value),
            serde_json::to_string_pretty(&value).unwrap_or_default()
        );
    }
}
