//! What an overwrite remembers of the rows that went by: 16 bytes for each id and each unique text.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, RandomState};

use arrow_array::RecordBatch;
use records::{Record, TableType, Types, unique_texts};

use super::keyed::members;
use super::references::bounded;
use crate::error::{Result, WriteError};

/// 128 bits of a text under two random keys: two texts of a graph do not meet by chance, and nobody can make them.
#[derive(Debug, Clone, Default)]
pub(super) struct Fingerprint(RandomState, RandomState);

impl Fingerprint {
    pub fn of(&self, text: &str) -> u128 {
        (u128::from(self.0.hash_one(text)) << 64) | u128::from(self.1.hash_one(text))
    }
}

/// The rows of one table.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// How many.
    pub rows: u64,
    /// Ids, with the line each stands on.
    ids: HashMap<u128, u64>,
    /// The same for each unique constraint.
    unique: Vec<HashMap<u128, u64>>,
    /// Edges by source, when the cardinality says anything.
    pub sources: HashMap<String, u64>,
    count_sources: bool,
}

impl Facts {
    pub fn of(table: &TableType) -> Self {
        Self {
            unique: vec![HashMap::new(); table.unique.len()],
            count_sources: bounded(table.cardinality).is_some(),
            ..Self::default()
        }
    }

    /// Note a record; its id must be new.
    pub fn add(&mut self, table: &TableType, record: &Record, prints: &Fingerprint) -> Result<()> {
        self.rows += 1;
        match self.ids.entry(prints.of(&record.id)) {
            Entry::Vacant(free) => {
                free.insert(record.line);
            }
            Entry::Occupied(held) => {
                return Err(WriteError::invalid(format!(
                    "line {}: {} has the id \"{}\" a second time; it stands on line {} already. Nothing was written",
                    record.line,
                    table.table_key,
                    record.id,
                    held.get()
                )));
            }
        }
        if self.count_sources
            && let Some((source, _)) = &record.endpoints
        {
            *self.sources.entry(source.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// Note the unique texts of a batch; each must be new.
    pub fn add_batch(
        &mut self,
        types: &Types,
        table: &TableType,
        batch: &RecordBatch,
        lines: &[u64],
        prints: &Fingerprint,
    ) -> Result<()> {
        for (index, constraint) in table.unique.iter().enumerate() {
            let texts = unique_texts(types, table, constraint, batch)?;
            for (text, line) in texts.into_iter().zip(lines) {
                let Some(text) = text else { continue };
                if let Some(before) = self.unique[index].insert(prints.of(&text), *line) {
                    return Err(WriteError::invalid(format!(
                        "line {line}: {} must be unique in {}, and line {before} has {text} already. Nothing was \
                         written",
                        table.table_key,
                        members(types, table, index),
                    )));
                }
            }
        }
        Ok(())
    }

    /// Whether a row has this id.
    pub fn has(&self, print: u128) -> bool {
        self.ids.contains_key(&print)
    }
}
