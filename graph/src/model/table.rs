//! Table identity, path, state and pin (`docs/format/manifest-v14.md` 3.1 and 4).

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// `(stable_table_id, table_incarnation_id)`, both non-zero. Orders by stable id, then incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableIdentity {
    /// The SchemaIR `type_id` of the type.
    pub stable_table_id: u64,
    /// The SchemaIR `table_incarnation_id` of the type.
    pub table_incarnation_id: u64,
}

impl TableIdentity {
    /// An identity; both parts must be non-zero ([`Error::Internal`] otherwise).
    pub fn new(stable_table_id: u64, table_incarnation_id: u64) -> Result<Self> {
        if stable_table_id == 0 || table_incarnation_id == 0 {
            return Err(Error::internal(format!(
                "table identity {stable_table_id:016x}:{table_incarnation_id:016x} has a zero part"
            )));
        }
        Ok(Self {
            stable_table_id,
            table_incarnation_id,
        })
    }
}

impl std::fmt::Display for TableIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:016x}:{:016x}",
            self.stable_table_id, self.table_incarnation_id
        )
    }
}

/// Whether a table holds nodes or edges; decided by the prefix of its `table_key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// `node:{Type}`, stored below `nodes/`.
    Node,
    /// `edge:{Type}`, stored below `edges/`.
    Edge,
}

impl TableKind {
    /// Split a `table_key` into kind and type name. [`Error::Internal`] for any other prefix or an
    /// empty type name.
    pub fn split(table_key: &str) -> Result<(Self, &str)> {
        let (kind, name) = if let Some(name) = table_key.strip_prefix("node:") {
            (Self::Node, name)
        } else if let Some(name) = table_key.strip_prefix("edge:") {
            (Self::Edge, name)
        } else {
            return Err(Error::internal(format!(
                "table key '{table_key}' is neither node:<Type> nor edge:<Type>"
            )));
        };
        if name.is_empty() {
            return Err(Error::internal(format!(
                "table key '{table_key}' names no type"
            )));
        }
        Ok((kind, name))
    }

    /// The folder below the root: `nodes` or `edges`.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Edge => "edges",
        }
    }
}

/// The one path, relative to the root, at which a table of this key and identity lives.
pub fn canonical_path(table_key: &str, identity: TableIdentity) -> Result<String> {
    let (kind, _) = TableKind::split(table_key)?;
    Ok(format!(
        "{}/{:016x}-{:016x}",
        kind.folder(),
        identity.stable_table_id,
        identity.table_incarnation_id
    ))
}

/// Pin metadata JSON, members in stored order (`docs/format/manifest-v14.md` 4). Unknown members are
/// ignored on read and lost on rewrite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinMetadata {
    /// Object-store path of the pinned Lance manifest: evidence, never the way a table is opened.
    pub manifest_path: String,
    /// Bytes of that manifest.
    #[serde(default)]
    pub manifest_size: Option<u64>,
    /// Its ETag as Lance reported it.
    #[serde(default)]
    pub e_tag: Option<String>,
    /// `V1` or `V2`.
    #[serde(default)]
    pub naming_scheme: Option<String>,
    /// Native ref of the graph branch that owns the table fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_fork_owner: Option<String>,
    /// Detached Lance version the pin was staged as (bit 63 set).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged_version: Option<u64>,
    /// Transaction uuid of the staged commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_uuid: Option<String>,
    /// Highest linear Lance version a pin of this table reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_linear_version: Option<u64>,
}

impl PinMetadata {
    /// Parse the stored JSON text. `object` names the row in the error ([`Error::Internal`]).
    pub fn parse(text: &str, object: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|e| Error::internal(format!("{object}: pin metadata is not valid JSON: {e}")))
    }

    /// The compact JSON text that is stored and digested.
    pub fn to_json(&self) -> String {
        // Serializing a struct of strings and integers into a String has no failing path.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One registration of a table version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Published dataset version.
    pub table_version: u64,
    /// Native ref of the table dataset that holds it; `None` is its root lineage.
    pub table_branch: Option<String>,
    /// Live rows of the image.
    pub row_count: u64,
    /// The metadata JSON, decoded.
    pub metadata: PinMetadata,
    /// `__manifest` version whose publish wrote the pin (its clock).
    pub manifest_version: u64,
}

/// The state of a table in one version; exactly these three shapes exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableState {
    /// Registered, no pin yet.
    Registered,
    /// Pinned at a table version.
    Pinned(Pin),
    /// Dropped; the identity never returns.
    Dropped {
        /// `__manifest` version of the publish that dropped it.
        dropped_at: u64,
        /// The tombstone's sealed version.
        sealed_version: u64,
    },
}

impl TableState {
    /// The pin, when pinned.
    pub fn pin(&self) -> Option<&Pin> {
        match self {
            Self::Pinned(pin) => Some(pin),
            Self::Registered | Self::Dropped { .. } => None,
        }
    }
}

impl Serialize for TableState {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        use serde::ser::SerializeStructVariant as _;
        match self {
            Self::Registered => serializer.serialize_unit_variant("TableState", 0, "Registered"),
            Self::Pinned(pin) => {
                let mut v = serializer.serialize_struct_variant("TableState", 1, "Pinned", 5)?;
                v.serialize_field("table_version", &pin.table_version)?;
                v.serialize_field("table_branch", &pin.table_branch)?;
                v.serialize_field("row_count", &pin.row_count)?;
                v.serialize_field("metadata", &pin.metadata.to_json())?;
                v.serialize_field("manifest_version", &pin.manifest_version)?;
                v.end()
            }
            Self::Dropped {
                dropped_at,
                sealed_version,
            } => {
                let mut v = serializer.serialize_struct_variant("TableState", 2, "Dropped", 2)?;
                v.serialize_field("dropped_at", dropped_at)?;
                v.serialize_field("sealed_version", sealed_version)?;
                v.end()
            }
        }
    }
}

/// One table of one version: registration plus state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Its identity.
    pub identity: TableIdentity,
    /// `node:{Type}` or `edge:{Type}`, the alias in that version.
    pub table_key: String,
    /// Path relative to the root; always the canonical one of key and identity.
    pub table_path: String,
    /// Registered, pinned or dropped.
    pub state: TableState,
}

impl TableRow {
    /// Require the canonical path ([`Error::Internal`] otherwise).
    pub fn check_path(&self) -> Result<()> {
        let canonical = canonical_path(&self.table_key, self.identity)?;
        if self.table_path != canonical {
            return Err(Error::internal(format!(
                "table {} ({}) has path '{}', expected '{canonical}'",
                self.table_key, self.identity, self.table_path
            )));
        }
        Ok(())
    }
}
