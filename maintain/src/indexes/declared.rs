//! Which indexes a schema declares (`docs/format/maintenance.md` 3). Pure.

use std::collections::BTreeMap;

use graph::schema::ir::{ConstraintIr, FieldRef, PropertyIr, SchemaIr};
use graph::schema::types::{PropType, PropertyConstraint, Scalar};
use graph::schema::vintage::SystemRole;
use serde::Serialize;

/// The kind of an index as reports spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexKind {
    /// Of a system column, an enum or an orderable scalar.
    Btree,
    /// Of any other String.
    FullText,
    /// Of a vector.
    Vector,
}

/// An index over one column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredIndex {
    /// Physical column.
    pub column: String,
    /// Its kind.
    pub kind: IndexKind,
}

/// The indexes of every table a schema declares, by table key; system columns first, then properties in the order of
/// the IR. A column that no index serves (Blob, a list) has none.
pub fn declared(ir: &SchemaIr) -> BTreeMap<String, Vec<DeclaredIndex>> {
    let nodes = ir.nodes.iter().map(|node| {
        (
            format!("node:{}", node.name),
            of_table(
                ir,
                &[SystemRole::Id],
                node.type_id,
                &node.properties,
                &node.constraints,
            ),
        )
    });
    let edges = ir.edges.iter().map(|edge| {
        (
            format!("edge:{}", edge.name),
            of_table(
                ir,
                &SystemRole::ALL,
                edge.type_id,
                &edge.properties,
                &edge.constraints,
            ),
        )
    });
    nodes.chain(edges).collect()
}

fn of_table(
    ir: &SchemaIr,
    roles: &[SystemRole],
    owner: u64,
    properties: &[PropertyIr],
    constraints: &[ConstraintIr],
) -> Vec<DeclaredIndex> {
    let vintage = ir.vintage();
    let system = roles.iter().map(|role| DeclaredIndex {
        column: vintage.column(*role).to_string(),
        kind: IndexKind::Btree,
    });
    let own = properties.iter().filter_map(|property| {
        let wanted = property
            .property_constraints
            .iter()
            .any(|c| matches!(c, PropertyConstraint::Key | PropertyConstraint::Index))
            || constraints
                .iter()
                .any(|c| names_alone(c, owner, property.property_id));
        let kind = kind_of(&property.prop_type)?;
        wanted.then(|| DeclaredIndex {
            column: property.name.clone(),
            kind,
        })
    });
    system.chain(own).collect()
}

/// Whether a `@key` or `@index` has this property as its only member.
fn names_alone(constraint: &ConstraintIr, owner: u64, property_id: u64) -> bool {
    let (ConstraintIr::Key { fields } | ConstraintIr::Index { fields }) = constraint else {
        return false;
    };
    matches!(fields.as_slice(), [FieldRef::Property(p)]
        if p.owner_type_id == owner && p.property_id == property_id)
}

/// The kind of index a column of this type gets; `None` for one that cannot have any.
pub fn kind_of(of: &PropType) -> Option<IndexKind> {
    if of.list {
        return None;
    }
    match of.scalar {
        Scalar::Blob => None,
        Scalar::Vector(_) => Some(IndexKind::Vector),
        Scalar::String if of.enum_values.is_none() => Some(IndexKind::FullText),
        _ => Some(IndexKind::Btree),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use graph::schema::{ParseMode, Vintage, compile, resolve};

    fn ir(source: &str) -> SchemaIr {
        let compiled = compile(source, ParseMode::Admission, Some(Vintage::Current)).unwrap();
        resolve(
            &compiled,
            None,
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            Vintage::Current,
        )
        .unwrap()
    }

    #[test]
    fn kinds_by_type() {
        let plain = |scalar| PropType {
            scalar,
            nullable: true,
            list: false,
            enum_values: None,
        };
        let cases = [
            (plain(Scalar::String), Some(IndexKind::FullText)),
            (plain(Scalar::I32), Some(IndexKind::Btree)),
            (plain(Scalar::Bool), Some(IndexKind::Btree)),
            (plain(Scalar::DateTime), Some(IndexKind::Btree)),
            (plain(Scalar::Vector(4)), Some(IndexKind::Vector)),
            (plain(Scalar::Blob), None),
            (
                PropType {
                    enum_values: Some(vec!["a".into()]),
                    ..plain(Scalar::String)
                },
                Some(IndexKind::Btree),
            ),
            (
                PropType {
                    list: true,
                    ..plain(Scalar::String)
                },
                None,
            ),
        ];
        for (of, kind) in cases {
            assert_eq!(kind_of(&of), kind, "{of}");
        }
    }

    #[test]
    fn only_single_members_count() {
        let ir = ir(
            "node Place {\n  code: String @key\n  kind: enum(a, b) @index\n  size: I64?\n  note: String?\n  \
             at: Vector(4)? @index\n  tags: [String]?\n  plain: I64?\n  @index(size)\n  @index(plain, note)\n}\n\
             edge Near: Place -> Place {\n  since: Date? @index\n}\n",
        );
        let all = declared(&ir);
        let names = |key: &str| {
            all[key]
                .iter()
                .map(|d| format!("{} {:?}", d.column, d.kind))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("node:Place"),
            [
                "__id Btree",
                "at Vector",
                "code FullText",
                "kind Btree",
                "size Btree"
            ]
        );
        assert_eq!(
            names("edge:Near"),
            ["__id Btree", "__src Btree", "__dst Btree", "since Btree"]
        );
    }
}
