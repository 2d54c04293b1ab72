//! The Arrow columns of an extent, and rows to columns and back (`docs/format/history.md` 3.1 to 3.3).
//!
//! `tables` comes first in the file so that the lineage columns lie next to the footer. Children of the
//! packed `record` are never null in Arrow: a logical null is a filler value with its bit set in
//! `present`.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::model::{
    Commit, ContractHead, HistoryRecord, Pin, PinMetadata, TableIdentity, TableRow, TableState,
};

/// The three columns in file order.
pub(super) const TABLES: &str = "tables";
/// Commit id column.
pub(super) const COMMIT_ID: &str = "graph_commit_id";
/// Packed commit column.
pub(super) const RECORD: &str = "record";

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn number(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::UInt64, nullable)
}

static TABLE_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        text("location", false),
        text("metadata", true),
        text("table_key", false),
        number("stable_table_id", false),
        number("table_incarnation_id", false),
        number("table_version", true),
        text("table_branch", true),
        number("row_count", true),
        number("manifest_version", true),
        number("dropped_at", true),
    ])
});

static RECORD_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        text("graph_branch", false),
        text("native_branch", false),
        number("graph_manifest_version", false),
        number("generation", false),
        text("parent_commit_id", false),
        text("merged_parent_commit_id", false),
        text("actor_id", false),
        Field::new("created_at", DataType::Int64, false),
        text("schema_ir_hash", false),
        number("schema_identity_version", false),
        text("schema_identity_domain", false),
        text("schema_content_hash", false),
        Field::new("present", DataType::UInt32, false),
    ])
});

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let item = Field::new("item", DataType::Struct(TABLE_FIELDS.clone()), false);
    let record = Field::new(RECORD, DataType::Struct(RECORD_FIELDS.clone()), false)
        .with_metadata([("lance-encoding:packed".to_string(), "true".to_string())].into());
    Arc::new(Schema::new(vec![
        Field::new(TABLES, DataType::List(Arc::new(item)), false),
        text(COMMIT_ID, false),
        record,
    ]))
});

/// The schema of every extent, columns in file order.
pub(super) fn schema() -> &'static SchemaRef {
    &SCHEMA
}

/// Whether two types agree in everything but field metadata.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => same_fields(a, b),
        (DataType::List(a), DataType::List(b)) => same_field(a, b),
        _ => a == b,
    }
}

fn same_field(a: &Field, b: &Field) -> bool {
    a.name() == b.name()
        && a.is_nullable() == b.is_nullable()
        && same_type(a.data_type(), b.data_type())
}

fn same_fields(a: &Fields, b: &Fields) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_field(a, b))
}

/// Require the schema of a stored file to be [`schema`], field metadata aside.
pub(super) fn check_schema(object: &str, stored: &Schema) -> Result<()> {
    if same_fields(stored.fields(), SCHEMA.fields()) {
        return Ok(());
    }
    let columns: Vec<String> = stored
        .fields()
        .iter()
        .map(|f| {
            format!(
                "{} {}{}",
                f.name(),
                f.data_type(),
                if f.is_nullable() { "?" } else { "" }
            )
        })
        .collect();
    Err(Error::internal(format!(
        "{object} does not have the columns of an extent but: {}",
        columns.join(", ")
    )))
}

fn strings<'a>(values: impl Iterator<Item = Option<&'a str>> + Clone) -> ArrayRef {
    // Sized first: a grown builder keeps up to twice the bytes, which would count against the fit test.
    let (mut count, mut bytes) = (0, 0);
    for value in values.clone() {
        count += 1;
        bytes += value.map_or(0, str::len);
    }
    let mut builder = StringBuilder::with_capacity(count, bytes);
    values.for_each(|v| builder.append_option(v));
    Arc::new(builder.finish())
}

fn numbers(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(UInt64Array::from(values.collect::<Vec<_>>()))
}

