//! What a source says, before any rule but the grammar is applied.
//!
//! Every `at` is the byte offset in the source that an error about the item points to.

use std::collections::BTreeMap;

use crate::schema::types::{PropType, PropertyConstraint};
use crate::schema::vintage::SystemRole;

/// A source file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// Interfaces in source order.
    pub interfaces: Vec<Interface>,
    /// Node types in source order.
    pub nodes: Vec<Node>,
    /// Edge types in source order.
    pub edges: Vec<Edge>,
}

/// A name and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its offset.
    pub at: usize,
}

/// `interface Name { ... }`
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: Name,
    /// Its properties in source order.
    pub properties: Vec<Property>,
}

/// `node Name ... { ... }`
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: Name,
    /// Annotations of the declaration.
    pub annotations: Vec<Annotation>,
    /// Names after `implements`.
    pub implements: Vec<Name>,
    /// The body.
    pub body: Body,
}

/// `edge Name: From -> To ...`
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Its name.
    pub name: Name,
    /// The node type it starts at.
    pub from: Name,
    /// The node type it ends at.
    pub to: Name,
    /// `@card(min..max)`.
    pub card: Option<Card>,
    /// Annotations of the declaration.
    pub annotations: Vec<Annotation>,
    /// The body; empty when there is none.
    pub body: Body,
}

/// Between the braces of a node or edge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Body {
    /// Properties in source order.
    pub properties: Vec<Property>,
    /// Constraints in source order.
    pub constraints: Vec<Constraint>,
}

/// `@card(min..max)`, bounds as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The digits before `..`.
    pub min: String,
    /// The digits after it.
    pub max: Option<String>,
    /// Its offset.
    pub at: usize,
}

/// `name: Type @annotation ...`
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: Name,
    /// Its type; enum values in source order.
    pub prop_type: PropType,
    /// Offset of the type.
    pub type_at: usize,
    /// Its annotations in source order.
    pub annotations: Vec<Annotation>,
}

/// `@name(value, keyword=value, ...)`
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its name without `@`.
    pub name: String,
    /// The positional value as text.
    pub value: Option<String>,
    /// The keyword values as text; a repeated keyword keeps the last.
    pub kwargs: BTreeMap<String, String>,
    /// Its offset.
    pub at: usize,
}

/// `@key(...)` and its like in a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// Which one.
    pub kind: ConstraintKind,
    /// At least one argument.
    pub args: Vec<Arg>,
    /// Its offset.
    pub at: usize,
}

/// The five constraints of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstraintKind {
    /// `@key`, `@unique` or `@index` over a member list.
    Members(PropertyConstraint),
    /// `@range`
    Range,
    /// `@check`
    Check,
}

/// An argument of a constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Arg {
    /// What it is.
    pub value: ArgValue,
    /// Its offset.
    pub at: usize,
}

/// The forms of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgValue {
    /// `min..max` as written; at least one is present.
    Range {
        /// Before `..`.
        min: Option<String>,
        /// After `..`.
        max: Option<String>,
    },
    /// A quoted string, decoded.
    Text(String),
    /// A number or a boolean, as written.
    Other(String),
    /// A bare name.
    Ident(String),
    /// `@id`, `@src` or `@dst`.
    Meta {
        /// The system column meant.
        role: SystemRole,
        /// Whether something stood between `@` and the name.
        spaced: bool,
    },
}
