//! What the declarations of an accepted IR pass on to a new source.

use std::collections::{BTreeSet, HashMap};

use crate::error::{Error, Result};
use crate::schema::ir::{PropertyIr, SchemaIr};
use crate::schema::names::OwnerKind;
use crate::schema::shape::PropertyShape;
use crate::schema::source::RenameHints;

/// What an accepted declaration passes on.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// The type's id.
    pub type_id: u64,
    /// Its table's; 0 for an interface.
    pub incarnation: u64,
    /// Its properties.
    pub properties: &'a [PropertyIr],
}

/// The accepted declarations by kind and name.
pub struct Accepted<'a> {
    present: bool,
    types: HashMap<OwnerKind, HashMap<&'a str, Kept<'a>>>,
}

impl<'a> Accepted<'a> {
    /// Of an accepted IR, or of none.
    pub fn new(accepted: Option<&'a SchemaIr>) -> Self {
        let mut types: HashMap<OwnerKind, HashMap<&str, Kept<'_>>> = HashMap::new();
        let mut add = |kind, name: &'a String, type_id, incarnation, properties| {
            let kept = Kept {
                type_id,
                incarnation,
                properties,
            };
            types.entry(kind).or_default().insert(name, kept);
        };
        if let Some(ir) = accepted {
            for i in &ir.interfaces {
                add(
                    OwnerKind::Interface,
                    &i.name,
                    i.type_id,
                    0,
                    &i.properties[..],
                );
            }
            for n in &ir.nodes {
                add(
                    OwnerKind::Node,
                    &n.name,
                    n.type_id,
                    n.table_incarnation_id,
                    &n.properties,
                );
            }
            for e in &ir.edges {
                add(
                    OwnerKind::Edge,
                    &e.name,
                    e.type_id,
                    e.table_incarnation_id,
                    &e.properties,
                );
            }
        }
        Self {
            present: accepted.is_some(),
            types,
        }
    }

    fn find(&self, kind: OwnerKind, name: &str) -> Option<Kept<'a>> {
        self.types.get(&kind)?.get(name).copied()
    }

    /// The accepted declaration each name continues, in the order given.
    pub fn keep_types<'n>(
        &self,
        kind: OwnerKind,
        names: impl Iterator<Item = &'n String> + Clone,
        hints: &RenameHints,
    ) -> Result<Vec<(&'n str, Option<Kept<'a>>)>> {
        let declared: BTreeSet<&str> = names.clone().map(String::as_str).collect();
        let mut claimed: BTreeSet<&str> = BTreeSet::new();
        let mut result = Vec::with_capacity(declared.len());
        for name in names {
            let same = self.find(kind, name);
            let hint = hints
                .types
                .get(&(kind, name.clone()))
                .filter(|_| self.present);
            let kept = match (same, hint) {
                (Some(kept), _) => Some(kept),
                (None, None) => None,
                (None, Some(old)) => {
                    let refuse = |why: &str| {
                        Error::refused(format!("{kind} {name}: @rename_from(\"{old}\"): {why}"))
                    };
                    let kept = self.find(kind, old);
                    let kept = kept.ok_or_else(|| {
                        refuse(&format!("the accepted schema has no {kind} of that name"))
                    })?;
                    if declared.contains(old.as_str()) {
                        return Err(refuse("the source still declares that name"));
                    }
                    if !claimed.insert(old) {
                        return Err(refuse("another declaration takes that name's place"));
                    }
                    Some(kept)
                }
            };
            result.push((name.as_str(), kept));
        }
        Ok(result)
    }

    /// The accepted id each property of an owner continues, in the order given.
    pub fn keep_properties(
        &self,
        kind: OwnerKind,
        owner: &str,
        kept: Option<Kept<'a>>,
        declared: &[PropertyShape],
        hints: &RenameHints,
    ) -> Result<Vec<Option<u64>>> {
        let old: HashMap<&str, u64> = kept
            .iter()
            .flat_map(|k| k.properties)
            .map(|p| (p.name.as_str(), p.property_id))
            .collect();
        let names: BTreeSet<&str> = declared.iter().map(|p| p.name.as_str()).collect();
        let mut claimed: BTreeSet<&str> = BTreeSet::new();
        let mut result = Vec::with_capacity(declared.len());
        for property in declared {
            if let Some(id) = old.get(property.name.as_str()) {
                result.push(Some(*id));
                continue;
            }
            let key = (kind, owner.to_string(), property.name.clone());
            let Some(from) = hints.properties.get(&key).filter(|_| self.present) else {
                result.push(None);
                continue;
            };
            if kept.is_none() && !property.declared_directly {
                // The hint is the interface's, for nodes that had the old name; a new node never did.
                result.push(None);
                continue;
            }
            let refuse = |why: &str| {
                Error::refused(format!(
                    "{kind} {owner}.{}: @rename_from(\"{from}\"): {why}",
                    property.name
                ))
            };
            let id = old.get(from.as_str()).copied();
            let id = id.ok_or_else(|| refuse("the accepted type has no property of that name"))?;
            if names.contains(from.as_str()) {
                return Err(refuse("the source still declares that name"));
            }
            if !claimed.insert(from) {
                return Err(refuse("another property takes that name's place"));
            }
            result.push(Some(id));
        }
        Ok(result)
    }
}