fn batch_error(e: arrow_schema::ArrowError) -> Error {
    Error::internal(format!("history records do not form a batch: {e}"))
}

/// Build the one batch of an extent. The records are taken as they are; canonical order is the
/// caller's.
pub(super) fn to_batch(records: &[&HistoryRecord]) -> Result<RecordBatch> {
    for record in records {
        record.commit.check()?;
    }
    let ids = strings(
        records
            .iter()
            .map(|r| Some(r.commit.graph_commit_id.as_str())),
    );
    let columns: Vec<ArrayRef> = vec![tables_column(records)?, ids, record_column(records)?];
    RecordBatch::try_new(SCHEMA.clone(), columns).map_err(batch_error)
}

fn record_column(records: &[&HistoryRecord]) -> Result<ArrayRef> {
    fn filled<'a>(
        records: &'a [&'a HistoryRecord],
        get: impl Fn(&'a Commit) -> Option<&'a str> + Clone + 'a,
    ) -> ArrayRef {
        strings(
            records
                .iter()
                .map(move |r| Some(get(&r.commit).unwrap_or_default())),
        )
    }
    let plain = |get: fn(&Commit) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(
            records.iter().map(|r| get(&r.commit)),
        ))
    };
    let created: ArrayRef = Arc::new(Int64Array::from_iter_values(
        records.iter().map(|r| r.commit.created_at),
    ));
    let present: ArrayRef = Arc::new(UInt32Array::from_iter_values(
        records.iter().map(|r| null_mask(&r.commit)),
    ));
    let children = vec![
        filled(records, |c| c.graph_branch.as_deref()),
        filled(records, |c| c.native_branch.as_deref()),
        plain(|c| c.graph_manifest_version),
        plain(|c| c.generation),
        filled(records, |c| c.parent_commit_id.as_deref()),
        filled(records, |c| c.merged_parent_commit_id.as_deref()),
        filled(records, |c| c.actor_id.as_deref()),
        created,
        filled(records, |c| {
            c.schema_contract
                .as_ref()
                .map(|h| h.schema_ir_hash.as_str())
        }),
        plain(|c| {
            c.schema_contract
                .as_ref()
                .map_or(0, |h| u64::from(h.schema_identity_version))
        }),
        filled(records, |c| {
            c.schema_contract
                .as_ref()
                .map(|h| h.schema_identity_domain.as_str())
        }),
        filled(records, |c| c.schema_content_hash.as_deref()),
        present,
    ];
    let array = StructArray::try_new(RECORD_FIELDS.clone(), children, None).map_err(batch_error)?;
    Ok(Arc::new(array))
}

/// `present`: bit *i* set means that field *i* of 3.2 is null.
pub(super) fn null_mask(commit: &Commit) -> u32 {
    let no_contract = commit.schema_contract.is_none();
    [
        (0, commit.graph_branch.is_none()),
        (1, commit.native_branch.is_none()),
        (4, commit.parent_commit_id.is_none()),
        (5, commit.merged_parent_commit_id.is_none()),
        (6, commit.actor_id.is_none()),
        (8, no_contract),
        (9, no_contract),
        (10, no_contract),
        (11, commit.schema_content_hash.is_none()),
    ]
    .iter()
    .filter(|(_, null)| *null)
    .fold(0, |mask, (bit, _)| mask | 1 << bit)
}

