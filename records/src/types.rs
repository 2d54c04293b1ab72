//! The types of an accepted schema, ready for records.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::Schema;
use graph::model::TableIdentity;
use graph::model::table::TableKind;
use graph::schema::ir::{
    ConstraintIr, EdgeIr, FieldRef, NodeIr, PropertyIr, PropertyRef, SchemaIr,
};
use graph::schema::types::{Cardinality, PropType, Scalar};
use graph::schema::{DeclaredTable, SystemRole, Vintage};
use graph::{Error, Result};

use crate::rules::Rules;

/// The tables of a schema, ascending by `table_key`: every edge table before every node table
/// (`docs/format/tables-and-schema.md` 8.1). An index into [`Types::tables`] names a type.
#[derive(Debug, Clone)]
pub struct Types {
    vintage: Vintage,
    tables: Vec<TableType>,
    nodes: HashMap<String, usize>,
    edges: HashMap<String, usize>,
}

/// A node or edge type.
#[derive(Debug, Clone)]
pub struct TableType {
    /// `node:{Type}` or `edge:{Type}`.
    pub table_key: String,
    /// Node or edge.
    pub kind: TableKind,
    /// The type name.
    pub name: String,
    /// Type id and incarnation.
    pub identity: TableIdentity,
    /// Columns as a create writes them: system columns, then properties by name (2.2).
    pub schema: Arc<Schema>,
    /// By name. Property `i` is column `i` plus the number of system columns: 1 on nodes, 3 on edges.
    pub properties: Vec<Property>,
    /// The members of the key in tuple order (2.7): `src`, `dst` on edges, then by `property_id`.
    pub key: Option<Vec<KeyMember>>,
    /// The `@unique` constraints.
    pub unique: Vec<Vec<Member>>,
    /// Edges per source node; `None` on nodes.
    pub cardinality: Option<Cardinality>,
    /// Edges: the node tables at both ends, as indexes into [`Types::tables`].
    pub endpoints: Option<(usize, usize)>,
    vintage: Vintage,
    by_name: HashMap<String, usize>,
}

/// A property of a type.
#[derive(Debug, Clone)]
pub struct Property {
    /// Its name, which is its column's name and its JSON key.
    pub name: String,
    /// Its `property_id`.
    pub id: u64,
    /// Its type.
    pub prop_type: PropType,
    pub(crate) rules: Rules,
}

/// A member of a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// A system column.
    System(SystemRole),
    /// An index into [`TableType::properties`].
    Property(usize),
}

/// A member of a key; the role is never [`SystemRole::Id`].
pub type KeyMember = Member;

impl Types {
    /// The types of an accepted schema.
    ///
    /// Errors: [`Error::Refused`] for a `@check` pattern that is no regular expression, naming type,
    /// property and pattern; [`Error::Internal`] when the IR contradicts itself (a reference to a property
    /// or type that is not there, a key of an edge without its endpoints).
    pub fn of(ir: &SchemaIr) -> Result<Self> {
        let vintage = ir.vintage();
        let mut declared: HashMap<String, DeclaredTable> = graph::schema::tables(ir)?
            .into_iter()
            .map(|table| (table.table_key.clone(), table))
            .collect();
        let sources = ir.nodes.iter().map(Source::Node);
        let mut sources: Vec<_> = sources.chain(ir.edges.iter().map(Source::Edge)).collect();
        sources.sort_by_key(Source::table_key);
        let at: HashMap<u64, usize> = sources
            .iter()
            .enumerate()
            .filter_map(|(index, source)| match source {
                Source::Node(node) => Some((node.type_id, index)),
                Source::Edge(_) => None,
            })
            .collect();
        let tables = sources
            .iter()
            .map(|source| {
                let key = source.table_key();
                let declared = declared
                    .remove(&key)
                    .ok_or_else(|| Error::internal(format!("{key} is declared twice")))?;
                source
                    .table(vintage, declared, &at)
                    .map_err(|e| e.within(key))
            })
            .collect::<Result<Vec<_>>>()?;
        let named = |kind| {
            tables
                .iter()
                .enumerate()
                .filter(move |(_, t)| t.kind == kind)
        };
        Ok(Self {
            vintage,
            nodes: named(TableKind::Node)
                .map(|(i, t)| (t.name.clone(), i))
                .collect(),
            edges: named(TableKind::Edge)
                .map(|(i, t)| (t.name.to_lowercase(), i))
                .collect(),
            tables,
        })
    }

