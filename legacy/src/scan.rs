//! Rows out of a real Lance scan: deletions applied, any number of fragments, one batch of 1024 rows in
//! memory at a time (`docs/format/legacy-manifest.md` 1.1, 2).

use arrow_array::{Array, LargeStringArray, RecordBatch, StringArray, StructArray, UInt64Array};
use futures::StreamExt as _;
use graph::store::{ManifestVersion, guarded};
use graph::{Error, Result};
use lance::dataset::scanner::MaterializationStyle;
use lance_core::{ROW_ADDR, ROW_ID};
use lance_table::format::Fragment;

use crate::packed::Packed;
use crate::row::{LogicalRow, Row};
use crate::shape::Shape;

/// Rows a scan decodes at once.
const BATCH_ROWS: usize = 1024;

/// What one read takes from a version.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// Columns of the flat shape. The packed `record` is always read whole: one child alone cannot be
    /// projected.
    pub flat: &'static [&'static str],
    /// Content columns of stamp 13; the other shapes have none.
    pub content: &'static [&'static str],
    /// SQL over `object_type`.
    pub filter: Option<&'static str>,
    /// Only these fragments, telling rows apart by fragment; all of them when `None`.
    pub fragments: Option<Vec<Fragment>>,
}

impl Scan {
    fn columns(&self, shape: Shape) -> Vec<&'static str> {
        let packed = ["object_id", "object_type", "record"];
        match shape {
            Shape::Flat => self.flat.to_vec(),
            Shape::Packed12 => packed.to_vec(),
            Shape::Packed13 => [&packed, self.content].concat(),
        }
    }
}

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Id of its fragment; 0 unless the scan asks for fragments.
    pub fragment: u64,
    /// Stable row id; meaningless in a version without such ids.
    pub row_id: u64,
}

/// Fold every row of a version, in no particular order, into `state`; `step` also gets its place. A row that cannot be decoded or that `step`
/// refuses is [`Error::Internal`] naming its key and the version.
pub(crate) async fn fold_rows<S, F>(
    version: &ManifestVersion,
    shape: Shape,
    scan: Scan,
    state: S,
    step: F,
) -> Result<S>
where
    S: Send + 'static,
    F: Fn(&mut S, Place, Row) -> std::result::Result<(), String> + Send + 'static,
{
    let object = version.describe();
    let (context, dataset) = (object.clone(), version.dataset.clone());
    guarded(&object, async move {
        let failed = |e: lance::Error| Error::lance(format!("cannot scan {context}"), e);
        let mut scanner = dataset.scan();
        scanner.project(&scan.columns(shape)).map_err(failed)?;
        scanner.batch_size(BATCH_ROWS);
        scanner.with_row_id();
        if let Some(filter) = scan.filter {
            scanner.filter(filter).map_err(failed)?;
            // The default style takes numbers early and texts late, which tears a packed page apart.
            if shape != Shape::Flat {
                scanner.materialization_style(MaterializationStyle::AllEarly);
            }
        }
        if let Some(fragments) = scan.fragments {
            scanner.with_fragments(fragments);
            scanner.with_row_address();
        }
        let mut stream = scanner.try_into_stream().await.map_err(failed)?;
        let mut state = state;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(failed)?;
            let columns =
                Columns::of(&batch).map_err(|why| Error::internal(format!("{context}: {why}")))?;
            for at in 0..batch.num_rows() {
                columns
                    .row(at)
                    .and_then(|row| {
                        row.decode()
                            .and_then(|decoded| step(&mut state, columns.place(at), decoded))
                            .map_err(|why| format!("row '{}': {why}", row.object_id))
                    })
                    .map_err(|why| Error::internal(format!("{context}: {why}")))?;
            }
        }
        Ok(state)
    })
    .await
}

/// The columns of one batch; the ones a read does not project are `None`.
struct Columns<'a> {
    object_id: &'a StringArray,
    object_type: &'a StringArray,
    fields: Fields<'a>,
    schema_source: Option<&'a LargeStringArray>,
    schema_ir: Option<&'a LargeStringArray>,
    row_id: Option<&'a UInt64Array>,
    address: Option<&'a UInt64Array>,
}

/// The columns that the shapes store differently.
enum Fields<'a> {
    Flat(Flat<'a>),
    Packed(Packed<'a>),
}

/// One column per field.
struct Flat<'a> {
    table_key: &'a StringArray,
    location: Option<&'a StringArray>,
    metadata: Option<&'a StringArray>,
    stable_table_id: Option<&'a UInt64Array>,
    table_incarnation_id: Option<&'a UInt64Array>,
    table_version: Option<&'a UInt64Array>,
    table_branch: Option<&'a StringArray>,
    row_count: Option<&'a UInt64Array>,
}

fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &str,
) -> std::result::Result<Option<&'a A>, String> {
    let Some(array) = batch.column_by_name(name) else {
        return Ok(None);
    };
    match array.as_any().downcast_ref::<A>() {
        Some(typed) => Ok(Some(typed)),
        None => Err(format!(
            "the column {name} has the type {}, which is not the one of its format",
            array.data_type()
        )),
    }
}

