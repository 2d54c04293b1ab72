//! Validation of an IR (`docs/format/tables-and-schema.md` 5.5).
//!
//! What the section does not list passes: a contract is also required to be what its source compiles to,
//! and that comparison catches the rest.

mod references;

use std::collections::HashSet;

use super::read::check_version;
use super::{ConstraintIr, FieldRef, IrError, PropertyIr, SchemaIr};
use crate::schema::names::{self, OwnerKind};
use crate::schema::types::{Annotation, TYPED_ANNOTATIONS};
use crate::schema::vintage::{SystemRole, Vintage};
use crate::ulids;

/// A declaration as the checks see it.
#[derive(Clone, Copy)]
struct Declaration<'a> {
    kind: OwnerKind,
    name: &'a str,
    type_id: u64,
    /// 0 for an interface, which has no table.
    incarnation: u64,
    annotations: &'a [Annotation],
    properties: &'a [PropertyIr],
    constraints: &'a [ConstraintIr],
}

impl Declaration<'_> {
    fn invalid(&self, message: impl std::fmt::Display) -> IrError {
        IrError::Invalid(format!("{} {}: {message}", self.kind, self.name))
    }

    fn invalid_property(&self, property: &PropertyIr, message: impl std::fmt::Display) -> IrError {
        IrError::Invalid(format!(
            "{} {}.{}: {message}",
            self.kind, self.name, property.name
        ))
    }
}

impl SchemaIr {
    /// Apply every rule that an accepted IR must meet.
    pub fn validate(&self) -> Result<(), IrError> {
        let has_edge_key = self
            .edges
            .iter()
            .flat_map(|e| &e.constraints)
            .any(|c| matches!(c, ConstraintIr::Key { .. }));
        check_version(self.ir_version, &self.features, has_edge_key)?;
        if !ulids::is_canonical(&self.schema_identity_domain) {
            return Err(IrError::Invalid(format!(
                "the identity domain '{}' is no canonical ULID",
                self.schema_identity_domain
            )));
        }
        let declarations: Vec<Declaration<'_>> = self.declarations().collect();
        self.check_ids(&declarations)?;
        let kinds = [OwnerKind::Interface, OwnerKind::Node, OwnerKind::Edge];
        for kind in kinds {
            let names = declarations
                .iter()
                .filter(|d| d.kind == kind)
                .map(|d| d.name);
            if let Some((before, after)) = first_unordered(names) {
                return Err(IrError::Invalid(format!(
                    "{kind} names are not strictly ascending: '{after}' follows '{before}'"
                )));
            }
        }
        for declaration in &declarations {
            check_declaration(declaration, self.vintage())?;
        }
        references::check(self, &declarations)?;
        declarations.iter().try_for_each(check_keys)
    }

    fn declarations(&self) -> impl Iterator<Item = Declaration<'_>> {
        let interfaces = self.interfaces.iter().map(|i| Declaration {
            kind: OwnerKind::Interface,
            name: &i.name,
            type_id: i.type_id,
            incarnation: 0,
            annotations: &[],
            properties: &i.properties,
            constraints: &[],
        });
        let nodes = self.nodes.iter().map(|n| Declaration {
            kind: OwnerKind::Node,
            name: &n.name,
            type_id: n.type_id,
            incarnation: n.table_incarnation_id,
            annotations: &n.annotations,
            properties: &n.properties,
            constraints: &n.constraints,
        });
        let edges = self.edges.iter().map(|e| Declaration {
            kind: OwnerKind::Edge,
            name: &e.name,
            type_id: e.type_id,
            incarnation: e.table_incarnation_id,
            annotations: &e.annotations,
            properties: &e.properties,
            constraints: &e.constraints,
        });
        interfaces.chain(nodes).chain(edges)
    }

    /// One allocator hands out the ids of types, properties and incarnations.
    fn check_ids(&self, declarations: &[Declaration<'_>]) -> Result<(), IrError> {
        let next = self.next_identity_id;
        if next == 0 {
            return Err(IrError::Invalid("next_identity_id is 0".into()));
        }
        let mut used = HashSet::new();
        for declaration in declarations {
            let tables =
                (declaration.kind != OwnerKind::Interface).then_some(declaration.incarnation);
            let properties = declaration.properties.iter().map(|p| p.property_id);
            for id in [declaration.type_id]
                .into_iter()
                .chain(tables)
                .chain(properties)
            {
                if id == 0 {
                    return Err(declaration.invalid("an id is 0"));
                }
                if id >= next {
                    return Err(declaration
                        .invalid(format!("id {id} is in use, but next_identity_id is {next}")));
                }
                if !used.insert(id) {
                    return Err(declaration.invalid(format!("id {id} is used twice")));
                }
            }
        }
        Ok(())
    }
}

