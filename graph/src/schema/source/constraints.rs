//! The rules of body constraints (`docs/format/tables-and-schema.md` 4.5).

use super::ast::{self, ArgValue, ConstraintKind};
use super::lower::Lowering;
use super::properties::Properties;
use super::{ParseMode, SourceError, UpperBound};
use crate::schema::names::OwnerKind;
use crate::schema::shape::{ConstraintShape, canonical_constraints};
use crate::schema::types::{Bound, PropType, PropertyConstraint, Scalar};
use crate::schema::vintage::{SystemRole, Vintage};

/// The type whose body is looked at.
pub struct Owner<'a> {
    /// Node or edge.
    pub kind: OwnerKind,
    /// Its name.
    pub name: &'a str,
    /// All properties it has.
    pub properties: &'a Properties<'a>,
}

/// A member of a constraint's list.
enum Member<'a> {
    Property(&'a str, &'a PropType),
    System(SystemRole, String),
}

impl Lowering<'_> {
    /// All constraints of a type in canonical order: those of its body and those its properties carry.
    pub fn constraints(
        &self,
        owner: &Owner<'_>,
        body: &[ast::Constraint],
    ) -> Result<Vec<ConstraintShape>, SourceError> {
        let mut shapes = Vec::with_capacity(body.len());
        let mut keys = 0_usize;
        for (name, property) in owner.properties {
            for kind in &property.facts.constraints {
                if *kind == PropertyConstraint::Key {
                    keys += 1;
                    if keys > 1 {
                        return Err(self.second_key(owner, property.declaration.name.at));
                    }
                }
                shapes.push(ConstraintShape::over(*kind, vec![(*name).to_string()]));
            }
        }
        for constraint in body {
            shapes.push(match constraint.kind {
                ConstraintKind::Members(kind) => {
                    if kind == PropertyConstraint::Key {
                        keys += 1;
                        if keys > 1 {
                            return Err(self.second_key(owner, constraint.at));
                        }
                    }
                    self.member_list(owner, kind, constraint)?
                }
                ConstraintKind::Range => self.range(owner, constraint)?,
                ConstraintKind::Check => self.check(owner, constraint)?,
            });
        }
        Ok(canonical_constraints(shapes))
    }

    fn second_key(&self, owner: &Owner<'_>, at: usize) -> SourceError {
        self.error(
            at,
            format!("{} {} has more than one key", owner.kind, owner.name),
        )
    }

    fn member_list(
        &self,
        owner: &Owner<'_>,
        kind: PropertyConstraint,
        constraint: &ast::Constraint,
    ) -> Result<ConstraintShape, SourceError> {
        let mut names = Vec::with_capacity(constraint.args.len());
        let mut endpoints = [false; 2];
        for arg in &constraint.args {
            match self.member(owner, arg)? {
                Member::Property(name, prop_type) => {
                    if let Some(why) = self.member_type_error(kind, prop_type) {
                        let message = format!("'{name}' of {} {why}", owner.name);
                        return Err(self.error(arg.at, message));
                    }
                    names.push(name.to_string());
                }
                Member::System(role, spelled) => {
                    match role {
                        SystemRole::Src => endpoints[0] = true,
                        SystemRole::Dst => endpoints[1] = true,
                        SystemRole::Id if kind == PropertyConstraint::Key => {
                            return Err(self.error(arg.at, "a key cannot include @id"));
                        }
                        SystemRole::Id => {}
                    }
                    names.push(spelled);
                }
            }
        }
        if kind == PropertyConstraint::Key
            && owner.kind == OwnerKind::Edge
            && endpoints != [true, true]
        {
            return Err(self.error(
                constraint.at,
                format!(
                    "the key of edge {} must include both @src and @dst",
                    owner.name
                ),
            ));
        }
        Ok(ConstraintShape::over(kind, names))
    }

    /// Why a property of this type cannot be a member.
    fn member_type_error(&self, kind: PropertyConstraint, prop_type: &PropType) -> Option<String> {
        match kind {
            PropertyConstraint::Key if prop_type.nullable => {
                Some("is nullable and cannot be part of a key".into())
            }
            PropertyConstraint::Key if prop_type.list || !prop_type.scalar.is_plain() => {
                Some(format!("is {prop_type} and cannot be part of a key"))
            }
            // `@unique` over a Blob was admitted before 0.10; stored sources can hold it.
            PropertyConstraint::Unique if self.options.mode == ParseMode::Tolerant => None,
            PropertyConstraint::Unique if prop_type.scalar == Scalar::Blob => {
                Some("is a Blob and cannot be unique".into())
            }
            PropertyConstraint::Index if prop_type.scalar == Scalar::Blob => {
                Some("is a Blob and cannot be indexed".into())
            }
            _ => None,
        }
    }

    fn member<'o>(&self, owner: &'o Owner<'_>, arg: &ast::Arg) -> Result<Member<'o>, SourceError> {
        match &arg.value {
            ArgValue::Ident(name) => {
                if let Some((name, property)) = owner.properties.get_key_value(name.as_str()) {
                    return Ok(Member::Property(name, &property.facts.prop_type));
                }
                let role = SystemRole::from_name(name).filter(|role| *role != SystemRole::Id);
                match role {
                    Some(role) if owner.kind == OwnerKind::Edge => match self.options.vintage {
                        Some(Vintage::Current) => Err(self.error(
                            arg.at,
                            format!(
                                "edge {} has no property '{name}'; the endpoint is spelled {}",
                                owner.name,
                                role.meta()
                            ),
                        )),
                        Some(Vintage::Legacy) | None => Ok(Member::System(role, name.clone())),
                    },
                    _ => Err(self.error(
                        arg.at,
                        format!("{} {} has no property '{name}'", owner.kind, owner.name),
                    )),
                }
            }
            ArgValue::Meta { role, spaced } => {
                let admission = self.options.mode == ParseMode::Admission;
                if admission && *spaced {
                    return Err(self.error(
                        arg.at,
                        format!("{} is written without a space after '@'", role.meta()),
                    ));
                }
                match role {
                    SystemRole::Id if admission => {
                        Err(self.error(arg.at, "@id cannot be a member of a constraint"))
                    }
                    SystemRole::Src | SystemRole::Dst if owner.kind == OwnerKind::Node => Err(self
                        .error(
                            arg.at,
                            format!("node {} has no endpoint {}", owner.name, role.meta()),
                        )),
                    _ => Ok(Member::System(*role, role.meta().to_string())),
                }
            }
            ArgValue::Range { .. } | ArgValue::Text(_) | ArgValue::Other(_) => Err(self.error(
                arg.at,
                "a member of this constraint is a property name, @src or @dst",
            )),
        }
    }

    /// The property a `@range` or `@check` is about.
    fn subject<'o>(
        &self,
        owner: &'o Owner<'_>,
        constraint: &ast::Constraint,
    ) -> Result<(&'o str, &'o PropType), SourceError> {
        if owner.kind == OwnerKind::Edge {
            return Err(self.error(
                constraint.at,
                format!("edge {} cannot have @range or @check", owner.name),
            ));
        }
        let first = constraint.args.first();
        let Some(ArgValue::Ident(name)) = first.map(|arg| &arg.value) else {
            let at = first.map_or(constraint.at, |arg| arg.at);
            return Err(self.error(at, "the first argument must name a property"));
        };
        match owner.properties.get_key_value(name.as_str()) {
            Some((name, property)) => Ok((name, &property.facts.prop_type)),
            None => Err(self.error(
                first.map_or(constraint.at, |arg| arg.at),
                format!("node {} has no property '{name}'", owner.name),
            )),
        }
    }

    fn range(
        &self,
        owner: &Owner<'_>,
        constraint: &ast::Constraint,
    ) -> Result<ConstraintShape, SourceError> {
        let (property, prop_type) = self.subject(owner, constraint)?;
        if !prop_type.scalar.is_numeric() {
            return Err(self.error(
                constraint.at,
                format!("@range needs a number, but '{property}' is {prop_type}"),
            ));
        }
        let Some(ast::Arg {
            value: ArgValue::Range { min, max },
            at,
        }) = constraint.args.get(1)
        else {
            return Err(self.error(constraint.at, "the second argument of @range is min..max"));
        };
        let (min, max) = match (min, max, self.options.upper_bound) {
            (None, Some(only), UpperBound::AsMinimum) => (Some(only), None),
            (min, max, _) => (min.as_ref(), max.as_ref()),
        };
        Ok(ConstraintShape::Range {
            property: property.to_string(),
            min: min.map(|text| self.bound(*at, text)).transpose()?,
            max: max.map(|text| self.bound(*at, text)).transpose()?,
        })
    }

    fn bound(&self, at: usize, text: &str) -> Result<Bound, SourceError> {
        Bound::parse(text)
            .ok_or_else(|| self.error(at, "the range has a bound that no 64-bit float can hold"))
    }

    fn check(
        &self,
        owner: &Owner<'_>,
        constraint: &ast::Constraint,
    ) -> Result<ConstraintShape, SourceError> {
        let (property, prop_type) = self.subject(owner, constraint)?;
        if prop_type.scalar != Scalar::String {
            return Err(self.error(
                constraint.at,
                format!("@check needs text, but '{property}' is {prop_type}"),
            ));
        }
        match constraint.args.get(1).map(|arg| &arg.value) {
            Some(ArgValue::Text(pattern)) => Ok(ConstraintShape::Check {
                property: property.to_string(),
                pattern: pattern.clone(),
            }),
            _ => Err(self.error(
                constraint.at,
                "the second argument of @check is a quoted pattern",
            )),
        }
    }
}