fn tables_column(records: &[&HistoryRecord]) -> Result<ArrayRef> {
    let rows: Vec<&TableRow> = records.iter().flat_map(|r| r.tables.iter()).collect();
    if i32::try_from(rows.len()).is_err() {
        return Err(Error::limit(
            "the number of table rows in one extent",
            i32::MAX as u64,
            rows.len() as u64,
        ));
    }
    let metadata: Vec<Option<String>> = rows
        .iter()
        .map(|r| r.state.pin().map(|p| p.metadata.to_json()))
        .collect();
    let pin = |get: fn(&Pin) -> u64| numbers(rows.iter().map(move |r| r.state.pin().map(get)));
    let children = vec![
        strings(rows.iter().map(|r| Some(r.table_path.as_str()))),
        strings(metadata.iter().map(Option::as_deref)),
        strings(rows.iter().map(|r| Some(r.table_key.as_str()))),
        numbers(rows.iter().map(|r| Some(r.identity.stable_table_id))),
        numbers(rows.iter().map(|r| Some(r.identity.table_incarnation_id))),
        numbers(rows.iter().map(|r| match &r.state {
            TableState::Registered => None,
            TableState::Pinned(pin) => Some(pin.table_version),
            TableState::Dropped { sealed_version, .. } => Some(*sealed_version),
        })),
        strings(
            rows.iter()
                .map(|r| r.state.pin().and_then(|p| p.table_branch.as_deref())),
        ),
        pin(|p| p.row_count),
        pin(|p| p.manifest_version),
        numbers(rows.iter().map(|r| match &r.state {
            TableState::Dropped { dropped_at, .. } => Some(*dropped_at),
            TableState::Registered | TableState::Pinned(_) => None,
        })),
    ];
    let items = StructArray::try_new(TABLE_FIELDS.clone(), children, None).map_err(batch_error)?;
    let item = Arc::new(Field::new(
        "item",
        DataType::Struct(TABLE_FIELDS.clone()),
        false,
    ));
    let offsets = OffsetBuffer::from_lengths(records.iter().map(|r| r.tables.len()));
    let list = ListArray::try_new(item, offsets, Arc::new(items), None).map_err(batch_error)?;
    Ok(Arc::new(list))
}

/// Check offsets and UTF-8 of a decoded batch. Lance builds its arrays unchecked, and reading a text of
/// an unchecked array trusts its offsets.
pub(super) fn validate(object: &str, batch: &RecordBatch) -> Result<()> {
    for column in batch.columns() {
        column
            .to_data()
            .validate_full()
            .map_err(|e| Error::internal(format!("{object} holds damaged columns: {e}")))?;
    }
    Ok(())
}

struct Columns<'a> {
    object: &'a str,
    of: &'a StructArray,
}

impl<'a> Columns<'a> {
    fn at(&self, i: usize) -> Result<&'a ArrayRef> {
        self.of.columns().get(i).ok_or_else(|| self.wrong(i))
    }

    fn wrong(&self, i: usize) -> Error {
        Error::internal(format!("{}: field {i} has an unexpected type", self.object))
    }

    fn texts(&self, i: usize) -> Result<&'a StringArray> {
        self.at(i)?
            .as_string_opt::<i32>()
            .ok_or_else(|| self.wrong(i))
    }

    fn u64s(&self, i: usize) -> Result<&'a UInt64Array> {
        self.at(i)?
            .as_primitive_opt::<UInt64Type>()
            .ok_or_else(|| self.wrong(i))
    }

    fn i64s(&self, i: usize) -> Result<&'a Int64Array> {
        self.at(i)?
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| self.wrong(i))
    }

    fn u32s(&self, i: usize) -> Result<&'a UInt32Array> {
        self.at(i)?
            .as_primitive_opt::<UInt32Type>()
            .ok_or_else(|| self.wrong(i))
    }
}

fn column<'a>(object: &str, batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let array = batch
        .column_by_name(name)
        .ok_or_else(|| Error::internal(format!("{object} has no column {name}")))?;
    if array.null_count() > 0 {
        return Err(Error::internal(format!(
            "{object}: column {name} holds nulls"
        )));
    }
    Ok(array)
}

fn require_no_nulls(object: &str, array: &StructArray, required: &[usize]) -> Result<()> {
    for &i in required {
        if array.columns().get(i).is_some_and(|c| c.null_count() > 0) {
            return Err(Error::internal(format!(
                "{object}: required field {i} holds nulls"
            )));
        }
    }
    Ok(())
}

