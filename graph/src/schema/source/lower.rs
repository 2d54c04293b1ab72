//! From the tree to the shape: interfaces are merged into nodes and every rule is applied
//! (`docs/format/tables-and-schema.md` 4.3 to 4.7 and 5.1).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::ast;
use super::budget::{Budget, Exceeded};
use super::constraints::Owner;
use super::properties::{Effective, Properties, metadata, rename_hint};
use super::{CompileOptions, SourceError};
use crate::schema::MAX_SCHEMA_BYTES;
use crate::schema::names::OwnerKind;
use crate::schema::shape::{
    ConstraintShape, EdgeShape, InterfacePropertyShape, InterfaceShape, NodeShape, SchemaShape,
};
use crate::schema::text::{FloatSpelling, compact};
use crate::schema::types::Cardinality;

/// A source compiled: what it declares, and the hints by which a changed one keeps identities.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The shape, endpoints spelled as in the source; see [`SchemaShape::respelled`].
    pub shape: SchemaShape,
    /// The `@rename_from` hints, which are no part of the shape.
    pub hints: RenameHints,
}

/// Old names by what has the new name (`docs/format/tables-and-schema.md` 5.4).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenameHints {
    /// Of node and edge types.
    pub types: BTreeMap<(OwnerKind, String), String>,
    /// Of properties, by kind of owner, owner and property.
    pub properties: BTreeMap<(OwnerKind, String, String), String>,
}

/// What JSON punctuation and member names add to a property, constraint member or link, roughly.
const OVERHEAD: usize = 128;

/// Compile a parsed source.
pub fn lower(
    source: &str,
    file: &ast::File,
    options: CompileOptions,
) -> Result<Compiled, SourceError> {
    let mut lowering = Lowering {
        source,
        options,
        budget: Budget::new(MAX_SCHEMA_BYTES),
        hints: RenameHints::default(),
    };
    let interfaces = lowering.interfaces(file)?;
    let node_names: HashSet<&str> = file.nodes.iter().map(|n| n.name.text.as_str()).collect();
    let mut shape = SchemaShape {
        interfaces: interfaces
            .iter()
            .map(|(name, interface)| InterfaceShape {
                name: (*name).to_string(),
                properties: interface
                    .properties
                    .values()
                    .map(Effective::shape)
                    .collect(),
            })
            .collect(),
        nodes: Vec::with_capacity(file.nodes.len()),
        edges: Vec::with_capacity(file.edges.len()),
    };
    lowering.unique_names("node type", file.nodes.iter().map(|n| &n.name))?;
    for node in &file.nodes {
        shape.nodes.push(lowering.node(node, &interfaces)?);
    }
    lowering.unique_edges(file)?;
    for edge in &file.edges {
        shape.edges.push(lowering.edge(edge, &node_names)?);
    }
    shape.nodes.sort_by(|a, b| a.name.cmp(&b.name));
    shape.edges.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Compiled {
        shape,
        hints: lowering.hints,
    })
}

/// An interface with the facts that every node implementing it takes over.
struct InterfaceFacts<'a> {
    properties: Properties<'a>,
    /// Bytes that injecting each property costs.
    weights: HashMap<&'a str, usize>,
}

/// The state of one compilation.
pub struct Lowering<'s> {
    source: &'s str,
    pub(super) options: CompileOptions,
    budget: Budget,
    hints: RenameHints,
}

impl<'s> Lowering<'s> {
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> SourceError {
        SourceError::at(self.source, at, message)
    }

    fn spend(&mut self, at: usize, bytes: usize) -> Result<(), SourceError> {
        self.budget.spend(bytes).map_err(|Exceeded { limit }| {
            self.error(
                at,
                format!("the schema compiles to more than {limit} bytes from here on"),
            )
        })
    }

