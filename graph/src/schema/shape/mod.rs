//! SchemaShape: a compiled schema without identities (`docs/format/tables-and-schema.md` 5.1).
//!
//! It is hashed and compared, never stored. Member order and canonical order are part of the format.

mod diff;

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::text::{self, FloatSpelling};
use super::types::{Annotation, Bound, Cardinality, PropType, PropertyConstraint};
use super::vintage::{SystemRole, Vintage};
use crate::digest::sha256_hex;

/// A compiled schema, everything in canonical order.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SchemaShape {
    /// By name.
    pub interfaces: Vec<InterfaceShape>,
    /// By name.
    pub nodes: Vec<NodeShape>,
    /// By name.
    pub edges: Vec<EdgeShape>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterfaceShape {
    /// Its name.
    pub name: String,
    /// By name.
    pub properties: Vec<PropertyShape>,
}

/// A node type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeShape {
    /// Its name.
    pub name: String,
    /// In canonical order.
    pub annotations: Vec<Annotation>,
    /// Names of interfaces, sorted.
    pub implements: Vec<String>,
    /// Own and injected, by name.
    pub properties: Vec<PropertyShape>,
    /// In canonical order.
    pub constraints: Vec<ConstraintShape>,
}

/// An edge type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeShape {
    /// Its name.
    pub name: String,
    /// The node type it starts at.
    pub from_type: String,
    /// The node type it ends at.
    pub to_type: String,
    /// Edges per source node.
    pub cardinality: Cardinality,
    /// In canonical order.
    pub annotations: Vec<Annotation>,
    /// By name.
    pub properties: Vec<PropertyShape>,
    /// In canonical order.
    pub constraints: Vec<ConstraintShape>,
}

/// A property.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PropertyShape {
    /// Its name.
    pub name: String,
    /// Its type.
    pub prop_type: PropType,
    /// In canonical order.
    pub annotations: Vec<Annotation>,
    /// key, unique, index.
    pub property_constraints: Vec<PropertyConstraint>,
    /// From `@embed`.
    pub embed_source: Option<EmbedShape>,
    /// False for a property that only an interface declares.
    pub declared_directly: bool,
    /// The interface properties it stands for, sorted.
    pub satisfies_interface_properties: Vec<InterfacePropertyShape>,
}

/// `@embed("property", model="...")`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmbedShape {
    /// The property whose text is embedded.
    pub property_name: String,
    /// The model, when named.
    pub model: Option<String>,
}

/// A property of an interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct InterfacePropertyShape {
    /// The interface.
    pub owner_name: String,
    /// The property.
    pub property_name: String,
}

/// A constraint. Members are property names, or system columns in the vintage's spelling.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ConstraintShape {
    /// `@key`
    Key(Vec<String>),
    /// `@unique`
    Unique(Vec<String>),
    /// `@index`
    Index(Vec<String>),
    /// `@range`
    Range {
        /// The property.
        property: String,
        /// At least.
        min: Option<Bound>,
        /// At most.
        max: Option<Bound>,
    },
    /// `@check`
    Check {
        /// The property.
        property: String,
        /// A regular expression, not compiled here.
        pattern: String,
    },
}

impl ConstraintShape {
    /// A constraint over a member list.
    pub fn over(kind: PropertyConstraint, members: Vec<String>) -> Self {
        match kind {
            PropertyConstraint::Key => Self::Key(members),
            PropertyConstraint::Unique => Self::Unique(members),
            PropertyConstraint::Index => Self::Index(members),
        }
    }

    /// The text by which constraints are ordered. Floats print as Rust's `{:?}` does, which differs
    /// from their JSON (`docs/format/tables-and-schema.md` 5.1, step 4).
    pub fn sort_key(&self) -> String {
        match self {
            Self::Key(members) => format!("key:{}", members.join(",")),
            Self::Unique(members) => format!("unique:{}", members.join(",")),
            Self::Index(members) => format!("index:{}", members.join(",")),
            Self::Range { property, min, max } => format!("range:{property}:{min:?}:{max:?}"),
            Self::Check { property, pattern } => format!("check:{property}:{pattern}"),
        }
    }

