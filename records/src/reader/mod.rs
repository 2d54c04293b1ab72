//! Records from JSONL text (`docs/format/tables-and-schema.md` 8.2).
//!
//! [`frame`] cuts the input into the texts of its objects, [`envelope`] reads the members around the
//! properties, [`data`] the properties, [`literal`] one value. A text is read in one pass without a tree;
//! when `data` comes before the type is known, a second pass reads `data` alone.

mod data;
mod envelope;
mod frame;
mod identity;
mod literal;
mod place;
mod property;
mod token;

#[cfg(test)]
mod tests;

use std::io::BufRead;

use serde::de::DeserializeSeed;
use ulid::Generator;

use self::data::{Data, DataOf};
use self::envelope::{DataOnly, Envelope, Whole};
use self::frame::{Frames, Start};
use self::place::Place;
use self::token::{Read, Reading};
use crate::error::RecordError;
use crate::record::Record;
use crate::types::Types;

/// Most bytes of one record's text: 32 MiB (8.2).
pub const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;

/// Reads a sequence of JSON objects separated by whitespace, compact or pretty-printed, as records of the
/// given types. Holds one record's text at a time, at most [`MAX_RECORD_BYTES`].
///
/// Stricter than a lenient load where the reference leaves a choice: unknown and repeated members, values of
/// another JSON type and unknown properties are refused; null elements of lists are accepted, because
/// an export prints them. After an error the iterator ends.
pub struct RecordReader<'t, R: BufRead> {
    frames: Frames<R>,
    types: &'t Types,
    ulids: Generator,
    ended: bool,
}

impl<'t, R: BufRead> RecordReader<'t, R> {
    /// A reader of `input`, which starts at line 1.
    pub fn new(input: R, types: &'t Types) -> Self {
        Self {
            frames: Frames::new(input),
            types,
            ulids: Generator::new(),
            ended: false,
        }
    }

    fn read(&mut self) -> Result<Option<Record>, RecordError> {
        let Some(start) = self.frames.advance()? else {
            return Ok(None);
        };
        let (envelope, data) = parse(self.types, self.frames.text(), start)?;
        let record = identity::record(self.types, envelope, data, start.line, &mut self.ulids);
        record.map(Some).map_err(|e| e.at(start.line))
    }
}

impl<R: BufRead> Iterator for RecordReader<'_, R> {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn parse(types: &Types, text: &[u8], start: Start) -> Result<(Envelope, Data), RecordError> {
    let place = Place::new(types);
    let mut envelope = pass(Whole(&place), text, &place, start)?;
    let Some(table) = envelope.table.and_then(|index| types.tables().get(index)) else {
        return Ok((envelope, Data::default()));
    };
    let data = match envelope.data.take() {
        None if envelope.data_skipped => pass(DataOnly(&place, table), text, &place, start)?,
        data => data,
    };
    let data = match data {
        Some(data) => data,
        None => pass(
            DataOf {
                place: &place,
                table,
            },
            b"{}",
            &place,
            start,
        )?,
    };
    Ok((envelope, data))
}

fn pass<'de, T: Read<'de>>(
    read: T,
    text: &'de [u8],
    place: &Place<'_>,
    start: Start,
) -> Result<T::Value, RecordError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    Reading(read)
        .deserialize(&mut json)
        .map_err(|error| place.explain(&error, start))
}
