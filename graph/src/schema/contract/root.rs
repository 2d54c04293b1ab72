//! The contract of a stamp 8 or 9 root, from the bytes of its three root objects
//! (`docs/format/upgrade-protocol.md` 6.3, `docs/format/tables-and-schema.md` 6.2).
//!
//! Reading them, the bound of each read and the probe for leftover staging objects are the caller's. So is
//! the rule that a stamp-8 root must be of the legacy vintage ([`SchemaIr::vintage`]).

use bytes::Bytes;

use super::state::STATE_FORMAT_VERSION;
use super::{Contract, IDENTITY_VERSION, SchemaState, compile_stored, source_difference};
use crate::model::ContractHead;
use crate::schema::MAX_SCHEMA_BYTES;
use crate::schema::ir::{IrError, SchemaIr};
use crate::schema::source::{SourceError, UpperBound};
use crate::ulids;

/// The three objects in the order they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContractObject {
    /// `_schema.pg`
    Source,
    /// `_schema.ir.json`
    Ir,
    /// `__schema_state.json`
    State,
}

impl ContractObject {
    /// All three, in the order they are read and their staging copies probed.
    pub const ALL: [Self; 3] = [Self::Source, Self::Ir, Self::State];

    /// The object's name below the root.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "_schema.pg",
            Self::Ir => "_schema.ir.json",
            Self::State => "__schema_state.json",
        }
    }

    /// The name of its copy while a schema apply is under way.
    pub fn staging_name(self) -> &'static str {
        match self {
            Self::Source => "_schema.pg.staging",
            Self::Ir => "_schema.ir.json.staging",
            Self::State => "__schema_state.json.staging",
        }
    }
}

impl std::fmt::Display for ContractObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What was read; `None` where no object is.
#[derive(Debug, Clone, Default)]
pub struct RootObjects {
    /// `_schema.pg`
    pub source: Option<Bytes>,
    /// `_schema.ir.json`
    pub ir: Option<Bytes>,
    /// `__schema_state.json`
    pub state: Option<Bytes>,
}

/// Why the root objects hold no contract: the cause text of an `unsupported_source` finding. The letters
/// are the rules of `docs/format/upgrade-protocol.md` 6.3, step 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootContractError {
    /// Before any rule: an object above the bound.
    #[error("{object} has {size} bytes, above the limit of {limit}")]
    TooLarge {
        /// Which.
        object: ContractObject,
        /// Its size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// Before any rule: an object that is no text.
    #[error("{object} is not UTF-8 text (byte {valid_up_to} is the first that is not)")]
    NotText {
        /// Which.
        object: ContractObject,
        /// Bytes before the first that is wrong.
        valid_up_to: usize,
    },
    /// (a)
    #[error("_schema.pg is missing")]
    SourceMissing,
    /// (b), both.
    #[error("_schema.ir.json and __schema_state.json are missing")]
    Missing,
    /// (b), one.
    #[error("the contract is incomplete: {0} is missing")]
    Incomplete(ContractObject),
    /// (c)
    #[error("_schema.pg does not compile: {0}")]
    Source(SourceError),
    /// (d)
    #[error("_schema.ir.json is not readable: {0}")]
    Ir(IrError),
    /// (e)
    #[error("__schema_state.json is not readable: {0}")]
    State(String),
    /// (f)
    #[error("__schema_state.json has format_version {0}, expected {STATE_FORMAT_VERSION}")]
    FormatVersion(u32),
    /// (g), version.
    #[error("__schema_state.json has schema_identity_version {0}, expected {IDENTITY_VERSION}")]
    IdentityVersion(u32),
    /// (g), domain.
    #[error("__schema_state.json has schema_identity_domain '{0}', which is no canonical ULID")]
    IdentityDomain(String),
    /// (h)
    #[error("_schema.ir.json is not acceptable: {0}")]
    IrInvalid(IrError),
    /// (i)
    #[error(
        "__schema_state.json names schema_ir_hash {stated}, but _schema.ir.json hashes to {found}"
    )]
    IrHash {
        /// In the state.
        stated: String,
        /// Of the IR.
        found: String,
    },
    /// (j)
    #[error(
        "__schema_state.json names schema_shape_hash {stated}, but the shape of _schema.ir.json hashes to {found}"
    )]
    ShapeHash {
        /// In the state.
        stated: String,
        /// Of the IR's shape.
        found: String,
    },
    /// (k)
    #[error("__schema_state.json is of identity domain {state}, _schema.ir.json of {ir}")]
    DomainMismatch {
        /// In the state.
        state: String,
        /// In the IR.
        ir: String,
    },
    /// (l)
    #[error("_schema.pg and _schema.ir.json are not the same schema: {0}")]
    SourceDiffers(String),
}

