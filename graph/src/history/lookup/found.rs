//! Combining the rows several objects yield (`docs/format/history.md` 9.2, combining).

use std::collections::{BTreeMap, HashMap};

use ulid::Ulid;

use super::Row;
use crate::error::{Error, Result};
use crate::history::commit_id::BlockAddress;
use crate::history::path::ExtentKey;

/// Rows by id. Copies of one id must be equal and one slot holds one id.
#[derive(Debug)]
pub(in crate::history) struct Found<R> {
    rows: BTreeMap<String, R>,
    slots: HashMap<(Ulid, u16), Ulid>,
}

impl<R> Default for Found<R> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            slots: HashMap::new(),
        }
    }
}

impl<R: Row> Found<R> {
    /// Add a row read from `key`.
    pub(in crate::history) fn add(&mut self, key: &ExtentKey, row: &R) -> Result<()> {
        let id = &row.commit().graph_commit_id;
        if let Some(held) = self.rows.get(id) {
            if held == row {
                return Ok(());
            }
            return Err(Error::internal(format!(
                "{} holds another copy of commit {id} than the other object with it: copies differ",
                key.key()
            )));
        }
        if let Some(a) = BlockAddress::parse(id)? {
            let nonce = *self.slots.entry((a.block, a.slot)).or_insert(a.nonce);
            if nonce != a.nonce {
                return Err(Error::internal(format!(
                    "{} holds commit {id}, another object holds {} in the same slot",
                    key.key(),
                    BlockAddress { nonce, ..a }
                )));
            }
        }
        self.rows.insert(id.clone(), row.clone());
        Ok(())
    }

    /// The rows by id.
    pub(in crate::history) fn into_rows(self) -> BTreeMap<String, R> {
        self.rows
    }
}
