//! One value of a stored row.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use graph::schema::types::{PropType, Scalar};
use graph::schema::{SystemRole, Vintage};

use crate::error::RecordError;
use crate::types::TableType;

/// A value of a stored row, borrowed from its batch. Blobs are not read through it.
#[derive(Debug, Clone)]
pub(crate) enum Cell<'a> {
    Null,
    Text(&'a str),
    Bool(bool),
    I32(i32),
    I64(i64),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    Date(i32),
    DateTime(i64),
    /// A list or vector.
    Items(Items<'a>),
}

/// The elements of a list or vector.
#[derive(Debug, Clone)]
pub(crate) struct Items<'a> {
    array: &'a dyn Array,
    scalar: Scalar,
    range: Range<usize>,
}

impl<'a> Items<'a> {
    /// Each element.
    pub(crate) fn cells(self) -> impl Iterator<Item = Result<Cell<'a>, RecordError>> {
        let Self {
            array,
            scalar,
            range,
        } = self;
        range.map(move |row| scalar_cell(array, scalar, row))
    }
}

/// The value of a column of this type at `row`, which must be a row of `array`. Errors: the array has another
/// type.
pub(crate) fn cell<'a>(
    array: &'a dyn Array,
    prop_type: &PropType,
    row: usize,
) -> Result<Cell<'a>, RecordError> {
    if row >= array.len() {
        return Err(RecordError::new(format!("the batch has no row {row}")));
    }
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    match (prop_type.list, prop_type.scalar) {
        (true, scalar) => {
            let list = array.as_list_opt::<i32>().ok_or_else(|| mistyped(array))?;
            let bound = |at: usize| {
                let offset = list.value_offsets().get(at).copied().unwrap_or_default();
                usize::try_from(offset).unwrap_or_default()
            };
            Ok(Cell::Items(Items {
                array: list.values().as_ref(),
                scalar,
                range: bound(row)..bound(row + 1),
            }))
        }
        (false, Scalar::Vector(_)) => {
            let list = array
                .as_fixed_size_list_opt()
                .ok_or_else(|| mistyped(array))?;
            let size = usize::try_from(list.value_length()).unwrap_or_default();
            let start = usize::try_from(list.value_offset(row)).unwrap_or_default();
            Ok(Cell::Items(Items {
                array: list.values().as_ref(),
                scalar: Scalar::F32,
                range: start..start + size,
            }))
        }
        (false, scalar) => scalar_cell(array, scalar, row),
    }
}

fn scalar_cell(array: &dyn Array, scalar: Scalar, row: usize) -> Result<Cell<'_>, RecordError> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    Ok(match scalar {
        Scalar::String => Cell::Text(text(array)?.value(row)),
        Scalar::Bool => Cell::Bool(
            array
                .as_boolean_opt()
                .ok_or_else(|| mistyped(array))?
                .value(row),
        ),
        Scalar::I32 => Cell::I32(number::<Int32Type>(array, row)?),
        Scalar::I64 => Cell::I64(number::<Int64Type>(array, row)?),
        Scalar::U32 => Cell::U32(number::<UInt32Type>(array, row)?),
        Scalar::U64 => Cell::U64(number::<UInt64Type>(array, row)?),
        Scalar::F32 => Cell::F32(number::<Float32Type>(array, row)?),
        Scalar::F64 => Cell::F64(number::<Float64Type>(array, row)?),
        Scalar::Date => Cell::Date(number::<Date32Type>(array, row)?),
        Scalar::DateTime => Cell::DateTime(number::<Date64Type>(array, row)?),
        Scalar::Blob | Scalar::Vector(_) => return Err(mistyped(array)),
    })
}

fn text(array: &dyn Array) -> Result<&arrow_array::StringArray, RecordError> {
    array.as_string_opt::<i32>().ok_or_else(|| mistyped(array))
}

fn number<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Result<T::Native, RecordError> {
    array
        .as_primitive_opt::<T>()
        .map(|array| array.value(row))
        .ok_or_else(|| mistyped(array))
}

fn mistyped(array: &dyn Array) -> RecordError {
    RecordError::new(format!(
        "the column is stored as {}, which is not its declared type",
        array.data_type()
    ))
}

/// How the system columns of a batch are spelled: as `types` say, unless the batch is an image of the other
/// vintage, whose id column is no property of the type (2.1).
pub(crate) fn vintage_of(batch: &RecordBatch, table: &TableType, declared: Vintage) -> Vintage {
    let other = match declared {
        Vintage::Legacy => Vintage::Current,
        Vintage::Current => Vintage::Legacy,
    };
    let schema = batch.schema_ref();
    let has = |vintage: Vintage| {
        let name = vintage.column(SystemRole::Id);
        table.property(name).is_none() && schema.column_with_name(name).is_some()
    };
    if !has(declared) && has(other) {
        other
    } else {
        declared
    }
}

/// The column `name` of a batch. `hint` is where it is likely to be, and becomes the place behind it.
pub(crate) fn column<'a>(
    batch: &'a RecordBatch,
    name: &str,
    hint: &mut usize,
) -> Result<&'a dyn Array, RecordError> {
    let fields = batch.schema_ref().fields();
    let at = match fields.get(*hint) {
        Some(field) if field.name() == name => Some(*hint),
        _ => fields.iter().position(|field| field.name() == name),
    };
    match at {
        Some(at) => {
            *hint = at + 1;
            Ok(batch.column(at).as_ref())
        }
        None => Err(RecordError::new(format!(
            "the rows have no column '{name}'"
        ))),
    }
}

/// A system column's value at `row`.
pub(crate) fn id<'a>(
    batch: &'a RecordBatch,
    name: &str,
    row: usize,
    hint: &mut usize,
) -> Result<&'a str, RecordError> {
    let array = column(batch, name, hint)?;
    if row >= array.len() {
        return Err(RecordError::new(format!("the batch has no row {row}")));
    }
    if array.is_null(row) {
        return Err(RecordError::new(format!("column '{name}' is null")));
    }
    Ok(text(array)?.value(row))
}
