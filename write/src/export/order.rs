//! The rows of an image in the order of their ids.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_array::{Array as _, RecordBatch};
use futures::TryStreamExt as _;
use graph::Error;
use graph::store::guarded;
use lance::Dataset;
use lance::dataset::ProjectionRequest;

use crate::error::Result;

/// Lance's row ids, ordered by the text in `id_column`, bytewise.
pub(super) async fn read(dataset: Arc<Dataset>, id_column: &str) -> Result<Vec<u64>> {
    let object = dataset.uri().to_string();
    let (context, column) = (format!("cannot read {object}"), id_column.to_string());
    let mut rows = guarded(&object, async move {
        let lance = |e| Error::lance(context.clone(), e);
        let mut scanner = dataset.scan();
        scanner.project(&[column.as_str()]).map_err(lance)?;
        scanner.with_row_id();
        let mut stream = scanner.try_into_stream().await.map_err(lance)?;
        let mut rows: Vec<(Box<str>, u64)> = Vec::new();
        while let Some(batch) = stream.try_next().await.map_err(lance)? {
            let ids = batch
                .column_by_name(&column)
                .and_then(|c| c.as_string_opt::<i32>())
                .filter(|c| c.null_count() == 0);
            let row_ids = batch
                .column_by_name(lance_core::ROW_ID)
                .and_then(|c| c.as_primitive_opt::<UInt64Type>());
            let (Some(ids), Some(row_ids)) = (ids, row_ids) else {
                return Err(Error::internal(format!(
                    "{context}: column {column} is not a text without nulls"
                )));
            };
            let pairs = ids.iter().flatten().zip(row_ids.values().iter());
            rows.extend(pairs.map(|(id, row)| (Box::from(id), *row)));
        }
        Ok(rows)
    })
    .await?;
    rows.sort_unstable();
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The rows with these row ids, in their order.
pub(super) async fn take(
    dataset: &Arc<Dataset>,
    rows: &[u64],
    columns: &[String],
) -> Result<RecordBatch> {
    let object = dataset.uri().to_string();
    let context = format!("cannot read {object}");
    let (dataset, rows, columns) = (dataset.clone(), rows.to_vec(), columns.to_vec());
    let batch = guarded(&object, async move {
        let projection = ProjectionRequest::from_columns(&columns, dataset.schema());
        let batch = dataset
            .take_rows(&rows, projection)
            .await
            .map_err(|e| Error::lance(context.clone(), e))?;
        if batch.num_rows() != rows.len() {
            return Err(Error::internal(format!(
                "{context}: {} rows were asked for, {} came",
                rows.len(),
                batch.num_rows()
            )));
        }
        Ok(batch)
    })
    .await?;
    Ok(batch)
}
