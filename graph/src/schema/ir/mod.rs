//! SchemaIR: the accepted schema with its identities (`docs/format/tables-and-schema.md` 5.2 to 5.5).
//!
//! Stored as pretty JSON; hashed as the compact JSON of the parsed objects, so white space, the order of
//! keys and unknown keys of a stored text do not change its hash. Member order here is the stored order.

mod project;
mod read;
mod resolve;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

pub use read::{IrError, KNOWN_FEATURES};
pub use resolve::resolve;

use super::text::{self, FloatSpelling};
use super::types::{Annotation, Bound, Cardinality, PropType, PropertyConstraint};
use super::vintage::{SystemRole, Vintage};
use crate::digest::sha256_hex;

/// Version of an IR without features.
pub const IR_VERSION_BASE: u32 = 2;
/// Version of a legacy-vintage IR with an edge key as it was stamped once; read, never written.
pub const IR_VERSION_EDGE_KEYS: u32 = 4;
/// Version of an IR that names its features.
pub const IR_VERSION_FEATURES: u32 = 5;
/// The feature of a graph of the current vintage.
pub const SYSTEM_COLUMNS: &str = "system-columns";
/// The feature of a graph with an edge key.
pub const EDGE_KEYS: &str = "edge-keys";

/// The accepted schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SchemaIr {
    /// 2, 4 or 5.
    pub ir_version: u32,
    /// Sorted; only in version 5.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub features: BTreeSet<String>,
    /// Canonical ULID of the graph root.
    pub schema_identity_domain: String,
    /// The next id to hand out, for types, properties and incarnations together.
    pub next_identity_id: u64,
    /// By name.
    pub interfaces: Vec<InterfaceIr>,
    /// By name.
    pub nodes: Vec<NodeIr>,
    /// By name.
    pub edges: Vec<EdgeIr>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterfaceIr {
    /// Its name.
    pub name: String,
    /// Its identity.
    #[serde(deserialize_with = "id")]
    pub type_id: u64,
    /// By name.
    pub properties: Vec<PropertyIr>,
}

/// A node type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeIr {
    /// Its name.
    pub name: String,
    /// Its identity: the stable table id.
    #[serde(deserialize_with = "id")]
    pub type_id: u64,
    /// The lifetime of its table.
    #[serde(deserialize_with = "id")]
    pub table_incarnation_id: u64,
    /// In canonical order.
    pub annotations: Vec<Annotation>,
    /// By identity.
    pub implements: Vec<TypeRef>,
    /// By name.
    pub properties: Vec<PropertyIr>,
    /// In canonical order.
    pub constraints: Vec<ConstraintIr>,
}

/// An edge type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EdgeIr {
    /// Its name.
    pub name: String,
    /// Its identity: the stable table id.
    #[serde(deserialize_with = "id")]
    pub type_id: u64,
    /// The lifetime of its table.
    #[serde(deserialize_with = "id")]
    pub table_incarnation_id: u64,
    /// The node type it starts at.
    pub from_type: TypeRef,
    /// The node type it ends at.
    pub to_type: TypeRef,
    /// Edges per source node.
    pub cardinality: Cardinality,
    /// In canonical order.
    pub annotations: Vec<Annotation>,
    /// By name.
    pub properties: Vec<PropertyIr>,
    /// In canonical order.
    pub constraints: Vec<ConstraintIr>,
}

/// A property.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PropertyIr {
    /// Its name.
    pub name: String,
    /// Its identity, stable across renames.
    #[serde(deserialize_with = "id")]
    pub property_id: u64,
    /// Its type.
    pub prop_type: PropType,
    /// In canonical order.
    pub annotations: Vec<Annotation>,
    /// key, unique, index.
    pub property_constraints: Vec<PropertyConstraint>,
    /// From `@embed`.
    pub embed_source: Option<EmbedIr>,
    /// False for a property that only an interface declares.
    pub declared_directly: bool,
    /// The interface properties it stands for, by identity.
    pub satisfies_interface_properties: Vec<PropertyRef>,
}