/// The contract that the root objects hold, with its IR, by rules (a) to (l) in order. Texts stay byte-exact
/// and the head is the state's.
pub fn read_root_contract(
    objects: &RootObjects,
) -> Result<(Contract, SchemaIr), RootContractError> {
    use RootContractError as E;
    let source = text(ContractObject::Source, objects.source.as_ref())?.ok_or(E::SourceMissing)?;
    let ir_text = text(ContractObject::Ir, objects.ir.as_ref())?;
    let state_text = text(ContractObject::State, objects.state.as_ref())?;

    // A source that does not compile is the reported cause even when other objects are missing.
    let compiled = compile_stored(source, UpperBound::AsMinimum).map_err(E::Source)?;
    let (ir_text, state_text) = match (ir_text, state_text) {
        (Some(ir), Some(state)) => (ir, state),
        (None, None) => return Err(E::Missing),
        (None, Some(_)) => return Err(E::Incomplete(ContractObject::Ir)),
        (Some(_), None) => return Err(E::Incomplete(ContractObject::State)),
    };
    let ir = SchemaIr::parse(ir_text).map_err(E::Ir)?;
    let state = SchemaState::parse(state_text).map_err(|e| E::State(e.to_string()))?;
    if state.format_version != STATE_FORMAT_VERSION {
        return Err(E::FormatVersion(state.format_version));
    }
    if state.schema_identity_version != IDENTITY_VERSION {
        return Err(E::IdentityVersion(state.schema_identity_version));
    }
    if !ulids::is_canonical(&state.schema_identity_domain) {
        return Err(E::IdentityDomain(state.schema_identity_domain));
    }
    ir.validate().map_err(E::IrInvalid)?;
    if !ir.matches_hash(&state.schema_ir_hash) {
        return Err(E::IrHash {
            stated: state.schema_ir_hash,
            found: ir.ir_hash(),
        });
    }
    let shape = ir.shape();
    if !shape.matches_hash(&state.schema_shape_hash) {
        return Err(E::ShapeHash {
            stated: state.schema_shape_hash,
            found: shape.shape_hash(),
        });
    }
    if ir.schema_identity_domain != state.schema_identity_domain {
        return Err(E::DomainMismatch {
            state: state.schema_identity_domain,
            ir: ir.schema_identity_domain,
        });
    }
    if let Some(difference) = source_difference(source, compiled, &ir) {
        return Err(E::SourceDiffers(difference));
    }
    let contract = Contract {
        head: ContractHead {
            schema_ir_hash: state.schema_ir_hash,
            schema_identity_version: state.schema_identity_version,
            schema_identity_domain: state.schema_identity_domain,
        },
        source: source.to_string(),
        ir: ir_text.to_string(),
    };
    Ok((contract, ir))
}

fn text(object: ContractObject, bytes: Option<&Bytes>) -> Result<Option<&str>, RootContractError> {
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    if bytes.len() > MAX_SCHEMA_BYTES {
        return Err(RootContractError::TooLarge {
            object,
            size: bytes.len() as u64,
            limit: MAX_SCHEMA_BYTES as u64,
        });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(e) => Err(RootContractError::NotText {
            object,
            valid_up_to: e.valid_up_to(),
        }),
    }
}