    /// The member list, empty for `@range` and `@check`.
    pub fn members(&self) -> &[String] {
        match self {
            Self::Key(members) | Self::Unique(members) | Self::Index(members) => members,
            Self::Range { .. } | Self::Check { .. } => &[],
        }
    }

    fn members_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Self::Key(members) | Self::Unique(members) | Self::Index(members) => Some(members),
            Self::Range { .. } | Self::Check { .. } => None,
        }
    }

    fn has_two_spellings(&self) -> bool {
        match self {
            Self::Range { min, max, .. } => [min, max]
                .into_iter()
                .flatten()
                .any(|b| b.has_two_spellings()),
            _ => false,
        }
    }
}

/// Annotations in canonical order: by their compact JSON, equal ones once.
pub fn canonical_annotations(mut annotations: Vec<Annotation>) -> Vec<Annotation> {
    annotations.sort_by_cached_key(Annotation::sort_key);
    annotations.dedup();
    annotations
}

/// Constraints in canonical order: members sorted and distinct, then the list by key string with equal
/// neighbours dropped. Equality is of values, so of the bounds `-0.0` and `0.0` the first is kept.
pub fn canonical_constraints(mut constraints: Vec<ConstraintShape>) -> Vec<ConstraintShape> {
    for members in constraints
        .iter_mut()
        .filter_map(ConstraintShape::members_mut)
    {
        members.sort();
        members.dedup();
    }
    constraints.sort_by_cached_key(ConstraintShape::sort_key);
    constraints.dedup();
    constraints
}

impl SchemaShape {
    /// The shape as a graph of `vintage` compares it: in the legacy vintage `@id`, `@src`, `@dst` are
    /// spelled bare and the constraints put in order again.
    #[must_use]
    pub fn respelled(mut self, vintage: Vintage) -> Self {
        if vintage == Vintage::Current {
            return self;
        }
        let nodes = self.nodes.iter_mut().map(|n| &mut n.constraints);
        let edges = self.edges.iter_mut().map(|e| &mut e.constraints);
        for constraints in nodes.chain(edges) {
            for members in constraints
                .iter_mut()
                .filter_map(ConstraintShape::members_mut)
            {
                for member in members {
                    if let Some(role) = SystemRole::from_meta(member) {
                        *member = role.name().to_string();
                    }
                }
            }
            *constraints = canonical_constraints(std::mem::take(constraints));
        }
        self
    }

    /// The compact JSON that is hashed.
    pub fn compact(&self) -> String {
        text::compact(self, FloatSpelling::Plus)
    }

    /// `schema_shape_hash`: `sha256:` and 64 lower-case hex digits.
    pub fn shape_hash(&self) -> String {
        format!("sha256:{}", sha256_hex(self.compact().as_bytes()))
    }

    /// Whether `hash` is this shape's, in either spelling of floats of 1e16 and above.
    pub fn matches_hash(&self, hash: &str) -> bool {
        if self.shape_hash() == hash {
            return true;
        }
        let nodes = self.nodes.iter().flat_map(|n| &n.constraints);
        let edges = self.edges.iter().flat_map(|e| &e.constraints);
        nodes.chain(edges).any(ConstraintShape::has_two_spellings) && {
            let bare = text::compact(self, FloatSpelling::Bare);
            format!("sha256:{}", sha256_hex(bare.as_bytes())) == hash
        }
    }

    /// Where two shapes differ first, in words; `None` when they are the same schema.
    pub fn difference(&self, other: &Self) -> Option<String> {
        // The text decides, as the hash does: `-0.0` and `0.0` are equal values of different text.
        if self.compact() == other.compact() {
            return None;
        }
        Some(diff::describe(self, other))
    }
}