fn required<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> std::result::Result<&'a StringArray, String> {
    column(batch, name)?.ok_or_else(|| format!("the column {name} is missing"))
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> std::result::Result<Self, String> {
        Ok(Self {
            object_id: required(batch, "object_id")?,
            object_type: required(batch, "object_type")?,
            fields: match column::<StructArray>(batch, "record")? {
                Some(record) => Fields::Packed(Packed::of(record)?),
                None => Fields::Flat(Flat::of(batch)?),
            },
            schema_source: column(batch, "schema_source")?,
            schema_ir: column(batch, "schema_ir")?,
            row_id: column(batch, ROW_ID)?,
            address: column(batch, ROW_ADDR)?,
        })
    }

    fn place(&self, at: usize) -> Place {
        let value = |array: Option<&UInt64Array>| array.map_or(0, |a| a.value(at));
        Place {
            // The upper half of an address.
            fragment: value(self.address) >> 32,
            row_id: value(self.row_id),
        }
    }

    fn row(&self, at: usize) -> std::result::Result<LogicalRow<'a>, String> {
        let content = |array: Option<&'a LargeStringArray>| {
            array.filter(|a| !a.is_null(at)).map(|a| a.value(at))
        };
        let object_id = text(self.object_id, at).ok_or("a row has a null object_id")?;
        let within = |why: String| format!("row '{object_id}': {why}");
        let row = LogicalRow {
            object_id,
            object_type: text(self.object_type, at)
                .ok_or_else(|| within("the column object_type is null".into()))?,
            schema_source: content(self.schema_source),
            schema_ir: content(self.schema_ir),
            ..LogicalRow::default()
        };
        match &self.fields {
            Fields::Flat(flat) => flat.fill(at, row),
            Fields::Packed(packed) => packed.fill(at, row),
        }
        .map_err(within)
    }
}

impl<'a> Flat<'a> {
    fn of(batch: &'a RecordBatch) -> std::result::Result<Self, String> {
        Ok(Self {
            table_key: required(batch, "table_key")?,
            location: column(batch, "location")?,
            metadata: column(batch, "metadata")?,
            stable_table_id: column(batch, "stable_table_id")?,
            table_incarnation_id: column(batch, "table_incarnation_id")?,
            table_version: column(batch, "table_version")?,
            table_branch: column(batch, "table_branch")?,
            row_count: column(batch, "row_count")?,
        })
    }

    fn fill(&self, at: usize, row: LogicalRow<'a>) -> std::result::Result<LogicalRow<'a>, String> {
        let number =
            |array: Option<&'a UInt64Array>| array.filter(|a| !a.is_null(at)).map(|a| a.value(at));
        let texts = |array: Option<&'a StringArray>| array.and_then(|a| text(a, at));
        Ok(LogicalRow {
            table_key: text(self.table_key, at).ok_or("the column table_key is null")?,
            location: texts(self.location),
            metadata: texts(self.metadata),
            stable_table_id: number(self.stable_table_id),
            table_incarnation_id: number(self.table_incarnation_id),
            table_version: number(self.table_version),
            table_branch: texts(self.table_branch),
            row_count: number(self.row_count),
            ..row
        })
    }
}

fn text(array: &StringArray, at: usize) -> Option<&str> {
    array.is_valid(at).then(|| array.value(at))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn batch(columns: Vec<(&str, Arc<dyn Array>)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .unwrap()
    }

    fn texts(values: &[Option<&str>]) -> Arc<dyn Array> {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn nulls_and_types_are_checked() {
        let whole = batch(vec![
            ("object_id", texts(&[Some("a"), None, Some("c")])),
            ("object_type", texts(&[Some("t"), Some("t"), Some("t")])),
            ("table_key", texts(&[Some(""), Some(""), None])),
            (
                "row_count",
                Arc::new(UInt64Array::from(vec![Some(1), None, None])),
            ),
        ]);
        let columns = Columns::of(&whole).unwrap();
        let row = columns.row(0).unwrap();
        assert_eq!(
            (row.object_id, row.row_count, row.metadata),
            ("a", Some(1), None)
        );
        assert!(columns.row(1).unwrap_err().contains("null object_id"));
        assert!(columns.row(2).unwrap_err().contains("table_key is null"));

        let wrong = batch(vec![
            ("object_id", texts(&[Some("a")])),
            ("object_type", texts(&[Some("t")])),
            ("table_key", texts(&[Some("")])),
            ("row_count", texts(&[Some("1")])),
        ]);
        assert!(
            Columns::of(&wrong)
                .err()
                .unwrap()
                .contains("row_count has the type")
        );
        let missing = batch(vec![("object_id", texts(&[Some("a")]))]);
        assert!(
            Columns::of(&missing)
                .err()
                .unwrap()
                .contains("object_type is missing")
        );
    }
}
