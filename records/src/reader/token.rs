//! One JSON value as the parser hands it over.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::place::Place;
use crate::error::{RecordError, quoted};
use crate::types::TableType;

/// A JSON value, without the content of arrays and objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    /// A number with a fraction or an exponent, an integer outside of 64 bits, or `-0`.
    Float(f64),
    Text(&'a str),
    Array,
    Object,
}

impl std::fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Array => f.write_str("an array"),
            Self::Object => f.write_str("an object"),
        }
    }
}

/// What reads one value. A method that is not overridden leads to [`Read::token`].
pub(super) trait Read<'de>: Sized {
    type Value;

    fn token<E: Error>(self, json: Json<'_>) -> Result<Self::Value, E>;

    fn array<A: SeqAccess<'de>>(self, _array: A) -> Result<Self::Value, A::Error> {
        self.token(Json::Array)
    }

    fn object<A: MapAccess<'de>>(self, _object: A) -> Result<Self::Value, A::Error> {
        self.token(Json::Object)
    }
}

/// Hands the next value to a [`Read`].
pub(super) struct Reading<T>(pub(super) T);

impl<'de, T: Read<'de>> DeserializeSeed<'de> for Reading<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Read<'de>> Visitor<'de> for Reading<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<T::Value, E> {
        self.0.token(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T::Value, E> {
        self.0.token(Json::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T::Value, E> {
        self.0.token(Json::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T::Value, E> {
        self.0.token(Json::Signed(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T::Value, E> {
        self.0.token(Json::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T::Value, E> {
        self.0.token(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, array: A) -> Result<T::Value, A::Error> {
        self.0.array(array)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T::Value, A::Error> {
        self.0.object(object)
    }
}

/// Reads the name of a member, borrowed where it has no escapes.
pub(super) struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_string()))
    }
}

/// Reads a member that must be a string.
pub(super) struct TextOf<'a, 't> {
    pub(super) place: &'a Place<'t>,
    pub(super) table: Option<&'t TableType>,
    /// The name of the member.
    pub(super) name: &'static str,
}

impl<'de> Read<'de> for TextOf<'_, '_> {
    type Value = String;

    fn token<E: Error>(self, json: Json<'_>) -> Result<String, E> {
        if let Json::Text(text) = json {
            return Ok(text.to_string());
        }
        let error = RecordError::new(format!("\"{}\" is {json}, expected a string", self.name));
        Err(self.place.refuse(match self.table {
            Some(table) => error.of(&table.table_key),
            None => error,
        }))
    }
}