fn check_declaration(declaration: &Declaration<'_>, vintage: Vintage) -> Result<(), IrError> {
    if let Some(problem) = annotation_problem(declaration.annotations) {
        return Err(declaration.invalid(problem));
    }
    let names = declaration.properties.iter().map(|p| p.name.as_str());
    if let Some((before, after)) = first_unordered(names) {
        return Err(declaration.invalid(format!(
            "property names are not strictly ascending: '{after}' follows '{before}'"
        )));
    }
    for property in declaration.properties {
        if let Some(reason) = names::reserved(&property.name, declaration.kind, vintage) {
            return Err(declaration.invalid_property(property, reason));
        }
        if let Some(problem) = annotation_problem(&property.annotations) {
            return Err(declaration.invalid_property(property, problem));
        }
        let values = property.prop_type.enum_values.iter().flatten();
        if first_unordered(values).is_some() {
            let message = "enum values are not strictly ascending";
            return Err(declaration.invalid_property(property, message));
        }
        if first_unordered(property.property_constraints.iter()).is_some() {
            let message = "property constraints are not strictly ascending";
            return Err(declaration.invalid_property(property, message));
        }
        check_provenance(declaration, property)?;
    }
    let keys = declaration
        .constraints
        .iter()
        .map(|c| c.shape(vintage).sort_key());
    if let Some((before, after)) = first_unordered(keys) {
        return Err(declaration.invalid(format!(
            "constraints are not strictly ascending: '{after}' follows '{before}'"
        )));
    }
    Ok(())
}

fn check_provenance(declaration: &Declaration<'_>, property: &PropertyIr) -> Result<(), IrError> {
    let linked = !property.satisfies_interface_properties.is_empty();
    let problem = match declaration.kind {
        OwnerKind::Interface if !property.declared_directly || linked => {
            "a property of an interface has the provenance of a node's"
        }
        OwnerKind::Node if !property.declared_directly && !linked => {
            "the property is injected, but by no interface"
        }
        OwnerKind::Edge if !property.declared_directly || linked => {
            "a property of an edge has the provenance of an interface's"
        }
        OwnerKind::Edge if property.embed_source.is_some() => {
            "a property of an edge embeds another"
        }
        _ => return Ok(()),
    };
    Err(declaration.invalid_property(property, problem))
}

/// What a runtime needs of a key, beyond references that hold.
fn check_keys(declaration: &Declaration<'_>) -> Result<(), IrError> {
    for constraint in declaration.constraints {
        let ConstraintIr::Key { fields } = constraint else {
            continue;
        };
        let roles: Vec<SystemRole> = fields
            .iter()
            .filter_map(|field| match field {
                FieldRef::System(system) => Some(system.role),
                FieldRef::Property(_) => None,
            })
            .collect();
        let problem = if declaration.kind == OwnerKind::Edge {
            let mut members: Vec<&str> =
                fields.iter().map(|f| f.member(Vintage::Current)).collect();
            members.sort_unstable();
            if roles.contains(&SystemRole::Id) {
                "the key names the id"
            } else if !roles.contains(&SystemRole::Src) || !roles.contains(&SystemRole::Dst) {
                "the key lacks an endpoint"
            } else if first_unordered(members.into_iter()).is_some() {
                "the key repeats a member"
            } else {
                continue;
            }
        } else if fields.is_empty() {
            "the key is empty"
        } else if !roles.is_empty() {
            "the key names a system column"
        } else {
            continue;
        };
        return Err(declaration.invalid(problem));
    }
    Ok(())
}

/// Why a list of annotations is not one of metadata in canonical order.
fn annotation_problem(annotations: &[Annotation]) -> Option<String> {
    if let Some(typed) = annotations
        .iter()
        .find(|a| TYPED_ANNOTATIONS.contains(&a.name.as_str()))
    {
        return Some(format!("@{} is kept as metadata", typed.name));
    }
    first_unordered(annotations.iter().map(Annotation::sort_key)).map(|(before, after)| {
        format!("annotations are not strictly ascending: {after} follows {before}")
    })
}

/// The first pair of neighbours that is not strictly ascending.
fn first_unordered<T: Ord + Clone>(items: impl Iterator<Item = T>) -> Option<(T, T)> {
    let mut previous: Option<T> = None;
    for item in items {
        if let Some(before) = previous.filter(|before| *before >= item) {
            return Some((before, item));
        }
        previous = Some(item);
    }
    None
}
