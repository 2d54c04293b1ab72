//! The one batch a version is written as, and rows out of scanned batches
//! (`docs/format/manifest-v14.md` 2).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Schema};

use super::packed;
use super::row::LogicalRow;
use crate::error::{Error, Result};

/// Field metadata that marks the primary key. An Overwrite that omits it loses it silently.
pub const PRIMARY_KEY_META: &str = "lance-schema:unenforced-primary-key";
/// Field metadata that makes `record` one physical column.
pub const PACKED_META: &str = "lance-encoding:packed";

/// The stored schema with the given schema-level metadata.
pub fn schema(metadata: HashMap<String, String>) -> Schema {
    let marked = |field: ArrowField, key: &str| {
        field.with_metadata(HashMap::from([(key.to_string(), "true".to_string())]))
    };
    Schema::new_with_metadata(
        vec![
            marked(
                ArrowField::new("object_id", DataType::Utf8, false),
                PRIMARY_KEY_META,
            ),
            ArrowField::new("object_type", DataType::Utf8, false),
            marked(
                ArrowField::new("record", DataType::Struct(packed::arrow_fields()), false),
                PACKED_META,
            ),
            ArrowField::new("schema_source", DataType::LargeUtf8, true),
            ArrowField::new("schema_ir", DataType::LargeUtf8, true),
        ],
        metadata,
    )
}

/// Encode rows as one batch whose schema carries `metadata`.
pub fn encode(rows: &[LogicalRow], metadata: HashMap<String, String>) -> Result<RecordBatch> {
    let texts = |pick: fn(&LogicalRow) -> Option<&str>| -> ArrayRef {
        let mut builder = LargeStringBuilder::new();
        for row in rows {
            builder.append_option(pick(row));
        }
        Arc::new(builder.finish())
    };
    let records: Vec<&packed::Record> = rows.iter().map(|r| &r.record).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|r| r.object_id.as_str()),
        )),
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|r| r.object_type.as_str()),
        )),
        Arc::new(packed::encode(&records)?),
        texts(|r| r.schema_source.as_deref()),
        texts(|r| r.schema_ir.as_deref()),
    ];
    RecordBatch::try_new(Arc::new(schema(metadata)), columns)
        .map_err(|e| Error::internal(format!("cannot build the __manifest batch: {e}")))
}

/// Rows of one scanned batch; the content columns are null when the scan did not project them.
pub fn decode(batch: &RecordBatch) -> Result<Vec<LogicalRow>> {
    let column = |name: &str| {
        batch
            .column_by_name(name)
            .ok_or_else(|| Error::internal(format!("__manifest has no column {name}")))
    };
    let text = |name: &str| -> Result<&StringArray> {
        let array = column(name)?
            .as_string_opt::<i32>()
            .ok_or_else(|| Error::internal(format!("column {name} of __manifest is not Utf8")))?;
        if array.null_count() > 0 {
            return Err(Error::internal(format!(
                "column {name} of __manifest holds a null"
            )));
        }
        Ok(array)
    };
    let content = |name: &str| -> Result<Option<&arrow_array::LargeStringArray>> {
        match batch.column_by_name(name) {
            None => Ok(None),
            Some(array) => array.as_string_opt::<i64>().map(Some).ok_or_else(|| {
                Error::internal(format!("column {name} of __manifest is not LargeUtf8"))
            }),
        }
    };
    let (ids, types) = (text("object_id")?, text("object_type")?);
    let record: &StructArray = column("record")?
        .as_struct_opt()
        .ok_or_else(|| Error::internal("column record of __manifest is not a struct"))?;
    let (sources, irs) = (content("schema_source")?, content("schema_ir")?);
    let value = |array: Option<&arrow_array::LargeStringArray>, i: usize| {
        array
            .filter(|a| a.is_valid(i))
            .map(|a| a.value(i).to_string())
    };
    Ok(packed::decode(record)?
        .into_iter()
        .enumerate()
        .map(|(i, record)| LogicalRow {
            object_id: ids.value(i).to_string(),
            object_type: types.value(i).to_string(),
            record,
            schema_source: value(sources, i),
            schema_ir: value(irs, i),
        })
        .collect())
}
