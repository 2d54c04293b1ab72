//! The rules of types, annotations and property names
//! (`docs/format/tables-and-schema.md` 4.3, 4.4 and 4.6).

use std::collections::{BTreeMap, HashSet};

use super::ast;
use super::lower::Lowering;
use super::{ParseMode, SourceError};
use crate::schema::names::{self, OwnerKind};
use crate::schema::shape::{
    EmbedShape, InterfacePropertyShape, PropertyShape, canonical_annotations,
};
use crate::schema::types::{Annotation, PropType, PropertyConstraint, Scalar, TYPED_ANNOTATIONS};

/// What a property's type and annotations come to, whoever declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The type with enum values in order.
    pub prop_type: PropType,
    /// The annotations kept as metadata.
    pub annotations: Vec<Annotation>,
    /// key, unique, index.
    pub constraints: Vec<PropertyConstraint>,
    /// From `@embed`.
    pub embed: Option<EmbedShape>,
}

/// A property a type ends up with: declared in its body or injected by interfaces.
#[derive(Debug, Clone)]
pub struct Effective<'a> {
    /// The declaration that gives type and annotations.
    pub declaration: &'a ast::Property,
    /// What that declaration comes to.
    pub facts: Facts,
    /// False when injected.
    pub direct: bool,
    /// The interface properties it stands for.
    pub links: Vec<InterfacePropertyShape>,
    /// The old name of `@rename_from`.
    pub hint: Option<String>,
}

/// Properties of one type by name.
pub type Properties<'a> = BTreeMap<&'a str, Effective<'a>>;

impl Effective<'_> {
    /// The shape of the property.
    pub fn shape(&self) -> PropertyShape {
        let mut links = self.links.clone();
        links.sort();
        PropertyShape {
            name: self.declaration.name.text.clone(),
            prop_type: self.facts.prop_type.clone(),
            annotations: self.facts.annotations.clone(),
            property_constraints: self.facts.constraints.clone(),
            embed_source: self.facts.embed.clone(),
            declared_directly: self.direct,
            satisfies_interface_properties: links,
        }
    }
}

/// The metadata annotations of a list, in canonical order.
pub fn metadata(annotations: &[ast::Annotation]) -> Vec<Annotation> {
    canonical_annotations(
        annotations
            .iter()
            .filter(|a| !TYPED_ANNOTATIONS.contains(&a.name.as_str()))
            .map(|a| Annotation {
                name: a.name.clone(),
                value: a.value.clone(),
                kwargs: a.kwargs.clone(),
            })
            .collect(),
    )
}

/// The old name that a `@rename_from` among `annotations` gives.
pub fn rename_hint(annotations: &[ast::Annotation]) -> Option<String> {
    annotations
        .iter()
        .find(|a| a.name == "rename_from")
        .and_then(|a| a.value.clone())
}