/// `@embed`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedIr {
    /// The property whose text is embedded.
    pub source: PropertyRef,
    /// The model, when named.
    pub model: Option<String>,
}

/// A reference to a type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TypeRef {
    /// Its identity.
    #[serde(deserialize_with = "id")]
    pub type_id: u64,
    /// Its name.
    pub type_name: String,
}

/// A reference to a property. Orders by the owner's identity, then as its members stand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PropertyRef {
    /// Identity of the declaring type.
    #[serde(deserialize_with = "id")]
    pub owner_type_id: u64,
    /// Its name.
    pub owner_type_name: String,
    /// Identity of the property.
    #[serde(deserialize_with = "id")]
    pub property_id: u64,
    /// Its name.
    pub property_name: String,
}

/// A reference to a system column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemRef {
    /// Identity of the type.
    #[serde(deserialize_with = "id")]
    pub stable_table_id: u64,
    /// Its name.
    pub table_type_name: String,
    /// The lifetime of its table.
    #[serde(deserialize_with = "id")]
    pub table_incarnation_id: u64,
    /// Which column.
    pub role: SystemRole,
}

/// A field of a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FieldRef {
    /// A property.
    Property(PropertyRef),
    /// A system column.
    System(SystemRef),
}

/// A constraint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ConstraintIr {
    /// `@key`
    Key {
        /// Its members.
        fields: Vec<FieldRef>,
    },
    /// `@unique`
    Unique {
        /// Its members.
        fields: Vec<FieldRef>,
    },
    /// `@index`
    Index {
        /// Its members.
        fields: Vec<FieldRef>,
    },
    /// `@range`
    Range {
        /// The property.
        field: FieldRef,
        /// At least.
        min: Option<Bound>,
        /// At most.
        max: Option<Bound>,
    },
    /// `@check`
    Check {
        /// The property.
        field: FieldRef,
        /// A regular expression, not compiled here.
        pattern: String,
    },
}

impl ConstraintIr {
    /// Every field it names.
    pub fn fields(&self) -> &[FieldRef] {
        match self {
            Self::Key { fields } | Self::Unique { fields } | Self::Index { fields } => fields,
            Self::Range { field, .. } | Self::Check { field, .. } => std::slice::from_ref(field),
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

impl SchemaIr {
    /// How the graph spells its system columns.
    pub fn vintage(&self) -> Vintage {
        if self.features.contains(SYSTEM_COLUMNS) {
            Vintage::Current
        } else {
            Vintage::Legacy
        }
    }

    /// The compact JSON that is hashed.
    pub fn compact(&self) -> String {
        text::compact(self, FloatSpelling::Plus)
    }

    /// The text a writer stores: pretty JSON without a trailing newline.
    pub fn pretty(&self) -> String {
        text::pretty(self)
    }

    /// `schema_ir_hash`: `sha256:` and 64 lower-case hex digits.
    pub fn ir_hash(&self) -> String {
        format!("sha256:{}", sha256_hex(self.compact().as_bytes()))
    }

    /// Whether `hash` is this IR's, in either spelling of floats of 1e16 and above
    /// (`docs/format/tables-and-schema.md` 5.3).
    pub fn matches_hash(&self, hash: &str) -> bool {
        if self.ir_hash() == hash {
            return true;
        }
        let nodes = self.nodes.iter().flat_map(|n| &n.constraints);
        let edges = self.edges.iter().flat_map(|e| &e.constraints);
        nodes.chain(edges).any(ConstraintIr::has_two_spellings) && {
            let bare = text::compact(self, FloatSpelling::Bare);
            format!("sha256:{}", sha256_hex(bare.as_bytes())) == hash
        }
    }
}

/// Ids are integer tokens above 0.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(serde::de::Error::custom("an id is 0")),
        id => Ok(id),
    }
}
