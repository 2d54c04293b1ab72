//! Columns to records, with every check of a row (`docs/format/history.md` 3.2 and 3.3).

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray, UInt32Array, UInt64Array,
};

use super::{COMMIT_ID, RECORD, RECORD_FIELDS, TABLES};
use crate::error::{Error, Result};
use crate::model::{
    Commit, ContractHead, HistoryRecord, Pin, PinMetadata, TableIdentity, TableRow, TableState,
};

/// Check offsets and UTF-8 of a decoded batch. Lance builds its arrays unchecked, and reading a text of
/// an unchecked array trusts its offsets.
pub(in super::super) fn validate(object: &str, batch: &RecordBatch) -> Result<()> {
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
pub(in super::super) fn commits(object: &str, batch: &RecordBatch) -> Result<Vec<Commit>> {
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
pub(in super::super) fn records(object: &str, batch: &RecordBatch) -> Result<Vec<HistoryRecord>> {
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