impl Lowering<'_> {
    /// Check type and name of a declared property and gather its facts.
    pub fn facts(
        &self,
        kind: OwnerKind,
        owner: &str,
        property: &ast::Property,
    ) -> Result<Facts, SourceError> {
        self.check_name(kind, owner, property)?;
        let annotations = &property.annotations;
        let mut constraints: Vec<_> = annotations
            .iter()
            .filter(|a| a.value.is_none())
            .filter_map(|a| PropertyConstraint::from_name(&a.name))
            .collect();
        constraints.sort();
        constraints.dedup();
        let embed = annotations.iter().find(|a| a.name == "embed");
        Ok(Facts {
            prop_type: self.prop_type(property)?,
            annotations: metadata(annotations),
            constraints,
            embed: embed.and_then(|a| {
                Some(EmbedShape {
                    property_name: a.value.clone()?,
                    model: a.kwargs.get("model").cloned(),
                })
            }),
        })
    }

    fn check_name(
        &self,
        kind: OwnerKind,
        owner: &str,
        property: &ast::Property,
    ) -> Result<(), SourceError> {
        let name = property.name.text.as_str();
        let reason = match self.options.vintage {
            Some(vintage) => names::reserved(name, kind, vintage),
            None => names::reserved_in_both(name, kind),
        };
        let reason = reason.or_else(|| match self.options.mode {
            ParseMode::Admission => names::reserved_at_admission(name, kind),
            ParseMode::Tolerant => None,
        });
        match reason {
            Some(reason) => Err(self.error(
                property.name.at,
                format!("property '{name}' of {kind} {owner} cannot have that name: {reason}"),
            )),
            None => Ok(()),
        }
    }

    /// The canonical type of a declared property.
    fn prop_type(&self, property: &ast::Property) -> Result<PropType, SourceError> {
        let mut prop_type = property.prop_type.clone();
        if prop_type.list && prop_type.scalar == Scalar::Blob {
            return Err(self.error(property.type_at, "a list of Blob is not a type"));
        }
        if let Some(values) = &mut prop_type.enum_values {
            values.sort();
            if let Some(twice) = first_repeated(values) {
                return Err(self.error(
                    property.type_at,
                    format!("the enum names the value '{twice}' twice"),
                ));
            }
        }
        Ok(prop_type)
    }

    /// Apply the annotation rules to a property of a node or edge, its own or injected.
    pub fn check_annotations(
        &self,
        kind: OwnerKind,
        owner: &str,
        property: &Effective<'_>,
        all: &Properties<'_>,
    ) -> Result<(), SourceError> {
        let name = property.declaration.name.text.as_str();
        let mut seen = HashSet::new();
        for annotation in &property.declaration.annotations {
            let label = annotation.name.as_str();
            let refuse = |why: String| {
                let injected = if property.direct { "" } else { " (injected)" };
                let message = format!("@{label} on {owner}.{name}{injected} {why}");
                Err(self.error(annotation.at, message))
            };
            let known = TYPED_ANNOTATIONS.contains(&label) || label == "description";
            if known && !seen.insert(label) {
                return refuse("is given twice".into());
            }
            let prop_type = &property.facts.prop_type;
            match label {
                "key" | "unique" | "index" => {
                    if annotation.value.is_some() {
                        return refuse("takes no value".into());
                    }
                    if label == "key" && kind == OwnerKind::Edge {
                        return refuse("is not for properties of an edge".into());
                    }
                    if prop_type.list || prop_type.scalar == Scalar::Blob {
                        return refuse(format!("cannot stand on the type {prop_type}"));
                    }
                    if label != "index" && !prop_type.scalar.is_plain() {
                        return refuse(format!("cannot stand on the type {prop_type}"));
                    }
                    if label == "key" && prop_type.nullable {
                        return refuse("needs a property that is not nullable".into());
                    }
                }
                "embed" => {
                    if let Some(why) = embed_error(kind, annotation, prop_type, all) {
                        return refuse(why);
                    }
                }
                "rename_from" => {
                    if let Some(why) = rename_error(annotation) {
                        return refuse(why.into());
                    }
                }
                "description" if is_blank(annotation) => {
                    return refuse("needs a value that is not blank".into());
                }
                "instruction" => {
                    return refuse("is only for nodes and edges themselves".into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Apply the annotation rules to the declaration of a node or edge.
    pub fn check_declaration(
        &self,
        kind: OwnerKind,
        owner: &str,
        annotations: &[ast::Annotation],
    ) -> Result<(), SourceError> {
        let mut seen = HashSet::new();
        for annotation in annotations {
            let label = annotation.name.as_str();
            let refuse = |why: &str| {
                Err(self.error(annotation.at, format!("@{label} on {kind} {owner} {why}")))
            };
            match label {
                "key" | "unique" | "index" | "embed" => {
                    return refuse("is only for properties");
                }
                "rename_from" | "description" | "instruction" if !seen.insert(label) => {
                    return refuse("is given twice");
                }
                "rename_from" => {
                    if let Some(why) = rename_error(annotation) {
                        return refuse(why);
                    }
                }
                "description" | "instruction" if is_blank(annotation) => {
                    return refuse("needs a value that is not blank");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn embed_error(
    kind: OwnerKind,
    annotation: &ast::Annotation,
    prop_type: &PropType,
    all: &Properties<'_>,
) -> Option<String> {
    if kind == OwnerKind::Edge {
        return Some("is not for properties of an edge".into());
    }
    if !matches!(prop_type.scalar, Scalar::Vector(_)) {
        return Some(format!("needs a vector, not the type {prop_type}"));
    }
    let Some(source) = annotation.value.as_deref() else {
        return Some("needs the property to embed".into());
    };
    if let Some(keyword) = annotation.kwargs.keys().find(|k| *k != "model") {
        return Some(format!("knows no keyword '{keyword}'"));
    }
    match all.get(source).map(|p| &p.facts.prop_type) {
        Some(t) if t.scalar == Scalar::String && !t.list => None,
        Some(t) => Some(format!("embeds '{source}', which is {t} and not text")),
        None => Some(format!(
            "embeds '{source}', which is no property of the node"
        )),
    }
}

fn rename_error(annotation: &ast::Annotation) -> Option<&'static str> {
    if is_blank(annotation) {
        return Some("needs the old name");
    }
    (!annotation.kwargs.is_empty()).then_some("takes no keywords")
}

fn is_blank(annotation: &ast::Annotation) -> bool {
    annotation
        .value
        .as_deref()
        .is_none_or(|value| value.trim().is_empty())
}

/// The first value that follows itself in a sorted list.
fn first_repeated(sorted: &[String]) -> Option<&String> {
    sorted
        .iter()
        .zip(sorted.iter().skip(1))
        .find(|(a, b)| a == b)
        .map(|(a, _)| a)
}
