//! The members around the properties of a record.

use graph::model::table::TableKind;
use serde::de::{Error, IgnoredAny, MapAccess};

use super::data::{Data, DataOf};
use super::place::Place;
use super::token::{Json, Name, Read, Reading, TextOf};
use crate::error::{RecordError, quoted};
use crate::types::TableType;

/// A record as it is written.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// The type, an index into the tables.
    pub(super) table: Option<usize>,
    pub(super) id: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) data: Option<Data>,
    /// `data` came before the type: it was skipped and has to be read again.
    pub(super) data_skipped: bool,
}

/// Reads a whole record.
pub(super) struct Whole<'a, 't>(pub(super) &'a Place<'t>);

/// Reads `data` alone, the type being known; everything else was judged already.
pub(super) struct DataOnly<'a, 't>(pub(super) &'a Place<'t>, pub(super) &'t TableType);

impl<'t> Whole<'_, 't> {
    fn table(&self, envelope: &Envelope) -> Option<&'t TableType> {
        self.0.types.tables().get(envelope.table?)
    }

    fn refuse<T, E: Error>(&self, envelope: &Envelope, message: String) -> Result<T, E> {
        let error = RecordError::new(message);
        Err(self.0.refuse(match self.table(envelope) {
            Some(table) => error.of(&table.table_key),
            None => error,
        }))
    }

    fn text<'de, A: MapAccess<'de>>(
        &self,
        envelope: &Envelope,
        slot: &Option<String>,
        name: &'static str,
        map: &mut A,
    ) -> Result<Option<String>, A::Error> {
        if slot.is_some() {
            return self.repeated(envelope, name);
        }
        let text = TextOf {
            place: self.0,
            table: self.table(envelope),
            name,
        };
        map.next_value_seed(Reading(text)).map(Some)
    }

    fn repeated<T, E: Error>(&self, envelope: &Envelope, name: &str) -> Result<T, E> {
        self.refuse(
            envelope,
            format!("\"{name}\" is given twice in one record: keep one"),
        )
    }

    fn kind<'de, A: MapAccess<'de>>(
        &self,
        envelope: &Envelope,
        kind: TableKind,
        map: &mut A,
    ) -> Result<Option<usize>, A::Error> {
        if envelope.table.is_some() {
            return self.refuse(
                envelope,
                "the type is given twice, expected exactly one of \"type\" (a node) and \"edge\""
                    .to_string(),
            );
        }
        let (name, what) = match kind {
            TableKind::Node => ("type", "node"),
            TableKind::Edge => ("edge", "edge"),
        };
        let text = map.next_value_seed(Reading(TextOf {
            place: self.0,
            table: None,
            name,
        }))?;
        let types = self.0.types;
        let found = match kind {
            TableKind::Node => types.node(&text),
            TableKind::Edge => types.edge(&text),
        };
        if found.is_some() {
            return Ok(found);
        }
        let advice = match kind {
            TableKind::Node if types.edge(&text).is_some() => {
                ". An edge type has this name: write \"edge\" instead of \"type\" if it is meant"
            }
            TableKind::Edge if types.node(&text).is_some() => {
                ". A node type has this name: write \"type\" instead of \"edge\" if it is meant"
            }
            _ => "",
        };
        let known = types.known(kind);
        let text = quoted(&text);
        self.refuse(
            envelope,
            format!(
                "no {what} type is called {text}, expected one of the schema's ({known}){advice}"
            ),
        )
    }
}

impl<'de> Read<'de> for Whole<'_, '_> {
    type Value = Envelope;

    fn token<E: Error>(self, json: Json<'_>) -> Result<Envelope, E> {
        self.refuse(
            &Envelope::default(),
            format!("found {json}, expected an object"),
        )
    }

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope, A::Error> {
        let mut read = Envelope::default();
        while let Some(name) = map.next_key_seed(Name)? {
            match name.as_ref() {
                "type" => read.table = self.kind(&read, TableKind::Node, &mut map)?,
                "edge" => read.table = self.kind(&read, TableKind::Edge, &mut map)?,
                "id" => read.id = self.text(&read, &read.id, "id", &mut map)?,
                "from" => read.from = self.text(&read, &read.from, "from", &mut map)?,
                "to" => read.to = self.text(&read, &read.to, "to", &mut map)?,
                "data" if read.data.is_some() || read.data_skipped => {
                    return self.repeated(&read, "data");
                }
                "data" => match self.table(&read) {
                    Some(table) => {
                        let place = self.0;
                        read.data = Some(map.next_value_seed(Reading(DataOf { place, table }))?);
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                        read.data_skipped = true;
                    }
                },
                other => {
                    return self.refuse(
                        &read,
                        format!(
                            "{} is no member of a record, expected type or edge, id, from, to, data: \
                             properties belong inside \"data\"",
                            quoted(other)
                        ),
                    );
                }
            }
        }
        if read.table.is_none() {
            let message = "found neither \"type\" nor \"edge\", expected exactly one of them";
            return self.refuse(&read, message.to_string());
        }
        Ok(read)
    }
}

impl<'de> Read<'de> for DataOnly<'_, '_> {
    type Value = Option<Data>;

    fn token<E: Error>(self, _json: Json<'_>) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut data = None;
        while let Some(name) = map.next_key_seed(Name)? {
            if name == "data" {
                let (place, table) = (self.0, self.1);
                data = Some(map.next_value_seed(Reading(DataOf { place, table }))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(data)
    }
}
