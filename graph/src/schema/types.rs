//! Values that the shape and the IR share (`docs/format/tables-and-schema.md` 5.1).
//!
//! Member order is the stored order: the hashes cover the serialized text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A base type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// UTF-8 text; also the scalar of an enum.
    String,
    /// True or false.
    Bool,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// Days since 1970-01-01.
    Date,
    /// Milliseconds since the epoch, UTC.
    DateTime,
    /// Lance blob v2.
    Blob,
    /// A vector of this many 32-bit floats.
    Vector(u32),
}

impl Scalar {
    /// True for the six integer and float types.
    pub fn is_numeric(self) -> bool {
        matches!(
            self,
            Self::I32 | Self::I64 | Self::U32 | Self::U64 | Self::F32 | Self::F64
        )
    }

    /// True for everything but Blob and vectors.
    pub fn is_plain(self) -> bool {
        !matches!(self, Self::Blob | Self::Vector(_))
    }
}

/// The type of a property.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PropType {
    /// The base type; of an element, when `list`.
    pub scalar: Scalar,
    /// Whether the property may be null.
    pub nullable: bool,
    /// Whether it is a list of `scalar`.
    pub list: bool,
    /// The values of an enum, sorted and distinct.
    pub enum_values: Option<Vec<String>>,
}

impl std::fmt::Display for PropType {
    /// The type as the schema language spells it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nullable = if self.nullable { "?" } else { "" };
        match (&self.enum_values, self.scalar) {
            (Some(values), _) => write!(f, "enum({}){nullable}", values.join(", ")),
            (None, Scalar::Vector(n)) => write!(f, "Vector({n}){nullable}"),
            (None, scalar) if self.list => write!(f, "[{scalar:?}]{nullable}"),
            (None, scalar) => write!(f, "{scalar:?}{nullable}"),
        }
    }
}

/// An annotation that is kept as metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// Its name, without `@`.
    pub name: String,
    /// Its positional value, as text.
    pub value: Option<String>,
    /// Its keyword values, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kwargs: BTreeMap<String, String>,
}

impl Annotation {
    /// The compact JSON text, by which annotations are ordered.
    pub fn sort_key(&self) -> String {
        // A struct of strings and a string map has no failing path into a String.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Annotations that have a typed place and are never kept as metadata.
pub const TYPED_ANNOTATIONS: [&str; 5] = ["rename_from", "embed", "key", "unique", "index"];

/// A constraint declared on the property itself. The order is the stored order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PropertyConstraint {
    /// `@key`
    Key,
    /// `@unique`
    Unique,
    /// `@index`
    Index,
}

impl PropertyConstraint {
    /// The constraint an annotation name stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "key" => Some(Self::Key),
            "unique" => Some(Self::Unique),
            "index" => Some(Self::Index),
            _ => None,
        }
    }
}

/// How many edges of a type one source node may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cardinality {
    /// At least.
    pub min: u32,
    /// At most; `None` is unbounded.
    pub max: Option<u32>,
}

/// One end of a `@range`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Bound {
    /// The text parses as an `i64`.
    Integer(i64),
    /// Any other number.
    Float(f64),
}

impl Bound {
    /// A bound from its source text; `None` when it is no finite number.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(integer) = text.parse::<i64>() {
            return Some(Self::Integer(integer));
        }
        // An infinite bound would be stored as `null` and could never be read back.
        let float = text.parse::<f64>().ok()?;
        float.is_finite().then_some(Self::Float(float))
    }

    /// True for a float whose exponent releases spell in two ways (`1e+16`, `1e16`).
    pub fn has_two_spellings(self) -> bool {
        matches!(self, Self::Float(value) if value.abs() >= 1e16)
    }
}
