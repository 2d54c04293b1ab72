//! One column of a batch as it grows.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Date64Builder, Float32Builder, Float64Builder, Int32Builder,
    Int64Builder, LargeBinaryBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field};
use graph::schema::types::{PropType, Scalar};

use crate::value::{Blob, Value};

/// Whether a column of this type takes `value`.
pub(crate) fn accepts(prop_type: &PropType, value: &Value) -> bool {
    match (prop_type.list, value) {
        (_, Value::Null) => prop_type.nullable,
        (true, Value::List(items)) => items
            .iter()
            .all(|item| item.is_null() || scalar_accepts(prop_type.scalar, item)),
        (true, _) => false,
        (false, value) => scalar_accepts(prop_type.scalar, value),
    }
}

fn scalar_accepts(scalar: Scalar, value: &Value) -> bool {
    match (scalar, value) {
        (Scalar::String, Value::Text(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::I32, Value::I32(_))
        | (Scalar::I64, Value::I64(_))
        | (Scalar::U32, Value::U32(_))
        | (Scalar::U64, Value::U64(_))
        | (Scalar::F32, Value::F32(_))
        | (Scalar::F64, Value::F64(_))
        | (Scalar::Date, Value::Date(_))
        | (Scalar::DateTime, Value::DateTime(_))
        | (Scalar::Blob, Value::Blob(_)) => true,
        (Scalar::Vector(n), Value::Vector(vector)) => vector.len() == n as usize,
        _ => false,
    }
}

/// About how many bytes `value` takes in a column of this type. At least the length of a text and the number
/// of a list's items, which bounds every 31-bit offset.
pub(crate) fn estimate(prop_type: &PropType, value: &Value) -> usize {
    match value {
        Value::Vector(_) | Value::Null if matches!(prop_type.scalar, Scalar::Vector(_)) => {
            let Scalar::Vector(n) = prop_type.scalar else {
                return 0;
            };
            (n as usize).saturating_mul(4)
        }
        Value::List(items) => items
            .iter()
            .fold(4, |sum, item| sum + 1 + estimate(prop_type, item)),
        Value::Text(text) => text.len() + 4,
        Value::Blob(Blob::Bytes(bytes)) => bytes.len() + 12,
        Value::Blob(Blob::External(uri)) => uri.len() + 12,
        Value::Bool(_) => 1,
        Value::I32(_) | Value::U32(_) | Value::F32(_) | Value::Date(_) => 4,
        Value::I64(_) | Value::U64(_) | Value::F64(_) | Value::DateTime(_) => 8,
        Value::Null | Value::Vector(_) => 4,
    }
}

/// A growing column. [`Column::append`] takes only what [`accepts`] accepts; anything else becomes null.
pub(crate) enum Column {
    Text(StringBuilder),
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Date(Date32Builder),
    DateTime(Date64Builder),
    Vector(Vectors),
    List(Box<Lists>),
    Blob(Box<Blobs>),
}

/// Vectors of one length.
pub(crate) struct Vectors {
    size: usize,
    elements: Vec<f32>,
    valid: NullBufferBuilder,
}

/// Lists of one item type.
pub(crate) struct Lists {
    items: Column,
    lengths: Vec<usize>,
    valid: NullBufferBuilder,
}

/// Blobs by content or URI.
pub(crate) struct Blobs {
    data: LargeBinaryBuilder,
    uri: StringBuilder,
    valid: NullBufferBuilder,
}

impl Column {
    /// A column of ids.
    pub(crate) fn text() -> Self {
        Self::Text(StringBuilder::new())
    }

    /// The column of a property.
    pub(crate) fn of(prop_type: &PropType) -> Self {
        let column = match prop_type.scalar {
            Scalar::String => Self::text(),
            Scalar::Bool => Self::Bool(BooleanBuilder::new()),
            Scalar::I32 => Self::I32(Int32Builder::new()),
            Scalar::I64 => Self::I64(Int64Builder::new()),
            Scalar::U32 => Self::U32(UInt32Builder::new()),
            Scalar::U64 => Self::U64(UInt64Builder::new()),
            Scalar::F32 => Self::F32(Float32Builder::new()),
            Scalar::F64 => Self::F64(Float64Builder::new()),
            Scalar::Date => Self::Date(Date32Builder::new()),
            Scalar::DateTime => Self::DateTime(Date64Builder::new()),
            Scalar::Vector(size) => Self::Vector(Vectors {
                size: size as usize,
                elements: Vec::new(),
                valid: NullBufferBuilder::new(0),
            }),
            Scalar::Blob => Self::Blob(Box::new(Blobs {
                data: LargeBinaryBuilder::new(),
                uri: StringBuilder::new(),
                valid: NullBufferBuilder::new(0),
            })),
        };
        match prop_type.list {
            false => column,
            true => Self::List(Box::new(Lists {
                items: column,
                lengths: Vec::new(),
                valid: NullBufferBuilder::new(0),
            })),
        }
    }

    /// Append an id.
    pub(crate) fn append_text(&mut self, text: &str) {
        if let Self::Text(column) = self {
            column.append_value(text);
        }
    }

    /// Append a value.
    pub(crate) fn append(&mut self, value: Value) {
        match (self, value) {
            (Self::Text(column), Value::Text(value)) => column.append_value(value),
            (Self::Text(column), _) => column.append_null(),
            (Self::Bool(column), Value::Bool(value)) => column.append_value(value),
            (Self::Bool(column), _) => column.append_null(),
            (Self::I32(column), Value::I32(value)) => column.append_value(value),
            (Self::I32(column), _) => column.append_null(),
            (Self::I64(column), Value::I64(value)) => column.append_value(value),
            (Self::I64(column), _) => column.append_null(),
            (Self::U32(column), Value::U32(value)) => column.append_value(value),
            (Self::U32(column), _) => column.append_null(),
            (Self::U64(column), Value::U64(value)) => column.append_value(value),
            (Self::U64(column), _) => column.append_null(),
            (Self::F32(column), Value::F32(value)) => column.append_value(value),
            (Self::F32(column), _) => column.append_null(),
            (Self::F64(column), Value::F64(value)) => column.append_value(value),
            (Self::F64(column), _) => column.append_null(),
            (Self::Date(column), Value::Date(value)) => column.append_value(value),
            (Self::Date(column), _) => column.append_null(),
            (Self::DateTime(column), Value::DateTime(value)) => column.append_value(value),
            (Self::DateTime(column), _) => column.append_null(),
            (Self::Vector(column), value) => column.append(value),
            (Self::List(column), value) => column.append(value),
            (Self::Blob(column), value) => column.append(value),
        }
    }

    /// The array of what was appended, of the type of `field`. Empties the column.
    pub(crate) fn finish(&mut self, field: &Field) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Text(column) => Arc::new(column.finish()),
            Self::Bool(column) => Arc::new(column.finish()),
            Self::I32(column) => Arc::new(column.finish()),
            Self::I64(column) => Arc::new(column.finish()),
            Self::U32(column) => Arc::new(column.finish()),
            Self::U64(column) => Arc::new(column.finish()),
            Self::F32(column) => Arc::new(column.finish()),
            Self::F64(column) => Arc::new(column.finish()),
            Self::Date(column) => Arc::new(column.finish()),
            Self::DateTime(column) => Arc::new(column.finish()),
            Self::Vector(column) => column.finish(field)?,
            Self::List(column) => column.finish(field)?,
            Self::Blob(column) => column.finish(field)?,
        })
    }
}

