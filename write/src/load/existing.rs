//! What of the stored rows a load has to look at. Reads only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch, StringArray};
use futures::TryStreamExt as _;
use graph::schema::vintage::SystemRole;
use graph::store::{Root, guarded};
use graph::table::open_pin;
use graph::{Error, Result as GraphResult};
use lance::Dataset;
use records::{Member, TableType, Types, unique_texts};

use crate::capture::Capture;
use crate::error::Result;

/// Ids that are asked for by a filter; more are found by reading the column.
const FILTERED_IDS: usize = 512;
/// Batches on their way from the scan to its reader.
const BATCHES_AHEAD: usize = 2;

/// Open the image a capture pins for a table.
pub(super) async fn open(
    root: &Root,
    capture: &Capture,
    table: &TableType,
) -> Result<Arc<Dataset>> {
    let (row, pin) = capture.table(&table.table_key)?;
    Ok(open_pin(root, row, pin).await?.dataset)
}

/// Hand the batches of a scan to `each`, one after the other.
pub(super) async fn scan(
    dataset: Arc<Dataset>,
    columns: Vec<String>,
    filter: Option<String>,
    mut each: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let object = dataset.uri().to_string();
    let context = format!("cannot read {object}");
    let (sender, mut receiver) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
    let scanned = guarded(&object, async move {
        let stream = async {
            let mut scanner = dataset.scan();
            scanner.project(&columns)?;
            // An index is derived data without a checksum: what it misses would be loaded a second time.
            scanner.use_scalar_index(false);
            if let Some(filter) = &filter {
                scanner.filter(filter)?;
            }
            scanner.try_into_stream().await
        };
        let mut stream = stream.await.map_err(|e| Error::lance(context.clone(), e))?;
        while let Some(batch) = stream
            .try_next()
            .await
            .map_err(|e| Error::lance(context.clone(), e))?
        {
            // The reader went away with an error of its own.
            if sender.send(batch).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    let drained = async move {
        while let Some(batch) = receiver.recv().await {
            each(&batch)?;
        }
        Result::<()>::Ok(())
    };
    let (scanned, drained) = tokio::join!(scanned, drained);
    drained?;
    Ok(scanned?)
}

/// A text column of a batch.
pub(super) fn texts<'b>(batch: &'b RecordBatch, column: &str) -> GraphResult<&'b StringArray> {
    batch
        .column_by_name(column)
        .and_then(|c| c.as_string_opt::<i32>())
        .filter(|c| c.null_count() == 0)
        .ok_or_else(|| Error::internal(format!("column {column} is not a text without nulls")))
}

/// `column IN (…)`, for few enough ids.
fn id_filter<'i>(column: &str, ids: impl ExactSizeIterator<Item = &'i str>) -> Option<String> {
    if ids.len() > FILTERED_IDS {
        return None;
    }
    let list: Vec<String> = ids
        .map(|id| format!("'{}'", id.replace('\'', "''")))
        .collect();
    Some(format!("`{column}` IN ({})", list.join(", ")))
}

/// The ids of `wanted` that a table holds.
pub(super) async fn ids(
    dataset: Arc<Dataset>,
    types: &Types,
    wanted: &HashSet<&str>,
) -> Result<HashSet<String>> {
    if wanted.is_empty() || rows_known_absent(&dataset) {
        return Ok(HashSet::new());
    }
    let column = types.vintage().column(SystemRole::Id);
    let filter = id_filter(column, wanted.iter().copied());
    let mut found = HashSet::new();
    scan(dataset, vec![column.to_string()], filter, |batch| {
        let ids = texts(batch, column)?;
        found.extend(
            ids.iter()
                .flatten()
                .filter(|id| wanted.contains(id))
                .map(str::to_string),
        );
        Ok(())
    })
    .await?;
    Ok(found)
}

fn rows_known_absent(dataset: &Dataset) -> bool {
    dataset.manifest().fragments.is_empty()
}

/// What the stored rows of one table mean to the rows that come.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Which of the coming ids exist.
    pub ids: HashSet<String>,
    /// Edges that stay, by source.
    pub sources: HashMap<String, u64>,
    /// Sources of the edges that are replaced.
    pub moved: HashSet<String>,
    /// Per unique constraint, the coming texts that a row that stays has, with its id.
    pub unique: Vec<HashMap<String, String>>,
}

/// Read the stored rows once. `coming` are the ids that come, `unique` the texts they bring per constraint;
/// `count_sources` asks for the edges by source.
pub(super) async fn held(
    dataset: Arc<Dataset>,
    types: &Types,
    table: &TableType,
    coming: &HashSet<&str>,
    unique: &[HashSet<&str>],
    count_sources: bool,
) -> Result<Held> {
    let mut held = Held {
        unique: vec![HashMap::new(); unique.len()],
        ..Held::default()
    };
    if rows_known_absent(&dataset) {
        return Ok(held);
    }
    if unique.iter().all(HashSet::is_empty) && !count_sources {
        held.ids = ids(dataset, types, coming).await?;
        return Ok(held);
    }
    let column = |role: SystemRole| types.vintage().column(role);
    let mut columns = vec![column(SystemRole::Id).to_string()];
    if count_sources {
        columns.push(column(SystemRole::Src).to_string());
    }
    for member in table.unique.iter().flatten() {
        columns.push(match member {
            Member::System(role) => column(*role).to_string(),
            Member::Property(index) => table.properties[*index].name.clone(),
        });
    }
    columns.sort();
    columns.dedup();
    scan(dataset, columns, None, |batch| {
        let row_ids = texts(batch, column(SystemRole::Id))?;
        let sources = match count_sources {
            true => Some(texts(batch, column(SystemRole::Src))?),
            false => None,
        };
        let stored: Vec<Vec<Option<String>>> = table
            .unique
            .iter()
            .map(|constraint| unique_texts(types, table, constraint, batch))
            .collect::<GraphResult<_>>()?;
        for row in 0..batch.num_rows() {
            let id = row_ids.value(row);
            let replaced = coming.contains(id);
            if replaced {
                held.ids.insert(id.to_string());
            }
            if let Some(sources) = sources {
                let source = sources.value(row);
                if replaced {
                    held.moved.insert(source.to_string());
                } else {
                    *held.sources.entry(source.to_string()).or_default() += 1;
                }
            }
            if replaced {
                continue;
            }
            for (index, texts) in stored.iter().enumerate() {
                if let Some(text) = &texts[row]
                    && unique[index].contains(text.as_str())
                {
                    held.unique[index].insert(text.clone(), id.to_string());
                }
            }
        }
        Ok(())
    })
    .await?;
    Ok(held)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        let filter = id_filter("__id", ["a", "it's"].into_iter()).unwrap();
        assert_eq!(filter, "`__id` IN ('a', 'it''s')");
        let many = vec!["x"; FILTERED_IDS + 1];
        assert_eq!(id_filter("__id", many.into_iter()), None);
    }
}
