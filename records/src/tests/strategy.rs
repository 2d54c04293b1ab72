//! Random schemas and rows that fit them.

use graph::schema::Vintage;
use graph::schema::types::Scalar;
use proptest::prelude::*;

use crate::{Blob, Property, Record, TableType, Value};

/// A schema of a node type `N` and an edge type `E` with the same properties, and rows for both.
#[derive(Debug, Clone)]
pub struct Sample {
    pub vintage: Vintage,
    pub source: String,
    pub rows: Vec<Row>,
}

/// Raw material of a row; how it is used depends on the property.
#[derive(Debug, Clone)]
pub struct Row {
    ids: [String; 3],
    cells: Vec<Raw>,
}

#[derive(Debug, Clone)]
struct Raw {
    null: bool,
    bits: Vec<u64>,
    text: String,
    bytes: Vec<u8>,
}

const SCALARS: [&str; 12] = [
    "String",
    "Bool",
    "I32",
    "I64",
    "U32",
    "U64",
    "F32",
    "F64",
    "Date",
    "DateTime",
    "Vector(3)",
    "Blob",
];
/// Names that mean something elsewhere in a record.
const NAMES: [&str; 8] = ["type", "data", "edge", "a", "b2", "zz", "aB", "line"];

pub fn sample() -> impl Strategy<Value = Sample> {
    let property = (0..SCALARS.len(), any::<bool>(), any::<bool>());
    let properties = prop::collection::vec(property, 0..=NAMES.len());
    (
        properties,
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec(row(), 0..5),
    )
        .prop_map(|(properties, legacy, id, rows)| {
            let vintage = if legacy {
                Vintage::Legacy
            } else {
                Vintage::Current
            };
            let mut body = String::new();
            for ((scalar, nullable, list), name) in properties.into_iter().zip(NAMES) {
                let list = list && scalar < 10;
                let (open, close) = if list { ("[", "]") } else { ("", "") };
                let nullable = if nullable { "?" } else { "" };
                body.push_str(&format!(
                    "{name}: {open}{}{close}{nullable}\n",
                    SCALARS[scalar]
                ));
            }
            if id && !legacy {
                body.push_str("id: String?\n");
            }
            Sample {
                vintage,
                source: format!("node N {{ {body} }}\nedge E: N -> N {{ {body} }}"),
                rows,
            }
        })
}

fn row() -> impl Strategy<Value = Row> {
    let cells = prop::collection::vec(raw(), NAMES.len() + 1);
    (["\\PC{1,8}", "\\PC{1,8}", "\\PC{1,8}"], cells).prop_map(|(ids, cells)| Row { ids, cells })
}

fn raw() -> impl Strategy<Value = Raw> {
    let bits = prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        Just((-0.0_f64).to_bits()),
        (0..1000_u64),
        any::<u32>().prop_map(u64::from),
    ];
    (
        prop::bool::weighted(0.3),
        prop::collection::vec(bits, 3..6),
        any::<String>(),
        prop::collection::vec(any::<u8>(), 0..9),
    )
        .prop_map(|(null, bits, text, bytes)| Raw {
            null,
            bits,
            text,
            bytes,
        })
}

impl Row {
    pub fn record(&self, index: usize, table: &TableType) -> Record {
        let [id, src, dst] = self.ids.clone();
        Record {
            line: 0,
            table: index,
            id,
            supplied: true,
            alias: None,
            endpoints: table.endpoints.map(|_| (src, dst)),
            values: table
                .properties
                .iter()
                .zip(&self.cells)
                .map(|(property, raw)| raw.value(property))
                .collect(),
        }
    }
}

impl Raw {
    fn value(&self, property: &Property) -> Value {
        let prop_type = &property.prop_type;
        if self.null && prop_type.nullable {
            return Value::Null;
        }
        if prop_type.list {
            let items = self.bits.iter().skip(2);
            return Value::List(
                items
                    .map(|bits| match bits % 5 {
                        0 => Value::Null,
                        _ => self.scalar(prop_type.scalar, *bits),
                    })
                    .collect(),
            );
        }
        self.scalar(prop_type.scalar, self.bits[0])
    }

    fn scalar(&self, scalar: Scalar, bits: u64) -> Value {
        let finite = |bits: u64| Some(f32::from_bits(bits as u32)).filter(|v| v.is_finite());
        match scalar {
            Scalar::String => Value::Text(self.text.clone()),
            Scalar::Bool => Value::Bool(bits % 2 == 1),
            Scalar::I32 => Value::I32(bits as i32),
            Scalar::I64 => Value::I64(bits as i64),
            Scalar::U32 => Value::U32(bits as u32),
            Scalar::U64 => Value::U64(bits),
            Scalar::F32 => Value::F32(finite(bits).unwrap_or(7.038531e-26)),
            Scalar::F64 => {
                let value = f64::from_bits(bits);
                Value::F64(if value.is_finite() { value } else { 0.1 })
            }
            Scalar::Date => Value::Date((bits % 3_652_425) as i32 - 719_528),
            Scalar::DateTime => {
                Value::DateTime((bits % 315_569_520_000_000) as i64 - 62_167_219_200_000)
            }
            Scalar::Vector(n) => Value::Vector(
                (0..n as usize)
                    .map(|i| finite(self.bits[i]).unwrap_or(0.1))
                    .collect(),
            ),
            Scalar::Blob => Value::Blob(match self.text.is_empty() || bits.is_multiple_of(2) {
                true => Blob::Bytes(self.bytes.clone()),
                false => Blob::External(format!("s3://{}", self.text)),
            }),
        }
    }
}