impl Vectors {
    fn append(&mut self, value: Value) {
        match value {
            Value::Vector(vector) if vector.len() == self.size => {
                self.elements.extend_from_slice(&vector);
                self.valid.append_non_null();
            }
            _ => {
                self.elements.resize(self.elements.len() + self.size, 0.0);
                self.valid.append_null();
            }
        }
    }

    fn finish(&mut self, field: &Field) -> Result<ArrayRef, ArrowError> {
        let DataType::FixedSizeList(item, size) = field.data_type() else {
            return Err(mistyped(field));
        };
        let elements = Float32Array::from(std::mem::take(&mut self.elements));
        let valid = self.valid.finish();
        let array = FixedSizeListArray::try_new(item.clone(), *size, Arc::new(elements), valid)?;
        Ok(Arc::new(array))
    }
}

impl Lists {
    fn append(&mut self, value: Value) {
        match value {
            Value::List(items) => {
                self.lengths.push(items.len());
                self.valid.append_non_null();
                for item in items {
                    self.items.append(item);
                }
            }
            _ => {
                self.lengths.push(0);
                self.valid.append_null();
            }
        }
    }

    fn finish(&mut self, field: &Field) -> Result<ArrayRef, ArrowError> {
        let DataType::List(item) = field.data_type() else {
            return Err(mistyped(field));
        };
        let offsets = OffsetBuffer::from_lengths(std::mem::take(&mut self.lengths));
        let items = self.items.finish(item)?;
        let array = ListArray::try_new(item.clone(), offsets, items, self.valid.finish())?;
        Ok(Arc::new(array))
    }
}

impl Blobs {
    fn append(&mut self, value: Value) {
        match value {
            Value::Blob(Blob::Bytes(bytes)) => {
                self.data.append_value(bytes);
                self.uri.append_null();
                self.valid.append_non_null();
            }
            Value::Blob(Blob::External(uri)) => {
                self.data.append_null();
                self.uri.append_value(uri);
                self.valid.append_non_null();
            }
            _ => {
                self.data.append_null();
                self.uri.append_null();
                self.valid.append_null();
            }
        }
    }

    fn finish(&mut self, field: &Field) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(children) = field.data_type() else {
            return Err(mistyped(field));
        };
        let arrays: Vec<ArrayRef> = vec![Arc::new(self.data.finish()), Arc::new(self.uri.finish())];
        let array = StructArray::try_new(children.clone(), arrays, self.valid.finish())?;
        Ok(Arc::new(array))
    }
}

fn mistyped(field: &Field) -> ArrowError {
    ArrowError::SchemaError(format!(
        "column '{}' is declared as {}",
        field.name(),
        field.data_type()
    ))
}
