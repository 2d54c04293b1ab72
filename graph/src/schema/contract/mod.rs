//! The accepted contract: head, source and IR, texts byte-exact
//! (`docs/format/tables-and-schema.md` 6).
//!
//! Three things hold it: the root objects of stamps 8 and 9 ([`read_root_contract`]), the
//! `schema_contract` row of stamps 13 and 14 ([`Contract::validate`]), and the archive object below
//! `__history/schemas/` ([`Contract::encode`]). Nothing here writes a text anew: what was stored is what
//! is carried on, comments and white space included.

mod archive;
mod root;
mod state;

#[cfg(test)]
mod tests;

pub use archive::MAGIC;
pub use root::{ContractObject, RootContractError, RootObjects, read_root_contract};
pub use state::SchemaState;

use super::MAX_SCHEMA_BYTES;
use super::ir::{IrError, SchemaIr};
use super::source::{CompileOptions, Compiled, ParseMode, SourceError, UpperBound, compile_with};
use crate::error::{Error, Result};
use crate::model::ContractHead;
use crate::ulids;

/// The only identity version of a real contract.
pub const IDENTITY_VERSION: u32 = 2;

/// An accepted schema as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// Hash, identity version and identity domain.
    pub head: ContractHead,
    /// The `.pg` text.
    pub source: String,
    /// The IR text, as some writer rendered it.
    pub ir: String,
}

impl Contract {
    /// The contract of a source that was resolved to `ir`.
    pub fn of(source: impl Into<String>, ir: &SchemaIr) -> Self {
        Self {
            head: ContractHead {
                schema_ir_hash: ir.ir_hash(),
                schema_identity_version: IDENTITY_VERSION,
                schema_identity_domain: ir.schema_identity_domain.clone(),
            },
            source: source.into(),
            ir: ir.pretty(),
        }
    }

    /// Check the contract as the row of a `__manifest` version
    /// (`docs/format/tables-and-schema.md` 6.4) and hand back its IR.
    ///
    /// A contract of a later release is [`Error::Refused`]; any other failure means that the stored texts
    /// contradict each other and is [`Error::Internal`].
    pub fn validate(&self) -> Result<SchemaIr> {
        let invalid = |why: String| Error::internal(format!("schema contract: {why}"));
        for (what, text) in [("source", &self.source), ("IR", &self.ir)] {
            if text.len() > MAX_SCHEMA_BYTES {
                return Err(invalid(format!(
                    "the {what} has {} bytes, above the limit of {MAX_SCHEMA_BYTES}",
                    text.len()
                )));
            }
        }
        let ir = match SchemaIr::parse(&self.ir) {
            Err(newer @ IrError::Unsupported(_)) => {
                return Err(Error::from(newer).within("schema contract"));
            }
            parsed => parsed,
        };
        let compiled = compile_stored(&self.source, UpperBound::AsMinimum)
            .map_err(|e| invalid(format!("the source does not compile: {e}")))?;
        let ir = ir.map_err(|e| invalid(e.to_string()))?;
        ir.validate().map_err(|e| invalid(e.to_string()))?;
        let head = &self.head;
        if head.schema_identity_version != IDENTITY_VERSION {
            return Err(invalid(format!(
                "the identity version is {}, expected {IDENTITY_VERSION}",
                head.schema_identity_version
            )));
        }
        if !ulids::is_canonical(&head.schema_identity_domain) {
            return Err(invalid(format!(
                "the identity domain '{}' is no canonical ULID",
                head.schema_identity_domain
            )));
        }
        if !ir.matches_hash(&head.schema_ir_hash) {
            return Err(invalid(format!(
                "the head names IR {}, but the IR text hashes to {}",
                head.schema_ir_hash,
                ir.ir_hash()
            )));
        }
        if ir.schema_identity_domain != head.schema_identity_domain {
            return Err(invalid(format!(
                "the head is of identity domain {}, the IR of {}",
                head.schema_identity_domain, ir.schema_identity_domain
            )));
        }
        match source_difference(&self.source, compiled, &ir) {
            Some(difference) => Err(invalid(format!(
                "the source and the IR differ: {difference}"
            ))),
            None => Ok(ir),
        }
    }
}

/// Compile a source that some release accepted. The vintage is not asked for: a valid IR settles which
/// names and spellings the graph uses, and the source has to compile to that IR's shape.
fn compile_stored(source: &str, upper_bound: UpperBound) -> Result<Compiled, SourceError> {
    compile_with(
        source,
        CompileOptions {
            mode: ParseMode::Tolerant,
            vintage: None,
            upper_bound,
        },
    )
}

/// Where a stored source and a valid IR part, or `None` when they are the same schema.
fn source_difference(source: &str, compiled: Compiled, ir: &SchemaIr) -> Option<String> {
    let accepted = ir.shape();
    let vintage = ir.vintage();
    let difference = compiled.shape.respelled(vintage).difference(&accepted)?;
    // Releases may disagree what a range with only an upper bound compiles to. The IR tells which
    // reading the writer had.
    let other = compile_stored(source, UpperBound::AsMaximum).ok()?;
    other
        .shape
        .respelled(vintage)
        .difference(&accepted)
        .map(|_| difference)
}
