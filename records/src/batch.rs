//! Records of one table as an Arrow batch.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;

use crate::column::{Column, accepts, estimate};
use crate::error::RecordError;
use crate::record::Record;
use crate::types::{Property, TableType};

/// Most bytes a batch may hold: the offsets of its text and list columns have 31 bits.
const MAX_BATCH_BYTES: usize = i32::MAX as usize;

/// Collects records of one table into a batch of exactly [`TableType::schema`]
/// (`docs/format/tables-and-schema.md` 2.2 to 2.5): blobs as `Struct<data, uri>`, vectors as fixed-size lists.
pub struct BatchBuilder {
    table_key: String,
    schema: Arc<Schema>,
    properties: Vec<Property>,
    /// The id and, on edges, both endpoints.
    system: Vec<Column>,
    columns: Vec<Column>,
    lines: Vec<u64>,
    bytes: usize,
}

impl BatchBuilder {
    /// An empty builder for records of `table`.
    pub fn new(table: &TableType) -> Self {
        let system = if table.endpoints.is_some() { 3 } else { 1 };
        Self {
            table_key: table.table_key.clone(),
            schema: table.schema.clone(),
            system: (0..system).map(|_| Column::text()).collect(),
            columns: table
                .properties
                .iter()
                .map(|property| Column::of(&property.prop_type))
                .collect(),
            properties: table.properties.clone(),
            lines: Vec::new(),
            bytes: 0,
        }
    }

    /// Append a record of this table. The record's table index is not looked at.
    ///
    /// Errors, which leave the builder as it was: endpoints on a node or none on an edge, another number of
    /// values than properties, a value of another type, null in a property that is not nullable, or a
    /// batch that would pass 2 GiB.
    pub fn push(&mut self, record: Record) -> Result<(), RecordError> {
        let Record {
            line,
            id,
            endpoints,
            values,
            ..
        } = record;
        let ids = match endpoints {
            None => vec![id],
            Some((src, dst)) => vec![id, src, dst],
        };
        let bytes = self
            .judge(&ids, &values)
            .map_err(|e| e.of(&self.table_key).at(line))?;
        for (column, id) in self.system.iter_mut().zip(&ids) {
            column.append_text(id);
        }
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.append(value);
        }
        self.lines.push(line);
        self.bytes = bytes;
        Ok(())
    }

    /// The bytes of the batch with this row in it.
    fn judge(&self, ids: &[String], values: &[crate::value::Value]) -> Result<usize, RecordError> {
        if ids.len() != self.system.len() || values.len() != self.properties.len() {
            return Err(RecordError::new(format!(
                "a row of {} ids and {} values, expected {} and {}",
                ids.len(),
                values.len(),
                self.system.len(),
                self.properties.len()
            )));
        }
        let mut bytes = ids.iter().fold(self.bytes, |sum, id| {
            sum.saturating_add(id.len()).saturating_add(4)
        });
        for (property, value) in self.properties.iter().zip(values) {
            if !accepts(&property.prop_type, value) {
                let error = RecordError::new(format!(
                    "found {}, expected {}",
                    value.kind(),
                    property.prop_type
                ));
                return Err(error.on(&property.name));
            }
            bytes = bytes.saturating_add(estimate(&property.prop_type, value));
        }
        if bytes > MAX_BATCH_BYTES {
            return Err(RecordError::new(format!(
                "the batch would take {bytes} bytes, above the limit of {MAX_BATCH_BYTES}"
            )));
        }
        Ok(bytes)
    }

    /// Records pushed since the last [`BatchBuilder::finish`].
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// About how many bytes the Arrow batch takes; never below the bytes of its texts and blobs.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The line of each row so far.
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// The batch of what was pushed, which may be no row, and the line of each row. Empties the builder.
    ///
    /// Errors: Arrow refuses the columns, which means that this builder is wrong.
    pub fn finish(&mut self) -> Result<(RecordBatch, Vec<u64>), RecordError> {
        self.bytes = 0;
        let lines = std::mem::take(&mut self.lines);
        let columns = self.system.iter_mut().chain(&mut self.columns);
        let batch = columns
            .zip(self.schema.fields())
            .map(|(column, field)| column.finish(field))
            .collect::<Result<Vec<ArrayRef>, _>>()
            .and_then(|columns| RecordBatch::try_new(self.schema.clone(), columns))
            .map_err(|e| {
                RecordError::new(format!("cannot build a batch: {e}")).of(&self.table_key)
            })?;
        Ok((batch, lines))
    }
}