/// The commits of a decoded batch, with the row rules of 3.2.
pub(super) fn commits(object: &str, batch: &RecordBatch) -> Result<Vec<Commit>> {
    let bad = |name: &str| Error::internal(format!("{object}: column {name} has another type"));
    let ids = column(object, batch, COMMIT_ID)?
        .as_string_opt::<i32>()
        .ok_or_else(|| bad(COMMIT_ID))?;
    let record = column(object, batch, RECORD)?
        .as_struct_opt()
        .ok_or_else(|| bad(RECORD))?;
    let all: Vec<usize> = (0..RECORD_FIELDS.len()).collect();
    require_no_nulls(object, record, &all)?;
    let fields = Columns { object, of: record };
    let texts: Vec<Option<&StringArray>> = (0..12).map(|i| fields.texts(i).ok()).collect();
    let (version, generation) = (fields.u64s(2)?, fields.u64s(3)?);
    let (created, identity, present) = (fields.i64s(7)?, fields.u64s(9)?, fields.u32s(12)?);

    let mut out = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let id = ids.value(row);
        // Bits above the fields are written 0 and not examined, as for the rows of `__manifest`.
        let mask = present.value(row);
        let null = |bit: usize| mask & (1 << bit) != 0;
        let stale = |bit: usize| {
            Error::internal(format!(
                "{object}: commit '{id}' marks {} null but stores a value",
                RECORD_FIELDS[bit].name()
            ))
        };
        let text = |bit: usize| -> Result<Option<String>> {
            let array = texts.get(bit).copied().flatten();
            let value = array.ok_or_else(|| fields.wrong(bit))?.value(row);
            match (null(bit), value.is_empty()) {
                (true, true) => Ok(None),
                (true, false) => Err(stale(bit)),
                (false, _) => Ok(Some(value.to_string())),
            }
        };
        for (bit, value) in [
            (2, version.value(row)),
            (3, generation.value(row)),
            (7, created.value(row).unsigned_abs()),
        ] {
            if null(bit) {
                return Err(if value == 0 {
                    Error::internal(format!(
                        "{object}: commit '{id}' lacks {}",
                        RECORD_FIELDS[bit].name()
                    ))
                } else {
                    stale(bit)
                });
            }
        }
        if null(9) && identity.value(row) != 0 {
            return Err(stale(9));
        }
        let identity = (!null(9)).then(|| identity.value(row));
        let commit = Commit {
            graph_commit_id: id.to_string(),
            schema_contract: contract(object, id, text(8)?, identity, text(10)?)?,
            schema_content_hash: text(11)?,
            graph_branch: text(0)?,
            native_branch: text(1)?,
            graph_manifest_version: version.value(row),
            generation: generation.value(row),
            parent_commit_id: text(4)?,
            merged_parent_commit_id: text(5)?,
            actor_id: text(6)?,
            created_at: created.value(row),
        };
        commit.check().map_err(|e| e.within(object))?;
        out.push(commit);
    }
    Ok(out)
}

fn contract(
    object: &str,
    id: &str,
    hash: Option<String>,
    version: Option<u64>,
    domain: Option<String>,
) -> Result<Option<ContractHead>> {
    match (hash, version, domain) {
        (None, None, None) => Ok(None),
        (Some(schema_ir_hash), Some(version), Some(schema_identity_domain)) => {
            // Version 0 is the buffer's inheritance marker; a real one starts at 1.
            let schema_identity_version = u32::try_from(version)
                .ok()
                .filter(|v| *v > 0)
                .ok_or_else(|| {
                    Error::internal(format!(
                        "{object}: commit '{id}' has schema identity version {version}"
                    ))
                })?;
            Ok(Some(ContractHead {
                schema_ir_hash,
                schema_identity_version,
                schema_identity_domain,
            }))
        }
        (None, Some(0), None) => Err(Error::internal(format!(
            "{object}: commit '{id}' inherits its contract, which only the buffer may store"
        ))),
        _ => Err(Error::internal(format!(
            "{object}: commit '{id}' has an incomplete schema contract"
        ))),
    }
}

