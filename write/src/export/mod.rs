//! Printing a state of a branch as JSONL (`docs/format/tables-and-schema.md` 8.1). Reads only.
//!
//! Tables by table key, rows by id, bytewise. Held in memory: the ids and row ids of one table, and one chunk of rows.

mod blobs;
mod order;

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use graph::history::commit_id::BlockAddress;
use graph::history::schema_archive::read_commit_contract;
use graph::schema::vintage::{SystemRole, Vintage};
use graph::store::Root;
use graph::table::open_pin;
use graph::view::{At, snapshot};
use graph::{Error, manifest};
use lance::Dataset;
use records::{LineWriter, Property, TableType, Types};

use crate::error::{Result, WriteError};

/// Rows formatted at once.
const CHUNK_ROWS: usize = 1_024;

/// What was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Tables with a pin.
    pub tables: u64,
    /// Lines.
    pub rows: u64,
}

/// Print the rows of `branch` (`None` = main) at `at` to `out`, one line each.
pub async fn export(
    root: &Root,
    branch: Option<&str>,
    at: &At,
    out: &mut (dyn Write + Send),
    on_rows: &(dyn Fn(u64) + Send + Sync),
) -> Result<Exported> {
    let shown = snapshot(root, branch, at).await?;
    let contract = read_commit_contract(root, &shown.head)
        .await?
        .ok_or_else(|| {
            Error::internal(format!(
                "commit {} names no schema contract",
                shown.head.graph_commit_id
            ))
        })?;
    let types = Types::of(&contract.validate()?)?;
    // Commits from before an upgrade of stamp 8 or 9 have the contract that was accepted at the upgrade.
    let older = BlockAddress::parse(&shown.head.graph_commit_id)?.is_none();
    let mut exported = Exported { tables: 0, rows: 0 };
    for row in manifest::state::visible(&shown.tables) {
        let Some(pin) = row.state.pin() else { continue };
        let declared = types
            .by_key(&row.table_key)
            .map(|index| &types.tables()[index])
            .ok_or_else(|| {
                Error::refused(format!(
                    "{} is part of this state, but the schema that is recorded for commit {} does not declare it: states \
                     from before an upgrade of stamp 8 or 9 have the schema that was accepted at the upgrade. Its rows \
                     are version {} of the Lance dataset {}",
                    row.table_key, shown.head.graph_commit_id, pin.table_version, row.table_path
                ))
            })?;
        exported.tables += 1;
        let before = exported.rows;
        let dataset = open_pin(root, row, pin).await?.dataset;
        if let Some(property) = missing(&dataset, declared)
            && !older
        {
            return Err(Error::internal(format!(
                "{} at commit {}: the rows have no column '{}', which the schema of that commit declares; run omnigraph \
                 verify --deep",
                row.table_key, shown.head.graph_commit_id, property.name
            ))
            .into());
        }
        let rows = table(dataset, &types, declared, out, &|n| on_rows(before + n)).await?;
        exported.rows += rows;
    }
    out.flush().map_err(closed)?;
    Ok(exported)
}

fn closed(e: std::io::Error) -> WriteError {
    Error::storage("cannot write the export", e).into()
}

fn stored(dataset: &Dataset, property: &Property) -> bool {
    dataset.schema().field(&property.name).is_some()
}

/// The first declared property that an image does not have.
fn missing<'t>(dataset: &Dataset, declared: &'t TableType) -> Option<&'t Property> {
    declared.properties.iter().find(|p| !stored(dataset, p))
}

async fn table(
    dataset: Arc<Dataset>,
    types: &Types,
    declared: &TableType,
    out: &mut (dyn Write + Send),
    on_rows: &(dyn Fn(u64) + Send + Sync),
) -> Result<u64> {
    let image = image_vintage(&dataset, declared)?;
    let columns = columns(&dataset, declared, image)?;
    let order = order::read(dataset.clone(), image.column(SystemRole::Id)).await?;
    let blob_columns: Vec<&str> = columns
        .iter()
        .filter(|c| {
            dataset
                .schema()
                .field(c)
                .is_some_and(lance_core::datatypes::Field::is_blob)
        })
        .map(String::as_str)
        .collect();
    let writer = LineWriter::of_image(types, declared, |p| stored(&dataset, p));
    let mut lines = Vec::new();
    let mut printed = 0;
    for chunk in order.chunks(CHUNK_ROWS) {
        let batch = order::take(&dataset, chunk, &columns).await?;
        let batch = respelled(batch, image, types.vintage())?;
        let mut cells = Vec::with_capacity(blob_columns.len());
        for column in &blob_columns {
            cells.push(blobs::read(&dataset, &batch, column, chunk).await?);
        }
        for index in 0..batch.num_rows() {
            let row_cells: Vec<_> = cells
                .iter()
                .map(|c| c[index].as_ref().map(blobs::Cell::shown))
                .collect();
            lines.clear();
            writer.line(&batch, index, &row_cells, &mut lines)?;
            out.write_all(&lines).map_err(closed)?;
        }
        printed += batch.num_rows() as u64;
        on_rows(printed);
    }
    Ok(printed)
}

/// How an image spells its system columns: the id column is the key, and old images of a graph can differ from its
/// schema (`docs/format/tables-and-schema.md` 2.1).
fn image_vintage(dataset: &Dataset, declared: &TableType) -> Result<Vintage> {
    let fields: Vec<&str> = dataset
        .schema()
        .fields
        .iter()
        .filter(|f| f.is_unenforced_primary_key())
        .map(|f| f.name.as_str())
        .collect();
    [Vintage::Current, Vintage::Legacy]
        .into_iter()
        .find(|v| fields == [v.column(SystemRole::Id)])
        .ok_or_else(|| {
            Error::internal(format!(
                "{}: exactly one of the columns id and __id must be the primary key, found {fields:?}",
                declared.table_key
            ))
            .into()
        })
}

/// The stored columns that a line shows. A property that the image does not have yet is absent from its lines.
fn columns(dataset: &Dataset, declared: &TableType, image: Vintage) -> Result<Vec<String>> {
    let roles = match declared.endpoints {
        None => &[SystemRole::Id][..],
        Some(_) => &SystemRole::ALL[..],
    };
    let mut columns: Vec<String> = roles.iter().map(|r| image.column(*r).to_string()).collect();
    for property in &declared.properties {
        if stored(dataset, property) {
            columns.push(property.name.clone());
        }
    }
    Ok(columns)
}

/// The system columns under the names of the schema's vintage.
fn respelled(batch: RecordBatch, image: Vintage, wanted: Vintage) -> Result<RecordBatch> {
    if image == wanted {
        return Ok(batch);
    }
    let schema = batch.schema();
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| {
            let role = SystemRole::ALL
                .into_iter()
                .find(|r| image.column(*r) == field.name());
            match role {
                Some(role) => Arc::new(field.as_ref().clone().with_name(wanted.column(role))),
                None => field.clone(),
            }
        })
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())
        .map_err(|e| Error::internal(format!("columns cannot be renamed: {e}")).into())
}
