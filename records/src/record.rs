//! One record, read and typed.

use crate::error::RecordError;
use crate::key;
use crate::types::TableType;
use crate::value::Value;

/// A node or an edge as one record of the input gives it, after every check that one record allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// 1-based line where its object starts.
    pub line: u64,
    /// Its type: an index into [`crate::Types::tables`].
    pub table: usize,
    /// The derived id of a keyed type, else the supplied one, else a new ULID.
    pub id: String,
    /// Whether the input named an id.
    pub supplied: bool,
    /// Legacy vintage, keyed node: the supplied id, when it spells the same key in another way (8.2).
    /// Edges of the same input that name it must be pointed at `id`.
    pub alias: Option<String>,
    /// Edges: the ids of the nodes it starts and ends at, as given.
    pub endpoints: Option<(String, String)>,
    /// One per property, in the order of [`TableType::properties`].
    pub values: Vec<Value>,
}

impl Record {
    /// Recompute the id of a keyed edge after its endpoints were respelled. Leaves everything else alone.
    ///
    /// Errors: a key member is null or a float that is not finite.
    pub fn rederive(&mut self, table: &TableType) -> Result<(), RecordError> {
        if self.endpoints.is_none() {
            return Ok(());
        }
        if let Some(id) = key::derive(table, self.endpoints.as_ref(), &self.values)
            .map_err(|e| e.of(&table.table_key).at(self.line))?
        {
            self.id = id;
        }
        Ok(())
    }
}
