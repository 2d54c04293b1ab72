//! From names to references, once every identity is known.

use super::{Ids, PropertyIds, Types, ids};
use crate::error::{Error, Result};
use crate::schema::ir::{
    ConstraintIr, EmbedIr, FieldRef, PropertyIr, PropertyRef, SystemRef, TypeRef,
};
use crate::schema::names::OwnerKind;
use crate::schema::shape::{ConstraintShape, PropertyShape};
use crate::schema::vintage::{SystemRole, Vintage};

/// A declaration whose parts are being built.
pub struct Owner<'b> {
    /// Its name.
    pub name: &'b str,
    /// Its identities.
    pub ids: &'b Ids<'b>,
}

/// Turns names into references.
pub struct Build<'b> {
    /// All declarations.
    pub types: &'b Types<'b>,
    /// All properties.
    pub properties: &'b PropertyIds<'b>,
    /// Decides the spelling of system columns.
    pub vintage: Vintage,
}

impl<'b> Build<'b> {
    /// A declaration by name.
    pub fn owner(&self, kind: OwnerKind, name: &'b str) -> Result<Owner<'b>> {
        Ok(Owner {
            name,
            ids: ids(self.types, kind, name)?,
        })
    }

    /// A reference to a type.
    pub fn type_ref(&self, kind: OwnerKind, name: &str) -> Result<TypeRef> {
        Ok(TypeRef {
            type_id: ids(self.types, kind, name)?.type_id,
            type_name: name.to_string(),
        })
    }

    fn property_ref(&self, owner: &str, type_id: u64, name: &str) -> Result<PropertyRef> {
        let id = self
            .properties
            .get(&type_id)
            .and_then(|ids| ids.get(name))
            .copied();
        Ok(PropertyRef {
            owner_type_id: type_id,
            owner_type_name: owner.to_string(),
            property_id: id
                .ok_or_else(|| Error::refused(format!("{owner} has no property '{name}'")))?,
            property_name: name.to_string(),
        })
    }

    /// The properties of a declaration.
    pub fn properties(
        &self,
        owner: &Owner<'_>,
        shapes: &[PropertyShape],
    ) -> Result<Vec<PropertyIr>> {
        shapes
            .iter()
            .map(|shape| self.property(owner, shape))
            .collect()
    }

    fn property(&self, owner: &Owner<'_>, shape: &PropertyShape) -> Result<PropertyIr> {
        let own = self.property_ref(owner.name, owner.ids.type_id, &shape.name)?;
        let embed_source = match &shape.embed_source {
            Some(embed) => Some(EmbedIr {
                source: self.property_ref(owner.name, owner.ids.type_id, &embed.property_name)?,
                model: embed.model.clone(),
            }),
            None => None,
        };
        let mut links = Vec::with_capacity(shape.satisfies_interface_properties.len());
        for link in &shape.satisfies_interface_properties {
            let interface = self.type_ref(OwnerKind::Interface, &link.owner_name)?;
            links.push(self.property_ref(
                &link.owner_name,
                interface.type_id,
                &link.property_name,
            )?);
        }
        links.sort();
        Ok(PropertyIr {
            name: shape.name.clone(),
            property_id: own.property_id,
            prop_type: shape.prop_type.clone(),
            annotations: shape.annotations.clone(),
            property_constraints: shape.property_constraints.clone(),
            embed_source,
            declared_directly: shape.declared_directly,
            satisfies_interface_properties: links,
        })
    }

    /// The constraints of a declaration.
    pub fn constraints(
        &self,
        owner: &Owner<'_>,
        shapes: &[ConstraintShape],
    ) -> Result<Vec<ConstraintIr>> {
        shapes
            .iter()
            .map(|shape| self.constraint(owner, shape))
            .collect()
    }

    fn constraint(&self, owner: &Owner<'_>, shape: &ConstraintShape) -> Result<ConstraintIr> {
        let fields = |members: &[String]| -> Result<Vec<FieldRef>> {
            members
                .iter()
                .map(|member| self.field(owner, member))
                .collect()
        };
        Ok(match shape {
            ConstraintShape::Key(members) => ConstraintIr::Key {
                fields: fields(members)?,
            },
            ConstraintShape::Unique(members) => ConstraintIr::Unique {
                fields: fields(members)?,
            },
            ConstraintShape::Index(members) => ConstraintIr::Index {
                fields: fields(members)?,
            },
            ConstraintShape::Range { property, min, max } => ConstraintIr::Range {
                field: self.field(owner, property)?,
                min: *min,
                max: *max,
            },
            ConstraintShape::Check { property, pattern } => ConstraintIr::Check {
                field: self.field(owner, property)?,
                pattern: pattern.clone(),
            },
        })
    }

    /// A member of a constraint: a property, else the system column that the vintage spells so.
    fn field(&self, owner: &Owner<'_>, member: &str) -> Result<FieldRef> {
        let property = self.property_ref(owner.name, owner.ids.type_id, member);
        let role = SystemRole::ALL
            .into_iter()
            .find(|role| self.vintage.member(*role) == member);
        match (property, role) {
            (Ok(property), _) => Ok(FieldRef::Property(property)),
            (Err(_), Some(role)) => Ok(FieldRef::System(SystemRef {
                stable_table_id: owner.ids.type_id,
                table_type_name: owner.name.to_string(),
                table_incarnation_id: owner.ids.incarnation,
                role,
            })),
            (Err(missing), None) => Err(missing),
        }
    }
}