/// The records of a decoded batch, tables in stored order, with the rules of 3.2 and 3.3.
pub(super) fn records(object: &str, batch: &RecordBatch) -> Result<Vec<HistoryRecord>> {
    let commits = commits(object, batch)?;
    let bad = || Error::internal(format!("{object}: column {TABLES} has another type"));
    let list = column(object, batch, TABLES)?
        .as_list_opt::<i32>()
        .ok_or_else(bad)?;
    let items = list.values().as_struct_opt().ok_or_else(bad)?;
    if items.null_count() > 0 {
        return Err(Error::internal(format!("{object}: a table row is null")));
    }
    require_no_nulls(object, items, &[0, 2, 3, 4])?;
    let rows = TableColumns::new(object, items)?;
    let offsets = list.value_offsets();
    let mut out = Vec::with_capacity(commits.len());
    for (row, commit) in commits.into_iter().enumerate() {
        let bounds = offsets.get(row).zip(offsets.get(row + 1)).ok_or_else(bad)?;
        let (start, end) = (
            usize::try_from(*bounds.0).map_err(|_| bad())?,
            usize::try_from(*bounds.1).map_err(|_| bad())?,
        );
        if start > end || end > items.len() {
            return Err(bad());
        }
        let tables = (start..end)
            .map(|i| rows.row(i).map_err(|e| e.within(&commit.graph_commit_id)))
            .collect::<Result<Vec<_>>>()
            .map_err(|e| e.within(object))?;
        out.push(HistoryRecord { commit, tables });
    }
    Ok(out)
}

struct TableColumns<'a> {
    texts: [&'a StringArray; 4],
    numbers: [&'a UInt64Array; 6],
}

impl<'a> TableColumns<'a> {
    fn new(object: &'a str, items: &'a StructArray) -> Result<Self> {
        let c = Columns { object, of: items };
        Ok(Self {
            texts: [c.texts(0)?, c.texts(1)?, c.texts(2)?, c.texts(6)?],
            numbers: [
                c.u64s(3)?,
                c.u64s(4)?,
                c.u64s(5)?,
                c.u64s(7)?,
                c.u64s(8)?,
                c.u64s(9)?,
            ],
        })
    }

    fn row(&self, i: usize) -> Result<TableRow> {
        let text = |a: &'a StringArray| (!a.is_null(i)).then(|| a.value(i));
        let number = |a: &UInt64Array| (!a.is_null(i)).then(|| a.value(i));
        let [location, metadata, key, branch] = self.texts;
        let [stable, incarnation, version, count, clock, dropped] = self.numbers;
        let identity = TableIdentity::new(stable.value(i), incarnation.value(i))?;
        let object = format!("table {} ({identity})", key.value(i));
        let state = match (
            text(metadata),
            number(version),
            text(branch),
            number(count),
            number(clock),
            number(dropped),
        ) {
            (None, None, None, None, None, None) => TableState::Registered,
            (Some(json), Some(table_version), branch, Some(row_count), Some(clock), None) => {
                TableState::Pinned(Pin {
                    table_version,
                    table_branch: branch.map(str::to_string),
                    row_count,
                    metadata: PinMetadata::parse(json, &object)?,
                    manifest_version: clock,
                })
            }
            (None, Some(sealed_version), None, None, None, Some(dropped_at)) => {
                TableState::Dropped {
                    dropped_at,
                    sealed_version,
                }
            }
            _ => {
                return Err(Error::internal(format!(
                    "{object} is neither registered, pinned nor dropped"
                )));
            }
        };
        let row = TableRow {
            identity,
            table_key: key.value(i).to_string(),
            table_path: location.value(i).to_string(),
            state,
        };
        row.check_path()?;
        Ok(row)
    }
}
