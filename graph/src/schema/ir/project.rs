//! From the IR back to a shape (`docs/format/tables-and-schema.md` 5.2, ordering).

use super::{ConstraintIr, EdgeIr, FieldRef, InterfaceIr, NodeIr, PropertyIr, SchemaIr};
use crate::schema::shape::{
    ConstraintShape, EdgeShape, EmbedShape, InterfacePropertyShape, InterfaceShape, NodeShape,
    PropertyShape, SchemaShape,
};
use crate::schema::vintage::Vintage;

impl SchemaIr {
    /// The shape of the accepted schema: names in place of identities. References to interfaces are
    /// sorted by name again; everything else is taken as it stands.
    pub fn shape(&self) -> SchemaShape {
        let vintage = self.vintage();
        SchemaShape {
            interfaces: self.interfaces.iter().map(InterfaceIr::shape).collect(),
            nodes: self.nodes.iter().map(|n| n.shape(vintage)).collect(),
            edges: self.edges.iter().map(|e| e.shape(vintage)).collect(),
        }
    }
}

impl InterfaceIr {
    fn shape(&self) -> InterfaceShape {
        InterfaceShape {
            name: self.name.clone(),
            properties: self.properties.iter().map(PropertyIr::shape).collect(),
        }
    }
}

impl NodeIr {
    fn shape(&self, vintage: Vintage) -> NodeShape {
        let mut implements: Vec<_> = self
            .implements
            .iter()
            .map(|i| i.type_name.clone())
            .collect();
        implements.sort();
        NodeShape {
            name: self.name.clone(),
            annotations: self.annotations.clone(),
            implements,
            properties: self.properties.iter().map(PropertyIr::shape).collect(),
            constraints: self.constraints.iter().map(|c| c.shape(vintage)).collect(),
        }
    }
}

impl EdgeIr {
    fn shape(&self, vintage: Vintage) -> EdgeShape {
        EdgeShape {
            name: self.name.clone(),
            from_type: self.from_type.type_name.clone(),
            to_type: self.to_type.type_name.clone(),
            cardinality: self.cardinality,
            annotations: self.annotations.clone(),
            properties: self.properties.iter().map(PropertyIr::shape).collect(),
            constraints: self.constraints.iter().map(|c| c.shape(vintage)).collect(),
        }
    }
}

impl PropertyIr {
    fn shape(&self) -> PropertyShape {
        let mut links: Vec<_> = self
            .satisfies_interface_properties
            .iter()
            .map(|link| InterfacePropertyShape {
                owner_name: link.owner_type_name.clone(),
                property_name: link.property_name.clone(),
            })
            .collect();
        links.sort();
        PropertyShape {
            name: self.name.clone(),
            prop_type: self.prop_type.clone(),
            annotations: self.annotations.clone(),
            property_constraints: self.property_constraints.clone(),
            embed_source: self.embed_source.as_ref().map(|embed| EmbedShape {
                property_name: embed.source.property_name.clone(),
                model: embed.model.clone(),
            }),
            declared_directly: self.declared_directly,
            satisfies_interface_properties: links,
        }
    }
}

impl FieldRef {
    /// How a source of this vintage spells the field.
    pub fn member(&self, vintage: Vintage) -> &str {
        match self {
            Self::Property(property) => &property.property_name,
            Self::System(system) => vintage.member(system.role),
        }
    }
}

impl ConstraintIr {
    /// The constraint as a source of this vintage spells it, members as they stand.
    pub fn shape(&self, vintage: Vintage) -> ConstraintShape {
        let members = |fields: &[FieldRef]| -> Vec<String> {
            fields
                .iter()
                .map(|f| f.member(vintage).to_string())
                .collect()
        };
        match self {
            Self::Key { fields } => ConstraintShape::Key(members(fields)),
            Self::Unique { fields } => ConstraintShape::Unique(members(fields)),
            Self::Index { fields } => ConstraintShape::Index(members(fields)),
            Self::Range { field, min, max } => ConstraintShape::Range {
                property: field.member(vintage).to_string(),
                min: *min,
                max: *max,
            },
            Self::Check { field, pattern } => ConstraintShape::Check {
                property: field.member(vintage).to_string(),
                pattern: pattern.clone(),
            },
        }
    }
}
