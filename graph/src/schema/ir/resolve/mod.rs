//! Identity resolution: a compiled source against the accepted IR, or against none
//! (`docs/format/tables-and-schema.md` 5.4).
//!
//! This allocates identities; it does not decide whether a change is one that a schema apply allows.

mod accepted;
mod build;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use self::accepted::{Accepted, Kept};
use self::build::Build;
use super::{
    ConstraintIr, EDGE_KEYS, EdgeIr, IR_VERSION_BASE, IR_VERSION_FEATURES, InterfaceIr, NodeIr,
    SYSTEM_COLUMNS, SchemaIr,
};
use crate::error::{Error, Result};
use crate::schema::names::OwnerKind;
use crate::schema::shape::PropertyShape;
use crate::schema::source::Compiled;
use crate::schema::vintage::Vintage;

/// Give a compiled source its identities.
///
/// What the accepted IR has under the same name, or under the old name of a `@rename_from`, keeps its
/// ids; the rest gets new ones. Without an accepted IR everything is new and hints are inert. A
/// `domain` other than the accepted one, a hint that does not fit, and a result that breaks a rule of
/// an IR are [`Error::Refused`].
pub fn resolve(
    compiled: &Compiled,
    accepted: Option<&SchemaIr>,
    domain: &str,
    vintage: Vintage,
) -> Result<SchemaIr> {
    if let Some(ir) = accepted
        && ir.schema_identity_domain != domain
    {
        return Err(Error::refused(format!(
            "the accepted schema is of identity domain {}, not {domain}",
            ir.schema_identity_domain
        )));
    }
    let shape = compiled.shape.clone().respelled(vintage);
    let mut allocator = Allocator {
        next: accepted.map_or(1, |ir| ir.next_identity_id),
    };
    let old = Accepted::new(accepted);
    let hints = &compiled.hints;

    let kept = [
        old.keep_types(
            OwnerKind::Interface,
            shape.interfaces.iter().map(|i| &i.name),
            hints,
        )?,
        old.keep_types(OwnerKind::Node, shape.nodes.iter().map(|n| &n.name), hints)?,
        old.keep_types(OwnerKind::Edge, shape.edges.iter().map(|e| &e.name), hints)?,
    ];
    let mut types: Types<'_> = BTreeMap::new();
    for (kind, kept) in [OwnerKind::Interface, OwnerKind::Node, OwnerKind::Edge]
        .into_iter()
        .zip(kept)
    {
        for (name, kept) in kept {
            let type_id = match kept {
                Some(kept) => kept.type_id,
                None => allocator.take()?,
            };
            let ids = Ids {
                type_id,
                incarnation: 0,
                kept,
            };
            types.entry(kind).or_default().insert(name, ids);
        }
    }

    let interfaces = shape
        .interfaces
        .iter()
        .map(|i| (OwnerKind::Interface, &i.name, &i.properties));
    let nodes = shape
        .nodes
        .iter()
        .map(|n| (OwnerKind::Node, &n.name, &n.properties));
    let edges = shape
        .edges
        .iter()
        .map(|e| (OwnerKind::Edge, &e.name, &e.properties));
    let mut owners: Vec<(u64, OwnerKind, &String, &Vec<PropertyShape>)> = Vec::new();
    for (kind, name, properties) in interfaces.chain(nodes).chain(edges) {
        owners.push((ids(&types, kind, name)?.type_id, kind, name, properties));
    }
    owners.sort_by_key(|owner| owner.0);
    let mut properties: PropertyIds<'_> = HashMap::new();
    for (type_id, kind, name, declared) in owners {
        let kept = ids(&types, kind, name)?.kept;
        let ids = old.keep_properties(kind, name, kept, declared, hints)?;
        for (property, kept) in declared.iter().zip(ids) {
            let id = match kept {
                Some(id) => id,
                None => allocator.take()?,
            };
            properties
                .entry(type_id)
                .or_default()
                .insert(property.name.as_str(), id);
        }
    }

    let mut tables: Vec<&mut Ids<'_>> = types
        .iter_mut()
        .filter(|(kind, _)| **kind != OwnerKind::Interface)
        .flat_map(|(_, types)| types.values_mut())
        .collect();
    tables.sort_by_key(|ids| ids.type_id);
    for table in tables {
        table.incarnation = match table.kept {
            Some(kept) => kept.incarnation,
            None => allocator.take()?,
        };
    }

    let build = Build {
        types: &types,
        properties: &properties,
        vintage,
    };
    let mut ir = SchemaIr {
        ir_version: IR_VERSION_BASE,
        features: BTreeSet::new(),
        schema_identity_domain: domain.to_string(),
        next_identity_id: allocator.next,
        interfaces: Vec::with_capacity(shape.interfaces.len()),
        nodes: Vec::with_capacity(shape.nodes.len()),
        edges: Vec::with_capacity(shape.edges.len()),
    };
    for interface in &shape.interfaces {
        let owner = build.owner(OwnerKind::Interface, &interface.name)?;
        ir.interfaces.push(InterfaceIr {
            name: interface.name.clone(),
            type_id: owner.ids.type_id,
            properties: build.properties(&owner, &interface.properties)?,
        });
    }
    for node in &shape.nodes {
        let owner = build.owner(OwnerKind::Node, &node.name)?;
        let mut implements = node
            .implements
            .iter()
            .map(|name| build.type_ref(OwnerKind::Interface, name))
            .collect::<Result<Vec<_>>>()?;
        implements.sort();
        ir.nodes.push(NodeIr {
            name: node.name.clone(),
            type_id: owner.ids.type_id,
            table_incarnation_id: owner.ids.incarnation,
            annotations: node.annotations.clone(),
            implements,
            properties: build.properties(&owner, &node.properties)?,
            constraints: build.constraints(&owner, &node.constraints)?,
        });
    }
    for edge in &shape.edges {
        let owner = build.owner(OwnerKind::Edge, &edge.name)?;
        ir.edges.push(EdgeIr {
            name: edge.name.clone(),
            type_id: owner.ids.type_id,
            table_incarnation_id: owner.ids.incarnation,
            from_type: build.type_ref(OwnerKind::Node, &edge.from_type)?,
            to_type: build.type_ref(OwnerKind::Node, &edge.to_type)?,
            cardinality: edge.cardinality,
            annotations: edge.annotations.clone(),
            properties: build.properties(&owner, &edge.properties)?,
            constraints: build.constraints(&owner, &edge.constraints)?,
        });
    }
    stamp(&mut ir, vintage);
    ir.validate().map_err(|e| Error::refused(e.to_string()))?;
    Ok(ir)
}

