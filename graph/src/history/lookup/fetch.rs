//! Fetching one extent, with or without its tables (`docs/format/history.md` 9.1).

use std::future::Future;
use std::sync::Arc;

use super::HistoryReader;
use super::budget::{Budget, KEY_BYTES};
use super::cache::Held;
use crate::error::Result;
use crate::history::extent::{check_address, decode_lineage, decode_records};
use crate::history::limit_as_internal;
use crate::history::path::ExtentKey;
use crate::model::measure::{MAX_OBJECT_BYTES, TAIL_BYTES};
use crate::model::{Commit, HistoryRecord};

/// What a read yields a row: a commit, or a whole record.
pub(in crate::history) trait Row:
    Clone + PartialEq + Send + Sync + 'static
{
    /// Whether the tables are read, so that only wanted rows are kept.
    const WHOLE: bool;

    /// The row's commit.
    fn commit(&self) -> &Commit;

    /// The checked rows of an extent; `None` when it does not exist.
    fn fetch(
        reader: &HistoryReader,
        key: &ExtentKey,
        budget: &mut Budget,
    ) -> impl Future<Output = Result<Option<Arc<Vec<Self>>>>> + Send;
}

impl Row for Commit {
    const WHOLE: bool = false;

    fn commit(&self) -> &Commit {
        self
    }

    async fn fetch(
        reader: &HistoryReader,
        extent: &ExtentKey,
        budget: &mut Budget,
    ) -> Result<Option<Arc<Vec<Self>>>> {
        let key = extent.key();
        budget.charge(KEY_BYTES)?;
        let held = reader.state().cache.get(&key);
        match held {
            Some(Held::Lineage(rows)) => return Ok(Some(rows)),
            Some(Held::Records(rows)) => {
                return Ok(Some(Arc::new(
                    rows.iter().map(|r| r.commit.clone()).collect(),
                )));
            }
            Some(Held::Ids(_) | Held::Writers(_)) | None => {}
        }
        budget.admit_extent()?;
        let Some(tail) = reader.root.get_tail(&key, TAIL_BYTES).await? else {
            return Ok(None);
        };
        budget.charge(tail.bytes.len() as u64)?;
        let lineage = decode_lineage(&reader.root, &key, tail).await?;
        budget.charge(lineage.fetched)?;
        check_address(extent, &lineage.commits.iter().collect::<Vec<_>>())?;
        let rows = Arc::new(lineage.commits);
        reader
            .state()
            .cache
            .insert(key, Held::Lineage(rows.clone()));
        Ok(Some(rows))
    }
}

impl Row for HistoryRecord {
    const WHOLE: bool = true;

    fn commit(&self) -> &Commit {
        &self.commit
    }

    async fn fetch(
        reader: &HistoryReader,
        extent: &ExtentKey,
        budget: &mut Budget,
    ) -> Result<Option<Arc<Vec<Self>>>> {
        let key = extent.key();
        budget.charge(KEY_BYTES)?;
        if let Some(Held::Records(rows)) = reader.state().cache.get(&key) {
            return Ok(Some(rows));
        }
        budget.admit_extent()?;
        let found = reader
            .root
            .get(&key, MAX_OBJECT_BYTES)
            .await
            .map_err(limit_as_internal)?;
        let Some(bytes) = found else {
            return Ok(None);
        };
        budget.charge(bytes.len() as u64)?;
        let records = decode_records(&key, bytes).await?;
        check_address(
            extent,
            &records.iter().map(|r| &r.commit).collect::<Vec<_>>(),
        )?;
        let records = records
            .into_iter()
            .map(HistoryRecord::canonicalize)
            .collect::<Result<Vec<_>>>()
            .map_err(|e| e.within(&key))?;
        let rows = Arc::new(records);
        reader
            .state()
            .cache
            .insert(key, Held::Records(rows.clone()));
        Ok(Some(rows))
    }
}
