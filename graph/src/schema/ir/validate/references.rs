//! The references of an IR: each names identity and name, and both must hold.

use std::collections::{HashMap, HashSet};

use super::Declaration;
use crate::schema::ir::{
    FieldRef, InterfaceIr, IrError, NodeIr, PropertyIr, PropertyRef, SchemaIr, SystemRef, TypeRef,
};
use crate::schema::names::OwnerKind;
use crate::schema::vintage::SystemRole;

type PropertiesById<'a> = HashMap<u64, &'a PropertyIr>;

/// Check every reference; ids are known to be unique.
pub fn check(ir: &SchemaIr, declarations: &[Declaration<'_>]) -> Result<(), IrError> {
    let interfaces: HashMap<u64, Interface<'_>> = ir
        .interfaces
        .iter()
        .map(|i| (i.type_id, Interface::new(i)))
        .collect();
    let nodes: HashMap<u64, &str> = ir
        .nodes
        .iter()
        .map(|n| (n.type_id, n.name.as_str()))
        .collect();
    for declaration in declarations {
        let own = by_id(declaration.properties);
        for property in declaration.properties {
            if let Some(embed) = &property.embed_source
                && let Some(problem) = property_problem(&embed.source, declaration, &own)
            {
                return Err(declaration.invalid_property(property, format!("@embed: {problem}")));
            }
        }
        for field in declaration.constraints.iter().flat_map(|c| c.fields()) {
            if let Some(problem) = field_problem(field, declaration, &own) {
                return Err(declaration.invalid(format!("constraint: {problem}")));
            }
        }
    }
    for (node, declaration) in ir
        .nodes
        .iter()
        .zip(declarations.iter().filter(|d| d.kind == OwnerKind::Node))
    {
        check_node(node, declaration, &interfaces)?;
    }
    for (edge, declaration) in ir
        .edges
        .iter()
        .zip(declarations.iter().filter(|d| d.kind == OwnerKind::Edge))
    {
        for TypeRef { type_id, type_name } in [&edge.from_type, &edge.to_type] {
            if nodes.get(type_id).copied() != Some(type_name.as_str()) {
                return Err(declaration.invalid(format!(
                    "endpoint {type_name} ({type_id}) is no node type of that name and id"
                )));
            }
        }
    }
    Ok(())
}

struct Interface<'a> {
    ir: &'a InterfaceIr,
    properties: PropertiesById<'a>,
}

impl<'a> Interface<'a> {
    fn new(ir: &'a InterfaceIr) -> Self {
        Self {
            ir,
            properties: by_id(&ir.properties),
        }
    }
}

fn by_id(properties: &[PropertyIr]) -> PropertiesById<'_> {
    properties.iter().map(|p| (p.property_id, p)).collect()
}

fn check_node(
    node: &NodeIr,
    declaration: &Declaration<'_>,
    interfaces: &HashMap<u64, Interface<'_>>,
) -> Result<(), IrError> {
    let mut implemented: HashSet<u64> = HashSet::new();
    for TypeRef { type_id, type_name } in &node.implements {
        if interfaces
            .get(type_id)
            .is_none_or(|i| i.ir.name != *type_name)
        {
            return Err(declaration.invalid(format!(
                "it implements {type_name} ({type_id}), which is no interface of that name and id"
            )));
        }
        implemented.insert(*type_id);
    }
    let mut linked: HashSet<u64> = HashSet::new();
    for property in &node.properties {
        let links = &property.satisfies_interface_properties;
        if links.iter().zip(links.iter().skip(1)).any(|(a, b)| a >= b) {
            let message = "satisfaction links are not strictly ascending";
            return Err(declaration.invalid_property(property, message));
        }
        for link in links {
            if let Some(problem) = link_problem(link, property, &implemented, interfaces) {
                return Err(declaration.invalid_property(property, problem));
            }
            linked.insert(link.property_id);
        }
    }
    for interface in implemented.iter().filter_map(|id| interfaces.get(id)) {
        if let Some(missing) = interface
            .ir
            .properties
            .iter()
            .find(|p| !linked.contains(&p.property_id))
        {
            return Err(declaration.invalid(format!(
                "nothing satisfies {}.{}",
                interface.ir.name, missing.name
            )));
        }
    }
    Ok(())
}

fn link_problem(
    link: &PropertyRef,
    property: &PropertyIr,
    implemented: &HashSet<u64>,
    interfaces: &HashMap<u64, Interface<'_>>,
) -> Option<String> {
    let target = format!("{}.{}", link.owner_type_name, link.property_name);
    let interface = interfaces
        .get(&link.owner_type_id)
        .filter(|_| implemented.contains(&link.owner_type_id));
    let Some(interface) = interface.filter(|i| i.ir.name == link.owner_type_name) else {
        return Some(format!(
            "it satisfies {target} of no interface that the node implements"
        ));
    };
    match interface.properties.get(&link.property_id) {
        Some(p) if p.name != link.property_name => Some(format!(
            "it satisfies {target}, whose id is that of '{}'",
            p.name
        )),
        Some(p) if p.prop_type != property.prop_type => Some(format!(
            "it satisfies {target}, but is {} and not {}",
            property.prop_type, p.prop_type
        )),
        Some(_) => None,
        None => Some(format!("it satisfies {target}, which does not exist")),
    }
}

/// Why a reference is not to a property of the declaration itself.
fn property_problem(
    reference: &PropertyRef,
    declaration: &Declaration<'_>,
    own: &PropertiesById<'_>,
) -> Option<String> {
    let PropertyRef {
        owner_type_id,
        owner_type_name,
        property_id,
        property_name,
    } = reference;
    if *owner_type_id != declaration.type_id || owner_type_name != declaration.name {
        return Some(format!(
            "'{property_name}' is said to be of {owner_type_name} ({owner_type_id})"
        ));
    }
    match own.get(property_id) {
        Some(property) if property.name == *property_name => None,
        _ => Some(format!(
            "'{property_name}' ({property_id}) is no property of that name and id"
        )),
    }
}

fn field_problem(
    field: &FieldRef,
    declaration: &Declaration<'_>,
    own: &PropertiesById<'_>,
) -> Option<String> {
    match field {
        FieldRef::Property(property) => property_problem(property, declaration, own),
        FieldRef::System(SystemRef {
            stable_table_id,
            table_type_name,
            table_incarnation_id,
            role,
        }) => {
            if *stable_table_id != declaration.type_id
                || table_type_name != declaration.name
                || *table_incarnation_id != declaration.incarnation
            {
                return Some(format!(
                    "the system column '{}' is said to be of {table_type_name} ({stable_table_id}, {table_incarnation_id})",
                    role.name()
                ));
            }
            if declaration.kind == OwnerKind::Node && *role != SystemRole::Id {
                return Some(format!("a node has no system column '{}'", role.name()));
            }
            None
        }
    }
}