/// Derive features and version: no feature gives the base version.
fn stamp(ir: &mut SchemaIr, vintage: Vintage) {
    if vintage == Vintage::Current {
        ir.features.insert(SYSTEM_COLUMNS.to_string());
    }
    let mut constraints = ir.edges.iter().flat_map(|e| &e.constraints);
    if constraints.any(|c| matches!(c, ConstraintIr::Key { .. })) {
        ir.features.insert(EDGE_KEYS.to_string());
    }
    if !ir.features.is_empty() {
        ir.ir_version = IR_VERSION_FEATURES;
    }
}

/// Hands out ids, each once.
struct Allocator {
    next: u64,
}

impl Allocator {
    fn take(&mut self) -> Result<u64> {
        let id = self.next;
        self.next = id
            .checked_add(1)
            .ok_or_else(|| Error::refused("the graph has used up its schema identities"))?;
        Ok(id)
    }
}

/// The identities of one declaration of the new schema.
struct Ids<'a> {
    type_id: u64,
    incarnation: u64,
    kept: Option<Kept<'a>>,
}

/// Identities by kind and name.
type Types<'a> = BTreeMap<OwnerKind, BTreeMap<&'a str, Ids<'a>>>;
/// Property ids by owner and name.
type PropertyIds<'a> = HashMap<u64, HashMap<&'a str, u64>>;

fn ids<'t, 'a>(types: &'t Types<'a>, kind: OwnerKind, name: &str) -> Result<&'t Ids<'a>> {
    types
        .get(&kind)
        .and_then(|types| types.get(name))
        .ok_or_else(|| Error::internal(format!("{kind} {name} is named but not declared")))
}
