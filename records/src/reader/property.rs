//! The value of one property: a scalar, a vector or a list, judged by its type and rules.

use graph::schema::types::Scalar;
use serde::de::{Error, IgnoredAny, SeqAccess};

use super::literal;
use super::place::Place;
use super::token::{Json, Read, Reading};
use crate::error::RecordError;
use crate::types::Property;
use crate::value::Value;

/// Elements for which room is made before they are seen.
const ROOM: usize = 4096;

/// Reads the value of `property`.
pub(super) struct ValueOf<'a, 't> {
    pub(super) place: &'a Place<'t>,
    pub(super) property: &'t Property,
}

impl ValueOf<'_, '_> {
    fn refuse<E: Error>(&self, message: String) -> E {
        self.place.refuse(RecordError::new(message))
    }

    fn judged<E: Error>(&self, value: Value) -> Result<Value, E> {
        let Property {
            rules, prop_type, ..
        } = self.property;
        match rules.judge(prop_type, &value) {
            Ok(()) => Ok(value),
            Err(message) => Err(self.refuse(message)),
        }
    }

    fn vector<'de, A: SeqAccess<'de>>(self, n: u32, mut array: A) -> Result<Value, A::Error> {
        let wanted = n as usize;
        let mut vector = Vec::with_capacity(wanted.min(ROOM));
        while vector.len() < wanted {
            let element = ElementOf {
                value: &self,
                index: vector.len(),
            };
            match array.next_element_seed(Reading(element))? {
                Some(element) => vector.push(element),
                None => break,
            }
        }
        let mut count = vector.len();
        while array.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if count != wanted {
            return Err(self.refuse(format!(
                "found an array of {count} elements, expected {}",
                literal::expected(&self.property.prop_type, false)
            )));
        }
        Ok(Value::Vector(vector))
    }

    fn list<'de, A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = array.next_element_seed(Reading(ItemOf {
            value: &self,
            index: items.len(),
        }))? {
            items.push(item);
        }
        self.judged(Value::List(items))
    }
}

impl<'de> Read<'de> for ValueOf<'_, '_> {
    type Value = Value;

    fn token<E: Error>(self, json: Json<'_>) -> Result<Value, E> {
        let prop_type = &self.property.prop_type;
        if json == Json::Null {
            return match prop_type.nullable {
                true => Ok(Value::Null),
                false => Err(self.refuse(format!(
                    "{}: it must not be null",
                    literal::mismatch(prop_type, false, json)
                ))),
            };
        }
        let value = match prop_type.list {
            true => None,
            false => literal::scalar(prop_type.scalar, json),
        };
        match value {
            Some(value) => self.judged(value),
            None => Err(self.refuse(literal::mismatch(prop_type, false, json))),
        }
    }

    fn array<A: SeqAccess<'de>>(self, array: A) -> Result<Value, A::Error> {
        match (self.property.prop_type.list, self.property.prop_type.scalar) {
            (true, _) => self.list(array),
            (false, Scalar::Vector(n)) => self.vector(n, array),
            (false, _) => self.token(Json::Array),
        }
    }
}

/// Reads an element of a list.
struct ItemOf<'a, 'v, 't> {
    value: &'a ValueOf<'v, 't>,
    index: usize,
}

impl<'de> Read<'de> for ItemOf<'_, '_, '_> {
    type Value = Value;

    fn token<E: Error>(self, json: Json<'_>) -> Result<Value, E> {
        let prop_type = &self.value.property.prop_type;
        if json == Json::Null {
            return Ok(Value::Null);
        }
        literal::scalar(prop_type.scalar, json).ok_or_else(|| {
            self.value.refuse(format!(
                "item {}: {}",
                self.index,
                literal::mismatch(prop_type, true, json)
            ))
        })
    }
}

/// Reads an element of a vector.
struct ElementOf<'a, 'v, 't> {
    value: &'a ValueOf<'v, 't>,
    index: usize,
}

impl<'de> Read<'de> for ElementOf<'_, '_, '_> {
    type Value = f32;

    fn token<E: Error>(self, json: Json<'_>) -> Result<f32, E> {
        json.f32().ok_or_else(|| {
            self.value.refuse(format!(
                "item {}: found {json}, expected a number whose magnitude is at most 3.4028235e38 ({})",
                self.index, self.value.property.prop_type
            ))
        })
    }
}
