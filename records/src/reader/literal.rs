//! One JSON value as a typed value (`docs/format/tables-and-schema.md` 8.2, values).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use graph::schema::types::{PropType, Scalar};

use super::token::Json;
use crate::calendar::{DATE, DATE_TIME, parse_date, parse_date_time};
use crate::value::{BASE64, Blob, Value};

impl Json<'_> {
    fn integer(self) -> Option<i128> {
        match self {
            Self::Unsigned(value) => Some(value.into()),
            Self::Signed(value) => Some(value.into()),
            _ => None,
        }
    }

    fn narrow<T: TryFrom<i128>>(self) -> Option<T> {
        self.integer()?.try_into().ok()
    }

    fn f64(self) -> Option<f64> {
        match self {
            Self::Unsigned(value) => Some(value as f64),
            Self::Signed(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Rounded to 32 bits; `None` also when that is not finite any more.
    pub(super) fn f32(self) -> Option<f32> {
        let value = match self {
            Self::Unsigned(value) => value as f32,
            Self::Signed(value) => value as f32,
            Self::Float(value) => nearest(value),
            _ => return None,
        };
        value.is_finite().then_some(value)
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A 64-bit float rounded to 32 bits. The text of one F32, 7.038531e-26, is closest to the 64-bit float midway
/// between it and its neighbour, so rounding twice would give the neighbour: midway, an F32 whose own text
/// reads as `value` wins, and every exported F32 comes back.
fn nearest(value: f64) -> f32 {
    let near = value as f32;
    let other = match f64::from(near).partial_cmp(&value) {
        Some(std::cmp::Ordering::Less) => near.next_up(),
        Some(std::cmp::Ordering::Greater) => near.next_down(),
        _ => return near,
    };
    let midway = f64::from(near) + f64::from(other) == 2.0 * value;
    if midway && other.to_string().parse() == Ok(value) {
        other
    } else {
        near
    }
}

/// A value of base type `scalar`, which is neither null, nor a list, nor a vector. `None` when it is none.
pub(super) fn scalar(scalar: Scalar, json: Json<'_>) -> Option<Value> {
    match scalar {
        Scalar::String => json.text().map(|text| Value::Text(text.to_string())),
        Scalar::Bool => match json {
            Json::Bool(value) => Some(Value::Bool(value)),
            _ => None,
        },
        Scalar::I32 => json.narrow().map(Value::I32),
        Scalar::I64 => json.narrow().map(Value::I64),
        Scalar::U32 => json.narrow().map(Value::U32),
        Scalar::U64 => json.narrow().map(Value::U64),
        Scalar::F32 => json.f32().map(Value::F32),
        Scalar::F64 => json.f64().map(Value::F64),
        Scalar::Date => match json {
            Json::Text(text) => parse_date(text).map(Value::Date),
            _ => json.narrow().map(Value::Date),
        },
        Scalar::DateTime => match json {
            Json::Text(text) => parse_date_time(text).map(Value::DateTime),
            _ => json.narrow().map(Value::DateTime),
        },
        Scalar::Blob => json.text().and_then(blob).map(Value::Blob),
        Scalar::Vector(_) => None,
    }
}

/// `base64:` and padded standard base64, else a URI.
fn blob(text: &str) -> Option<Blob> {
    match text.strip_prefix(BASE64) {
        Some(encoded) => STANDARD.decode(encoded).ok().map(Blob::Bytes),
        None if text.is_empty() => None,
        None => Some(Blob::External(text.to_string())),
    }
}

/// Why `json` is no value of `prop_type`, or of its elements.
pub(super) fn mismatch(prop_type: &PropType, item: bool, json: Json<'_>) -> String {
    format!("found {json}, expected {}", expected(prop_type, item))
}

/// What a value of `prop_type`, or one of its elements, has to be.
pub(super) fn expected(prop_type: &PropType, item: bool) -> String {
    if prop_type.list && !item {
        return format!("an array ({prop_type})");
    }
    let range = |min: &dyn std::fmt::Display, max: &dyn std::fmt::Display| {
        format!("an integer from {min} to {max} ({:?})", prop_type.scalar)
    };
    match prop_type.scalar {
        Scalar::String if prop_type.enum_values.is_some() => format!("a string ({prop_type})"),
        Scalar::String => "a string (String)".to_string(),
        Scalar::Bool => "true or false (Bool)".to_string(),
        Scalar::I32 => range(&i32::MIN, &i32::MAX),
        Scalar::I64 => range(&i64::MIN, &i64::MAX),
        Scalar::U32 => range(&u32::MIN, &u32::MAX),
        Scalar::U64 => range(&u64::MIN, &u64::MAX),
        Scalar::F32 => "a number whose magnitude is at most 3.4028235e38 (F32)".to_string(),
        Scalar::F64 => "a number (F64)".to_string(),
        Scalar::Date => DATE.to_string(),
        Scalar::DateTime => DATE_TIME.to_string(),
        Scalar::Blob => format!("\"{BASE64}\" and padded base64, or a URI (Blob)"),
        Scalar::Vector(n) => format!("an array of {n} numbers (Vector({n}))"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_f32_comes_back_from_its_text() {
        let f32 = |text: &str| Json::Float(text.parse().unwrap()).f32();
        assert_eq!(f32("7.038531e-26"), Some(7.038531e-26));
        assert_eq!(f32("-7.038531e-26"), Some(-7.038531e-26));
        // Midway between two floats of which neither is written like this: ties go to even.
        assert_eq!(f32("16777217.0"), Some(16777216.0));
        assert_eq!(f32("16777219.0"), Some(16777220.0));
        assert_eq!(f32("3.4028235e38"), Some(f32::MAX));
        assert_eq!(f32("3.4028236e38"), None);
        assert_eq!(f32("1e-46"), Some(0.0));
    }

    #[test]
    fn scalars_are_exact() {
        use Json::{Bool, Float, Null, Signed, Text, Unsigned};
        let max = u64::MAX;
        let cases = [
            (Scalar::String, Text("a"), Some(Value::Text("a".into()))),
            (Scalar::String, Text(""), Some(Value::Text(String::new()))),
            (Scalar::String, Unsigned(1), None),
            (Scalar::Bool, Bool(true), Some(Value::Bool(true))),
            (Scalar::Bool, Text("true"), None),
            (Scalar::Bool, Unsigned(1), None),
            (Scalar::I32, Signed(-2147483648), Some(Value::I32(i32::MIN))),
            (Scalar::I32, Unsigned(2147483648), None),
            (Scalar::I32, Float(1.0), None),
            (Scalar::I32, Text("1"), None),
            (
                Scalar::I64,
                Unsigned(9007199254740993),
                Some(Value::I64(9007199254740993)),
            ),
            (Scalar::I64, Unsigned(max), None),
            (
                Scalar::U32,
                Unsigned(4294967295),
                Some(Value::U32(u32::MAX)),
            ),
            (Scalar::U32, Unsigned(4294967296), None),
            (Scalar::U32, Signed(-1), None),
            (Scalar::U64, Unsigned(max), Some(Value::U64(max))),
            (Scalar::U64, Float(1.8446744073709552e19), None),
            (Scalar::F32, Float(0.1), Some(Value::F32(0.1))),
            (
                Scalar::F32,
                Float(0.10000000149011612),
                Some(Value::F32(0.1)),
            ),
            (
                Scalar::F32,
                Unsigned(16777217),
                Some(Value::F32(16777216.0)),
            ),
            (Scalar::F32, Float(3.5e38), None),
            (Scalar::F32, Text("1"), None),
            (Scalar::F64, Signed(-3), Some(Value::F64(-3.0))),
            (Scalar::F64, Float(1e308), Some(Value::F64(1e308))),
            (Scalar::F64, Bool(false), None),
            (Scalar::Date, Signed(-1), Some(Value::Date(-1))),
            (Scalar::Date, Unsigned(2147483648), None),
            (Scalar::Date, Text("1970-01-02"), Some(Value::Date(1))),
            (Scalar::Date, Text("1"), None),
            (Scalar::Date, Float(1.0), None),
            (
                Scalar::DateTime,
                Signed(i64::MIN),
                Some(Value::DateTime(i64::MIN)),
            ),
            (
                Scalar::DateTime,
                Text("1970-01-01T00:00:01"),
                Some(Value::DateTime(1000)),
            ),
            (Scalar::DateTime, Text("1970-01-01"), None),
            (
                Scalar::Blob,
                Text("base64:"),
                Some(Value::Blob(Blob::Bytes(vec![]))),
            ),
            (
                Scalar::Blob,
                Text("base64:AQI="),
                Some(Value::Blob(Blob::Bytes(vec![1, 2]))),
            ),
            (Scalar::Blob, Text("base64:AQI"), None),
            (Scalar::Blob, Text("base64:AQ I="), None),
            (Scalar::Blob, Text("base64:_w=="), None),
            (Scalar::Blob, Text(""), None),
            (Scalar::Blob, Unsigned(1), None),
            (
                Scalar::Blob,
                Text("s3://b/k"),
                Some(Value::Blob(Blob::External("s3://b/k".into()))),
            ),
            (Scalar::Vector(1), Float(1.0), None),
            (Scalar::String, Null, None),
        ];
        for (of, json, value) in cases {
            assert_eq!(scalar(of, json), value, "{of:?} {json:?}");
        }
    }
}
