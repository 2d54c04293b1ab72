//! Physical columns of the tables a schema declares, and the comparison of stored with declared columns
//! (`docs/format/tables-and-schema.md` 2.1 to 2.5 and 7).

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use super::ir::{PropertyIr, SchemaIr};
use super::types::{PropType, Scalar};
use super::vintage::{SystemRole, Vintage};
use crate::error::{Error, Result};
use crate::model::TableIdentity;
use crate::model::table::TableKind;

/// Marks the id column as the unenforced primary key. The positional form of the key must not be present.
pub const PRIMARY_KEY: &str = "lance-schema:unenforced-primary-key";
/// Carries the `property_id` of a property column; tables made before 0.10 lack it.
pub const STABLE_PROPERTY_ID: &str = "omnigraph.stable_property_id";

/// A table that an accepted schema declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTable {
    /// `node:{Type}` or `edge:{Type}`.
    pub table_key: String,
    /// Type id and incarnation.
    pub identity: TableIdentity,
    /// Columns as a create from the contract writes them.
    pub schema: Schema,
}

/// The tables of a schema, nodes before edges, each by name. Interfaces have none.
pub fn tables(ir: &SchemaIr) -> Result<Vec<DeclaredTable>> {
    let vintage = ir.vintage();
    let nodes = ir.nodes.iter().map(|n| {
        let identity = (n.type_id, n.table_incarnation_id);
        (TableKind::Node, &n.name, identity, &n.properties)
    });
    let edges = ir.edges.iter().map(|e| {
        let identity = (e.type_id, e.table_incarnation_id);
        (TableKind::Edge, &e.name, identity, &e.properties)
    });
    nodes
        .chain(edges)
        .map(|(kind, name, (type_id, incarnation), properties)| {
            let (prefix, roles) = match kind {
                TableKind::Node => ("node", &[SystemRole::Id][..]),
                TableKind::Edge => ("edge", &SystemRole::ALL[..]),
            };
            let system = roles.iter().map(|role| Ok(system_field(vintage, *role)));
            let fields = system.chain(properties.iter().map(|property| {
                property_field(property)
                    .map_err(|e| e.within(format!("{prefix} {name}.{}", property.name)))
            }));
            Ok(DeclaredTable {
                table_key: format!("{prefix}:{name}"),
                identity: TableIdentity::new(type_id, incarnation)?,
                schema: Schema::new(fields.collect::<Result<Vec<Field>>>()?),
            })
        })
        .collect()
}

/// The field of a system column. Only the id is a key, and only nodes and edges have endpoints.
pub fn system_field(vintage: Vintage, role: SystemRole) -> Field {
    let field = Field::new(vintage.column(role), DataType::Utf8, false);
    match role {
        SystemRole::Id => with(field, PRIMARY_KEY, "true".to_string()),
        SystemRole::Src | SystemRole::Dst => field,
    }
}

/// The field of a property column.
pub fn property_field(property: &PropertyIr) -> Result<Field> {
    let PropType {
        scalar,
        nullable,
        list,
        ..
    } = property.prop_type;
    let field = match (scalar, list) {
        (Scalar::Blob, false) => lance::blob::blob_field(&property.name, nullable),
        _ => Field::new(&property.name, data_type(scalar, list)?, nullable),
    };
    Ok(with(
        field,
        STABLE_PROPERTY_ID,
        property.property_id.to_string(),
    ))
}

fn with(field: Field, key: &str, value: String) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_string(), value);
    field.with_metadata(metadata)
}

fn data_type(scalar: Scalar, list: bool) -> Result<DataType> {
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let base = match scalar {
        Scalar::String => DataType::Utf8,
        Scalar::Bool => DataType::Boolean,
        Scalar::I32 => DataType::Int32,
        Scalar::I64 => DataType::Int64,
        Scalar::U32 => DataType::UInt32,
        Scalar::U64 => DataType::UInt64,
        Scalar::F32 => DataType::Float32,
        Scalar::F64 => DataType::Float64,
        Scalar::Date => DataType::Date32,
        Scalar::DateTime => DataType::Date64,
        Scalar::Vector(dimension) if !list => {
            let size = i32::try_from(dimension)
                .ok()
                .filter(|size| *size > 0)
                .ok_or_else(|| {
                    Error::internal(format!("a vector of {dimension} dimensions is not a type"))
                })?;
            return Ok(DataType::FixedSizeList(item(DataType::Float32), size));
        }
        Scalar::Vector(_) | Scalar::Blob => {
            return Err(Error::internal(format!(
                "a list of {scalar:?} is not a type"
            )));
        }
    };
    Ok(if list {
        DataType::List(item(base))
    } else {
        base
    })
}

/// The first column in which a stored table is not what its contract declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnDifference {
    /// Declared, not stored.
    Absent {
        /// The column.
        column: String,
        /// Its declared type.
        declared: DataType,
    },
    /// Stored with another type.
    Type {
        /// The column.
        column: String,
        /// Its declared type.
        declared: DataType,
        /// Its stored type.
        stored: DataType,
    },
    /// Stored, not declared.
    Undeclared {
        /// The column.
        column: String,
        /// Its stored type.
        stored: DataType,
    },
}

impl std::fmt::Display for ColumnDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent { column, declared } => write!(
                f,
                "column '{column}' is declared as {declared} but the table does not have it"
            ),
            Self::Type {
                column,
                declared,
                stored,
            } => write!(
                f,
                "column '{column}' is declared as {declared} but stored as {stored}"
            ),
            Self::Undeclared { column, stored } => write!(
                f,
                "column '{column}' is stored as {stored} but not declared"
            ),
        }
    }
}

/// Compare stored with declared columns: names and Arrow data types, which include child fields. Nullability
/// of the column, order, metadata, field ids and the key marker are not compared. Declared columns come
/// first, in their order, then stored ones.
pub fn compare_columns(declared: &Schema, stored: &Schema) -> Option<ColumnDifference> {
    let mut types: HashMap<&str, &DataType> = HashMap::new();
    for field in stored.fields() {
        types
            .entry(field.name())
            .or_insert_with(|| field.data_type());
    }
    for field in declared.fields() {
        match types.get(field.name().as_str()) {
            None => {
                return Some(ColumnDifference::Absent {
                    column: field.name().clone(),
                    declared: field.data_type().clone(),
                });
            }
            Some(stored) if *stored != field.data_type() => {
                return Some(ColumnDifference::Type {
                    column: field.name().clone(),
                    declared: field.data_type().clone(),
                    stored: (*stored).clone(),
                });
            }
            Some(_) => {}
        }
    }
    let known: HashSet<&str> = declared
        .fields()
        .iter()
        .map(|f| f.name().as_str())
        .collect();
    stored
        .fields()
        .iter()
        .find(|field| !known.contains(field.name().as_str()))
        .map(|field| ColumnDifference::Undeclared {
            column: field.name().clone(),
            stored: field.data_type().clone(),
        })
}
