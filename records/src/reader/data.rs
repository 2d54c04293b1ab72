//! The `data` member of a record: its properties.

use graph::model::table::TableKind;
use graph::schema::Vintage;
use serde::de::{Error, MapAccess};

use super::literal;
use super::place::Place;
use super::property::ValueOf;
use super::token::{Json, Name, Read, Reading, TextOf};
use crate::error::{RecordError, cut};
use crate::types::{Property, TableType};
use crate::value::Value;

/// What `data` holds.
#[derive(Debug, Default)]
pub(super) struct Data {
    /// One per property of the type.
    pub(super) values: Vec<Value>,
    /// Legacy vintage: the identity.
    pub(super) id: Option<String>,
}

/// A member of `data`.
enum Key {
    Property(usize),
    Identity,
}

/// Reads `data` of a record of `table`.
pub(super) struct DataOf<'a, 't> {
    pub(super) place: &'a Place<'t>,
    pub(super) table: &'t TableType,
}

impl<'t> DataOf<'_, 't> {
    /// `next` is the property that follows the last one read, which is the likeliest: exports are in order.
    fn key<E: Error>(&self, name: &str, next: usize) -> Result<Key, E> {
        if self
            .table
            .properties
            .get(next)
            .is_some_and(|p| p.name == name)
        {
            return Ok(Key::Property(next));
        }
        let legacy = self.place.types.vintage() == Vintage::Legacy;
        let edge = self.table.kind == TableKind::Edge;
        let advice = match (name, legacy) {
            ("id", true) => return Ok(Key::Identity),
            ("__id", false) => {
                Some(r#"move "__id" from "data" to the top level of the record, as "id""#)
            }
            ("__src", false) if edge => {
                Some(r#"give the endpoints at the top level, as "from" and "to""#)
            }
            ("__dst", false) if edge => {
                Some(r#"give the endpoints at the top level, as "from" and "to""#)
            }
            _ => None,
        };
        if let (None, Some(index)) = (advice, self.table.property(name)) {
            return Ok(Key::Property(index));
        }
        let advice = advice.or(match name {
            "id" => Some(r#"move "id" from "data" to the top level of the record"#),
            "src" | "dst" if edge => {
                Some(r#"give the endpoints at the top level, as "from" and "to""#)
            }
            _ => None,
        });
        let message = match advice {
            Some(advice) => format!("the type declares no such property: {advice}"),
            None => format!(
                "the type declares no such property ({}): correct the name or remove it",
                self.declared()
            ),
        };
        let error = RecordError::new(message).of(&self.table.table_key);
        Err(self.place.refuse(error.on(&cut(name))))
    }

    fn declared(&self) -> String {
        let names = self.table.properties.iter().map(|p| p.name.as_str());
        let shown: Vec<_> = names.take(5).collect();
        match (self.table.properties.len(), shown.join(", ")) {
            (0, _) => "it has none".to_string(),
            (n, shown) if n > 5 => format!("it has {shown} and {} more", n - 5),
            (_, shown) => format!("it has {shown}"),
        }
    }

    fn repeated<E: Error>(&self, name: &str) -> E {
        let error = RecordError::new("given twice in one record: keep one");
        self.place.refuse(error.of(&self.table.table_key).on(name))
    }

    /// A property that `data` does not have is null.
    fn absent<E: Error>(&self, property: &'t Property) -> Result<Value, E> {
        if property.prop_type.nullable {
            return Ok(Value::Null);
        }
        let error = RecordError::new(format!(
            "missing, expected {}: it must not be null",
            literal::expected(&property.prop_type, false)
        ));
        let error = error.of(&self.table.table_key).on(&property.name);
        Err(self.place.refuse(error))
    }
}

impl<'de> Read<'de> for DataOf<'_, '_> {
    type Value = Data;

    fn token<E: Error>(self, json: Json<'_>) -> Result<Data, E> {
        let error = RecordError::new(format!("\"data\" is {json}, expected an object"));
        Err(self.place.refuse(error.of(&self.table.table_key)))
    }

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut found: Vec<Option<Value>> = Vec::new();
        found.resize_with(self.table.properties.len(), || None);
        let mut id = None;
        let mut next = 0;
        while let Some(name) = map.next_key_seed(Name)? {
            match self.key(&name, next)? {
                Key::Identity => {
                    if id.is_some() {
                        return Err(self.repeated("id"));
                    }
                    id = Some(map.next_value_seed(Reading(TextOf {
                        place: self.place,
                        table: Some(self.table),
                        name: "id",
                    }))?);
                }
                Key::Property(index) => {
                    let (Some(property), Some(slot)) =
                        (self.table.properties.get(index), found.get_mut(index))
                    else {
                        continue;
                    };
                    if slot.is_some() {
                        return Err(self.repeated(&property.name));
                    }
                    self.place.enter(Some((self.table, &property.name)));
                    *slot = Some(map.next_value_seed(Reading(ValueOf {
                        place: self.place,
                        property,
                    }))?);
                    self.place.enter(None);
                    next = index + 1;
                }
            }
        }
        let values = found
            .into_iter()
            .zip(&self.table.properties)
            .map(|(value, property)| match value {
                Some(value) => Ok(value),
                None => self.absent(property),
            })
            .collect::<Result<_, A::Error>>()?;
        Ok(Data { values, id })
    }
}
