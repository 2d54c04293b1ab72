//! A typed value of a property.

use crate::error::RecordError;

/// A value as it is stored (`docs/format/tables-and-schema.md` 2.3).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Null.
    Null,
    /// String or enum.
    Text(String),
    /// Bool.
    Bool(bool),
    /// I32.
    I32(i32),
    /// I64.
    I64(i64),
    /// U32.
    U32(u32),
    /// U64.
    U64(u64),
    /// F32; finite when it comes from the reader.
    F32(f32),
    /// F64; finite when it comes from the reader.
    F64(f64),
    /// Days since 1970-01-01.
    Date(i32),
    /// Milliseconds since the epoch, UTC.
    DateTime(i64),
    /// Exactly as many elements as the type says, all finite when they come from the reader.
    Vector(Vec<f32>),
    /// Elements of the list's base type or null.
    List(Vec<Value>),
    /// A blob.
    Blob(Blob),
}

impl Value {
    /// True for [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// What the value is, for an error.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Text(_) => "a String",
            Self::Bool(_) => "a Bool",
            Self::I32(_) => "an I32",
            Self::I64(_) => "an I64",
            Self::U32(_) => "a U32",
            Self::U64(_) => "a U64",
            Self::F32(_) => "an F32",
            Self::F64(_) => "an F64",
            Self::Date(_) => "a Date",
            Self::DateTime(_) => "a DateTime",
            Self::Vector(_) => "a Vector",
            Self::List(_) => "a list",
            Self::Blob(_) => "a Blob",
        }
    }
}

/// The content of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// Bytes to store.
    Bytes(Vec<u8>),
    /// A URI of an object outside the graph, not judged here: whether it is allowed is the caller's.
    External(String),
}

/// What marks the text of a blob as its bytes.
pub(crate) const BASE64: &str = "base64:";

/// The canonical scalar text of a value (`docs/format/tables-and-schema.md` 2.7): strings as they are,
/// integers decimal, `true`/`false`, floats as the shortest decimal of the stored width without exponent
/// and `.0`, dates as days, date-times as milliseconds. `None` for null, lists, vectors and blobs.
///
/// Errors: a float that is not finite.
pub fn canonical_text(value: &Value) -> Result<Option<String>, RecordError> {
    Ok(Some(match value {
        Value::Text(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::I32(value) | Value::Date(value) => value.to_string(),
        Value::I64(value) | Value::DateTime(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::F32(value) => float_text(value.is_finite(), *value == 0.0, value)?,
        Value::F64(value) => float_text(value.is_finite(), *value == 0.0, value)?,
        Value::Null | Value::Vector(_) | Value::List(_) | Value::Blob(_) => return Ok(None),
    }))
}

/// Rust's `Display` is the shortest text of the width and never has an exponent, but keeps the sign of zero.
fn float_text(
    finite: bool,
    zero: bool,
    value: impl std::fmt::Display,
) -> Result<String, RecordError> {
    match (finite, zero) {
        (false, _) => Err(RecordError::new(format!(
            "found {value}, which has no place in a key: expected a finite number"
        ))),
        (true, true) => Ok("0".to_string()),
        (true, false) => Ok(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_texts() {
        let cases = [
            (Value::Text("a \"b\"".into()), Some("a \"b\"")),
            (Value::Text(String::new()), Some("")),
            (Value::Bool(true), Some("true")),
            (Value::Bool(false), Some("false")),
            (Value::I32(-5), Some("-5")),
            (Value::I64(i64::MIN), Some("-9223372036854775808")),
            (Value::U32(u32::MAX), Some("4294967295")),
            (Value::U64(u64::MAX), Some("18446744073709551615")),
            (Value::F64(1.0), Some("1")),
            (Value::F64(1e-7), Some("0.0000001")),
            (Value::F64(1e16), Some("10000000000000000")),
            (Value::F64(0.0), Some("0")),
            (Value::F64(-0.0), Some("0")),
            (Value::F64(-1.5), Some("-1.5")),
            (Value::F32(0.1), Some("0.1")),
            (Value::F32(-0.0), Some("0")),
            (Value::F32(16777216.0), Some("16777216")),
            (Value::Date(-1), Some("-1")),
            (Value::DateTime(-62135596800000), Some("-62135596800000")),
            (Value::Null, None),
            (Value::Vector(vec![1.0]), None),
            (Value::List(vec![Value::I32(1)]), None),
            (Value::Blob(Blob::Bytes(vec![1])), None),
        ];
        for (value, text) in cases {
            let found = canonical_text(&value).unwrap();
            assert_eq!(found.as_deref(), text, "{value:?}");
        }
    }

    #[test]
    fn a_float_without_a_number_has_no_text() {
        for value in [
            Value::F64(f64::NAN),
            Value::F64(f64::INFINITY),
            Value::F32(f32::NEG_INFINITY),
        ] {
            let error = canonical_text(&value).unwrap_err().to_string();
            assert!(error.contains("expected a finite number"), "{error}");
        }
    }
}
