//! The three root schema objects and their staging copies (`docs/format/recovery-sidecars.md` 3, 7.4, 9, 11).
//!
//! A staging object is promoted by writing its bytes over the live one and then removing it, in the order a release
//! renamed them: a stop leaves a staging object that the next run promotes again.

use bytes::Bytes;
use graph::model::ContractHead;
use graph::schema::{
    ContractObject, MAX_SCHEMA_BYTES, RootObjects, SchemaIr, SchemaState, read_root_contract,
};
use graph::store::Root;
use graph::{Error, Result};

/// What stands at the root.
#[derive(Debug, Clone, Default)]
pub struct SchemaObjects {
    /// The live objects.
    pub live: RootObjects,
    /// The staging objects.
    pub staged: RootObjects,
}

fn slot(objects: &RootObjects, object: ContractObject) -> Option<&Bytes> {
    match object {
        ContractObject::Source => objects.source.as_ref(),
        ContractObject::Ir => objects.ir.as_ref(),
        ContractObject::State => objects.state.as_ref(),
    }
}

fn slot_mut(objects: &mut RootObjects, object: ContractObject) -> &mut Option<Bytes> {
    match object {
        ContractObject::Source => &mut objects.source,
        ContractObject::Ir => &mut objects.ir,
        ContractObject::State => &mut objects.state,
    }
}

impl SchemaObjects {
    /// Read all six.
    pub async fn read(root: &Root) -> Result<Self> {
        let mut found = Self::default();
        let limit = MAX_SCHEMA_BYTES as u64;
        for object in ContractObject::ALL {
            *slot_mut(&mut found.live, object) = root.get(object.name(), limit).await?;
            *slot_mut(&mut found.staged, object) = root.get(object.staging_name(), limit).await?;
        }
        Ok(found)
    }

    /// The names of the staging objects that are there.
    pub fn staged_names(&self) -> Vec<&'static str> {
        ContractObject::ALL
            .into_iter()
            .filter(|o| slot(&self.staged, *o).is_some())
            .map(ContractObject::staging_name)
            .collect()
    }

    /// The contract of the live objects, or why they hold none.
    pub fn live_contract(&self) -> std::result::Result<ContractHead, String> {
        contract(&self.live)
    }

    /// What promotion would leave: each object from its staging copy when there is one.
    pub fn promoted(&self) -> RootObjects {
        let mut out = self.live.clone();
        for object in ContractObject::ALL {
            if let Some(bytes) = slot(&self.staged, object) {
                *slot_mut(&mut out, object) = Some(bytes.clone());
            }
        }
        out
    }

    /// Require that promotion leaves the contract `target`.
    pub fn check_target(&self, target: &str) -> std::result::Result<(), String> {
        let head = contract(&self.promoted())
            .map_err(|why| format!("the staged schema objects hold no contract: {why}"))?;
        match head.schema_ir_hash == target {
            true => Ok(()),
            false => Err(format!(
                "the staged schema objects hold the schema {}, the write was to make {target}",
                head.schema_ir_hash
            )),
        }
    }

    /// Require that the live objects are still `authority` and that what is staged was staged for `target`.
    pub fn check_discard(&self, authority: &str, target: &str) -> std::result::Result<(), String> {
        let live = self.live_contract()?;
        if live.schema_ir_hash != authority {
            return Err(format!(
                "the live schema is {}, the write was decided on {authority}",
                live.schema_ir_hash
            ));
        }
        let text = |object| {
            slot(&self.staged, object).map(|bytes| {
                std::str::from_utf8(bytes)
                    .map_err(|_| format!("{} is no text", ContractObject::staging_name(object)))
            })
        };
        let foreign = |object: ContractObject, found: &str| {
            Err(format!(
                "{} is of the schema {found}, the write was to make {target}; it is not removed",
                object.staging_name()
            ))
        };
        if let Some(text) = text(ContractObject::Ir) {
            let ir = SchemaIr::parse(text?).map_err(|e| e.to_string())?;
            if !ir.matches_hash(target) {
                return foreign(ContractObject::Ir, &ir.ir_hash());
            }
        }
        if let Some(text) = text(ContractObject::State) {
            let state = SchemaState::parse(text?).map_err(|e| e.to_string())?;
            if state.schema_ir_hash != target {
                return foreign(ContractObject::State, &state.schema_ir_hash);
            }
        }
        Ok(())
    }
}

fn contract(objects: &RootObjects) -> std::result::Result<ContractHead, String> {
    read_root_contract(objects)
        .map(|(contract, _)| contract.head)
        .map_err(|e| e.to_string())
}

/// Promote what is staged, checked against `target` just before.
pub async fn promote(root: &Root, target: &str) -> Result<()> {
    let found = SchemaObjects::read(root).await?;
    found.check_target(target).map_err(Error::refused)?;
    promote_all(root, &found).await
}

/// Promote what was found.
pub(crate) async fn promote_all(root: &Root, found: &SchemaObjects) -> Result<()> {
    for object in ContractObject::ALL {
        if let Some(bytes) = slot(&found.staged, object) {
            root.overwrite(object.name(), bytes.clone()).await?;
            root.delete(object.staging_name()).await?;
        }
    }
    Ok(())
}

/// Remove what was found. The source goes last: staging objects without it read as a promotion that was begun.
pub(crate) async fn remove_all(root: &Root, found: &SchemaObjects) -> Result<()> {
    for object in ContractObject::ALL.into_iter().rev() {
        if slot(&found.staged, object).is_some() {
            root.delete(object.staging_name()).await?;
        }
    }
    Ok(())
}

/// Remove what is staged, checked just before.
pub async fn discard(root: &Root, authority: &str, target: &str) -> Result<()> {
    let found = SchemaObjects::read(root).await?;
    found
        .check_discard(authority, target)
        .map_err(Error::refused)?;
    remove_all(root, &found).await
}