    /// How the graph spells its system columns.
    pub fn vintage(&self) -> Vintage {
        self.vintage
    }

    /// Require every `@check` pattern to be a regular expression ([`Error::Refused`] otherwise, naming type, property
    /// and pattern). Asked of a schema that is to be accepted.
    pub fn require_patterns(&self) -> Result<()> {
        for table in &self.tables {
            for property in &table.properties {
                if let Some(why) = property.rules.broken_check() {
                    return Err(Error::refused(format!(
                        "{}: property {}: {why}",
                        table.table_key, property.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Every table, ascending by `table_key`.
    pub fn tables(&self) -> &[TableType] {
        &self.tables
    }

    /// The node type of exactly this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.get(name).copied()
    }

    /// The edge type of this name, in any case.
    pub fn edge(&self, name: &str) -> Option<usize> {
        self.edges.get(&name.to_lowercase()).copied()
    }

    /// The table of exactly this key.
    pub fn by_key(&self, table_key: &str) -> Option<usize> {
        self.tables
            .binary_search_by(|table| table.table_key.as_str().cmp(table_key))
            .ok()
    }

    /// Up to five names of a kind for an error, and how many more there are.
    pub(crate) fn known(&self, kind: TableKind) -> String {
        let named = || self.tables.iter().filter(|t| t.kind == kind);
        let mut text = named()
            .take(5)
            .map(|t| t.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        match named().count() {
            0 => text.push_str("none"),
            n if n > 5 => text.push_str(&format!(" and {} more", n - 5)),
            _ => {}
        }
        text
    }
}

impl TableType {
    /// The index of the property of this name.
    pub fn property(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The column of a member, in the spelling of the schema's vintage. [`Error::Internal`] for a property
    /// that the type does not have.
    pub fn column(&self, member: Member) -> Result<&str> {
        match member {
            Member::System(role) => Ok(self.vintage.column(role)),
            Member::Property(index) => match self.properties.get(index) {
                Some(property) => Ok(&property.name),
                None => Err(Error::internal(format!(
                    "{} has no property {index}",
                    self.table_key
                ))),
            },
        }
    }
}

impl Property {
    /// True for a Blob.
    pub fn is_blob(&self) -> bool {
        self.prop_type.scalar == Scalar::Blob
    }
}

/// The declaration of a table.
enum Source<'a> {
    Node(&'a NodeIr),
    Edge(&'a EdgeIr),
}

impl Source<'_> {
    fn table_key(&self) -> String {
        match self {
            Self::Node(node) => format!("node:{}", node.name),
            Self::Edge(edge) => format!("edge:{}", edge.name),
        }
    }

    fn table(
        &self,
        vintage: Vintage,
        declared: DeclaredTable,
        nodes: &HashMap<u64, usize>,
    ) -> Result<TableType> {
        let (kind, name, properties, constraints) = match self {
            Self::Node(node) => (
                TableKind::Node,
                &node.name,
                &node.properties,
                &node.constraints,
            ),
            Self::Edge(edge) => (
                TableKind::Edge,
                &edge.name,
                &edge.properties,
                &edge.constraints,
            ),
        };
        let (cardinality, endpoints) = match self {
            Self::Node(_) => (None, None),
            Self::Edge(edge) => {
                let end = |reference: &graph::schema::ir::TypeRef| {
                    nodes.get(&reference.type_id).copied().ok_or_else(|| {
                        Error::internal(format!(
                            "the endpoint type {} does not exist",
                            reference.type_name
                        ))
                    })
                };
                (
                    Some(edge.cardinality),
                    Some((end(&edge.from_type)?, end(&edge.to_type)?)),
                )
            }
        };
        let mut table = TableType {
            table_key: declared.table_key,
            kind,
            name: name.clone(),
            identity: declared.identity,
            schema: Arc::new(declared.schema),
            by_name: properties
                .iter()
                .enumerate()
                .map(|(i, p)| (p.name.clone(), i))
                .collect(),
            properties: properties.iter().map(Property::of).collect(),
            key: None,
            unique: Vec::new(),
            cardinality,
            endpoints,
            vintage,
        };
        for constraint in constraints {
            table.constrain(constraint)?;
        }
        Ok(table)
    }
}

impl Property {
    fn of(ir: &PropertyIr) -> Self {
        Self {
            name: ir.name.clone(),
            id: ir.property_id,
            prop_type: ir.prop_type.clone(),
            rules: Rules::default(),
        }
    }
}

impl TableType {
    fn constrain(&mut self, constraint: &ConstraintIr) -> Result<()> {
        match constraint {
            ConstraintIr::Key { fields } => {
                let mut members = self.members(fields)?;
                members.sort_by_key(|member| match *member {
                    Member::System(role) => (0, role as u64),
                    Member::Property(index) => (1, self.properties.get(index).map_or(0, |p| p.id)),
                });
                self.check_key(&members)?;
                self.key = Some(members);
            }
            ConstraintIr::Unique { fields } => {
                let members = self.members(fields)?;
                self.unique.push(members);
            }
            ConstraintIr::Index { .. } => {}
            ConstraintIr::Range { field, min, max } => {
                let property = self.rule_of(field)?;
                property.rules.add_range(*min, *max);
            }
            ConstraintIr::Check { field, pattern } => {
                let property = self.rule_of(field)?;
                property.rules.add_check(pattern);
            }
        }
        Ok(())
    }

    fn members(&self, fields: &[FieldRef]) -> Result<Vec<Member>> {
        fields
            .iter()
            .map(|field| match field {
                FieldRef::System(system) => Ok(Member::System(system.role)),
                FieldRef::Property(reference) => self.index_of(reference).map(Member::Property),
            })
            .collect()
    }

    fn index_of(&self, reference: &PropertyRef) -> Result<usize> {
        self.properties
            .iter()
            .position(|p| p.id == reference.property_id)
            .ok_or_else(|| {
                Error::internal(format!(
                    "a constraint names the property {}, which does not exist",
                    reference.property_name
                ))
            })
    }

    fn rule_of(&mut self, field: &FieldRef) -> Result<&mut Property> {
        let FieldRef::Property(reference) = field else {
            return Err(Error::internal("@range or @check on a system column"));
        };
        let index = self.index_of(reference)?;
        self.properties
            .get_mut(index)
            .ok_or_else(|| Error::internal("a constraint names no property"))
    }

    /// A key is the identity, so what it is made of must be text that never changes (4.5).
    fn check_key(&self, members: &[Member]) -> Result<()> {
        let roles = members.iter().filter_map(|m| match m {
            Member::System(role) => Some(*role),
            Member::Property(_) => None,
        });
        let wanted: &[SystemRole] = match self.kind {
            TableKind::Node => &[],
            TableKind::Edge => &[SystemRole::Src, SystemRole::Dst],
        };
        let scalars = members.iter().all(|m| match *m {
            Member::System(_) => true,
            Member::Property(index) => self
                .properties
                .get(index)
                .is_some_and(|p| p.prop_type.scalar.is_plain() && !p.prop_type.list),
        });
        if members.is_empty() || !roles.eq(wanted.iter().copied()) || !scalars || self.key.is_some()
        {
            return Err(Error::internal(
                "the key is not one tuple of scalars, with both endpoints first on an edge",
            ));
        }
        Ok(())
    }
}
