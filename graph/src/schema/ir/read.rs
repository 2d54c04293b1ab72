//! Reading an IR text (`docs/format/tables-and-schema.md` 5.2).

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{
    EDGE_KEYS, IR_VERSION_BASE, IR_VERSION_EDGE_KEYS, IR_VERSION_FEATURES, SYSTEM_COLUMNS, SchemaIr,
};
use crate::error::Error;

/// The feature names this build serves.
pub const KNOWN_FEATURES: [&str; 2] = [EDGE_KEYS, SYSTEM_COLUMNS];

/// Why an IR is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IrError {
    /// The text is no SchemaIR.
    #[error("the SchemaIR does not parse: {0}")]
    Malformed(String),
    /// A version or feature this build does not know; the contract may be from a later release.
    #[error("the SchemaIR is of a kind this build does not serve: {0}")]
    Unsupported(String),
    /// It contradicts itself or breaks a rule.
    #[error("the SchemaIR is invalid: {0}")]
    Invalid(String),
}

impl From<IrError> for Error {
    fn from(error: IrError) -> Self {
        match error {
            IrError::Unsupported(_) => Self::refused(error.to_string()),
            IrError::Malformed(_) | IrError::Invalid(_) => Self::internal(error.to_string()),
        }
    }
}

/// What decides whether the rest can be read at all.
#[derive(Deserialize)]
struct Header {
    ir_version: u64,
    #[serde(default)]
    features: Vec<String>,
}

impl SchemaIr {
    /// Parse an IR text. Version and features are inspected before anything else, so that a contract of
    /// a later release is refused by name and not for whatever it holds that is new. Unknown keys are
    /// dropped. The result is not yet validated: see [`SchemaIr::validate`].
    pub fn parse(text: &str) -> Result<Self, IrError> {
        let header: Header = serde_json::from_str(text).map_err(malformed)?;
        check_header(&header)?;
        serde_json::from_str(text).map_err(malformed)
    }
}

fn malformed(error: serde_json::Error) -> IrError {
    IrError::Malformed(error.to_string())
}

fn check_header(header: &Header) -> Result<(), IrError> {
    let newest = u64::from(IR_VERSION_FEATURES);
    if header.ir_version > newest {
        return Err(IrError::Unsupported(format!(
            "ir_version {} is newer than {newest}, the last this build knows",
            header.ir_version
        )));
    }
    if let Some(unknown) = header
        .features
        .iter()
        .find(|f| !KNOWN_FEATURES.contains(&f.as_str()))
    {
        return Err(IrError::Unsupported(format!("unknown feature '{unknown}'")));
    }
    Ok(())
}

/// The version and feature rules; `edge_keys` tells whether some edge has a key.
pub(super) fn check_version(
    version: u32,
    features: &BTreeSet<String>,
    edge_keys: bool,
) -> Result<(), IrError> {
    if let Some(unknown) = features
        .iter()
        .find(|f| !KNOWN_FEATURES.contains(&f.as_str()))
    {
        return Err(IrError::Unsupported(format!("unknown feature '{unknown}'")));
    }
    match version {
        IR_VERSION_BASE | IR_VERSION_EDGE_KEYS => {
            if let Some(feature) = features.first() {
                return Err(IrError::Invalid(format!(
                    "ir_version {version} carries no features, but '{feature}' is named"
                )));
            }
            if edge_keys != (version == IR_VERSION_EDGE_KEYS) {
                return Err(IrError::Invalid(format!(
                    "ir_version {version} is for a schema {} edge key",
                    if edge_keys { "without an" } else { "with an" }
                )));
            }
            Ok(())
        }
        IR_VERSION_FEATURES if features.is_empty() => Err(IrError::Invalid(format!(
            "ir_version {version} names no feature"
        ))),
        IR_VERSION_FEATURES if features.contains(EDGE_KEYS) != edge_keys => {
            Err(IrError::Invalid(format!(
                "the feature '{EDGE_KEYS}' is {}, but {} has a key",
                if edge_keys { "missing" } else { "named" },
                if edge_keys { "an edge" } else { "no edge" },
            )))
        }
        IR_VERSION_FEATURES => Ok(()),
        other => Err(IrError::Unsupported(format!(
            "ir_version {other} is none of {IR_VERSION_BASE}, {IR_VERSION_EDGE_KEYS} and {IR_VERSION_FEATURES}"
        ))),
    }
}