    fn unique_names<'n>(
        &self,
        what: &str,
        names: impl Iterator<Item = &'n ast::Name>,
    ) -> Result<(), SourceError> {
        let mut seen = HashSet::new();
        for name in names {
            if !seen.insert(name.text.as_str()) {
                return Err(self.error(name.at, format!("{what} {} is declared twice", name.text)));
            }
        }
        Ok(())
    }

    fn unique_edges(&self, file: &ast::File) -> Result<(), SourceError> {
        self.unique_names("edge type", file.edges.iter().map(|e| &e.name))?;
        let mut seen: HashMap<String, &str> = HashMap::new();
        for edge in &file.edges {
            let name = &edge.name;
            if let Some(other) = seen.insert(name.text.to_ascii_lowercase(), &name.text) {
                return Err(self.error(
                    name.at,
                    format!("edge type {} differs from {other} only in case", name.text),
                ));
            }
        }
        Ok(())
    }

    fn interfaces<'a>(
        &mut self,
        file: &'a ast::File,
    ) -> Result<BTreeMap<&'a str, InterfaceFacts<'a>>, SourceError> {
        self.unique_names("interface", file.interfaces.iter().map(|i| &i.name))?;
        let mut interfaces = BTreeMap::new();
        for interface in &file.interfaces {
            let name = interface.name.text.as_str();
            let properties = self.declared(OwnerKind::Interface, name, &interface.properties)?;
            let mut weights = HashMap::new();
            for (property_name, property) in &properties {
                if let Some(embed) = &property.facts.embed
                    && !properties.contains_key(embed.property_name.as_str())
                {
                    return Err(self.error(
                        property.declaration.name.at,
                        format!(
                            "@embed on {name}.{property_name} embeds '{}', which is no property of the interface",
                            embed.property_name
                        ),
                    ));
                }
                let shape = compact(&property.shape(), FloatSpelling::Plus).len();
                weights.insert(*property_name, shape + 2 * name.len() + OVERHEAD);
            }
            self.note_property_hints(OwnerKind::Interface, name, &properties);
            interfaces.insert(
                name,
                InterfaceFacts {
                    properties,
                    weights,
                },
            );
        }
        Ok(interfaces)
    }

    /// The properties a declaration writes itself.
    fn declared<'a>(
        &mut self,
        kind: OwnerKind,
        owner: &str,
        declarations: &'a [ast::Property],
    ) -> Result<Properties<'a>, SourceError> {
        let mut properties = Properties::new();
        for declaration in declarations {
            let effective = Effective {
                declaration,
                facts: self.facts(kind, owner, declaration)?,
                direct: true,
                links: Vec::new(),
                hint: rename_hint(&declaration.annotations),
            };
            let name = declaration.name.text.as_str();
            if properties.insert(name, effective).is_some() {
                return Err(self.error(
                    declaration.name.at,
                    format!("{kind} {owner} declares property '{name}' twice"),
                ));
            }
        }
        Ok(properties)
    }

    fn node<'a>(
        &mut self,
        node: &'a ast::Node,
        interfaces: &BTreeMap<&'a str, InterfaceFacts<'a>>,
    ) -> Result<NodeShape, SourceError> {
        let name = node.name.text.as_str();
        self.check_declaration(OwnerKind::Node, name, &node.annotations)?;
        let mut properties = self.declared(OwnerKind::Node, name, &node.body.properties)?;

        let mut implements = BTreeSet::new();
        for interface_name in &node.implements {
            let Some((known, interface)) = interfaces.get_key_value(interface_name.text.as_str())
            else {
                return Err(self.error(
                    interface_name.at,
                    format!(
                        "node {name} implements {}, which is not declared",
                        interface_name.text
                    ),
                ));
            };
            if !implements.insert(*known) {
                continue;
            }
            for (property_name, property) in &interface.properties {
                let weight = interface.weights.get(property_name).copied().unwrap_or(0);
                self.spend(interface_name.at, weight)?;
                self.contribute(node, known, property_name, property, &mut properties)?;
            }
        }
        for property in properties.values() {
            self.check_annotations(OwnerKind::Node, name, property, &properties)?;
        }
        let owner = Owner {
            kind: OwnerKind::Node,
            name,
            properties: &properties,
        };
        let constraints = self.constraints(&owner, &node.body.constraints)?;
        self.finish(
            OwnerKind::Node,
            &node.name,
            &node.annotations,
            &properties,
            &constraints,
        )?;
        Ok(NodeShape {
            name: name.to_string(),
            annotations: metadata(&node.annotations),
            implements: implements.into_iter().map(str::to_string).collect(),
            properties: properties.values().map(Effective::shape).collect(),
            constraints,
        })
    }

    /// Match one interface property with the node's own, or inject it.
    fn contribute<'a>(
        &self,
        node: &ast::Node,
        interface: &str,
        property_name: &'a str,
        contributed: &Effective<'a>,
        properties: &mut Properties<'a>,
    ) -> Result<(), SourceError> {
        let link = InterfacePropertyShape {
            owner_name: interface.to_string(),
            property_name: property_name.to_string(),
        };
        let name = &node.name.text;
        let Some(present) = properties.get_mut(property_name) else {
            let injected = Effective {
                direct: false,
                links: vec![link],
                ..contributed.clone()
            };
            properties.insert(property_name, injected);
            return Ok(());
        };
        if present.direct {
            let (own, theirs) = (&present.facts.prop_type, &contributed.facts.prop_type);
            if own != theirs {
                return Err(self.error(
                    present.declaration.type_at,
                    format!(
                        "{name}.{property_name} is {own}, but interface {interface} says {theirs}"
                    ),
                ));
            }
        } else {
            // The order of annotations and rename hints are no part of the facts.
            if present.facts != contributed.facts {
                return Err(self.error(
                    node.name.at,
                    format!(
                        "the interfaces of node {name} disagree about '{property_name}', which it does not declare itself"
                    ),
                ));
            }
            if present.hint.is_none() {
                present.hint.clone_from(&contributed.hint);
            }
        }
        present.links.push(link);
        Ok(())
    }

    fn edge(&mut self, edge: &ast::Edge, nodes: &HashSet<&str>) -> Result<EdgeShape, SourceError> {
        let name = edge.name.text.as_str();
        for endpoint in [&edge.from, &edge.to] {
            if !nodes.contains(endpoint.text.as_str()) {
                return Err(self.error(
                    endpoint.at,
                    format!(
                        "edge {name} names {}, which is no declared node type",
                        endpoint.text
                    ),
                ));
            }
        }
        let cardinality = self.cardinality(name, edge.card.as_ref())?;
        self.check_declaration(OwnerKind::Edge, name, &edge.annotations)?;
        let properties = self.declared(OwnerKind::Edge, name, &edge.body.properties)?;
        for property in properties.values() {
            self.check_annotations(OwnerKind::Edge, name, property, &properties)?;
        }
        let owner = Owner {
            kind: OwnerKind::Edge,
            name,
            properties: &properties,
        };
        let constraints = self.constraints(&owner, &edge.body.constraints)?;
        self.finish(
            OwnerKind::Edge,
            &edge.name,
            &edge.annotations,
            &properties,
            &constraints,
        )?;
        Ok(EdgeShape {
            name: name.to_string(),
            from_type: edge.from.text.clone(),
            to_type: edge.to.text.clone(),
            cardinality,
            annotations: metadata(&edge.annotations),
            properties: properties.values().map(Effective::shape).collect(),
            constraints,
        })
    }

    fn cardinality(
        &self,
        edge: &str,
        card: Option<&ast::Card>,
    ) -> Result<Cardinality, SourceError> {
        let Some(card) = card else {
            return Ok(Cardinality { min: 0, max: None });
        };
        let bound = |text: &String| {
            text.parse::<u32>().map_err(|_| {
                self.error(
                    card.at,
                    format!("a cardinality of edge {edge} is above 4294967295"),
                )
            })
        };
        let cardinality = Cardinality {
            min: bound(&card.min)?,
            max: card.max.as_ref().map(bound).transpose()?,
        };
        match cardinality.max {
            Some(max) if cardinality.min > max => Err(self.error(
                card.at,
                format!(
                    "edge {edge} wants at least {} and at most {max}",
                    cardinality.min
                ),
            )),
            _ => Ok(cardinality),
        }
    }

    /// Note the rename hints of a type and charge for what resolution will write about it.
    fn finish(
        &mut self,
        kind: OwnerKind,
        name: &ast::Name,
        annotations: &[ast::Annotation],
        properties: &Properties<'_>,
        constraints: &[ConstraintShape],
    ) -> Result<(), SourceError> {
        // The IR repeats the type's name in every reference to one of its properties.
        let reference = |member: &String| member.len() + name.text.len() + OVERHEAD;
        let members: usize = constraints
            .iter()
            .map(|c| {
                c.members()
                    .iter()
                    .map(reference)
                    .sum::<usize>()
                    .max(name.text.len())
            })
            .sum();
        let embeds = properties
            .values()
            .filter(|p| p.facts.embed.is_some())
            .count();
        self.spend(name.at, members + embeds * (name.text.len() + OVERHEAD))?;

        let owner = name.text.clone();
        if let Some(old) = rename_hint(annotations) {
            self.hints.types.insert((kind, owner.clone()), old);
        }
        self.note_property_hints(kind, &owner, properties);
        Ok(())
    }

    fn note_property_hints(&mut self, kind: OwnerKind, owner: &str, properties: &Properties<'_>) {
        for (property_name, property) in properties {
            if let Some(old) = &property.hint {
                let key = (kind, owner.to_string(), (*property_name).to_string());
                self.hints.properties.insert(key, old.clone());
            }
        }
    }
}
