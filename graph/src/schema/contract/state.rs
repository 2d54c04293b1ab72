//! `__schema_state.json` (`docs/format/tables-and-schema.md` 6.1).

use serde::{Deserialize, Serialize};

use super::IDENTITY_VERSION;
use crate::schema::ir::SchemaIr;
use crate::schema::text;

/// The only `format_version`.
pub const STATE_FORMAT_VERSION: u32 = 2;

/// The hashes that tie the root objects together. Unknown keys are ignored; a known one that is missing or
/// repeated is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaState {
    /// 2.
    pub format_version: u32,
    /// `sha256:` and 64 hex digits of the shape.
    pub schema_shape_hash: String,
    /// `sha256:` and 64 hex digits of the compact IR.
    pub schema_ir_hash: String,
    /// 2.
    pub schema_identity_version: u32,
    /// A canonical ULID.
    pub schema_identity_domain: String,
}

impl SchemaState {
    /// The state of an accepted IR.
    pub fn of(ir: &SchemaIr) -> Self {
        Self {
            format_version: STATE_FORMAT_VERSION,
            schema_shape_hash: ir.shape().shape_hash(),
            schema_ir_hash: ir.ir_hash(),
            schema_identity_version: IDENTITY_VERSION,
            schema_identity_domain: ir.schema_identity_domain.clone(),
        }
    }

    /// Parse the text of the object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text a writer stores: pretty JSON without a trailing newline.
    pub fn pretty(&self) -> String {
        text::pretty(self)
    }
}
