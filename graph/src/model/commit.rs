//! Commits, contract heads and history records (`docs/format/history.md` 3 and 7.6).

use serde::{Deserialize, Serialize};

use super::table::TableRow;
use crate::error::{Error, Result};

/// The identity of an accepted schema contract, as compact JSON in this member order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContractHead {
    /// `sha256:` and 64 hex digits of the compact SchemaIR.
    pub schema_ir_hash: String,
    /// At least 1 in a contract; 2 in practice.
    pub schema_identity_version: u32,
    /// The graph's identity domain, a ULID.
    pub schema_identity_domain: String,
}

impl ContractHead {
    /// The compact JSON text.
    pub fn to_json(&self) -> String {
        // Serializing a struct of strings and integers into a String has no failing path.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One graph commit with every field stored whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Commit id; a canonical ULID or `hb1.<block>.<slot>.<nonce>`.
    pub graph_commit_id: String,
    /// Accepted contract as of the commit.
    pub schema_contract: Option<ContractHead>,
    /// Archive name of that contract; set exactly when the contract is.
    pub schema_content_hash: Option<String>,
    /// Logical branch; `None` is main.
    pub graph_branch: Option<String>,
    /// Native ref of the branch incarnation that wrote it; `None` is main.
    pub native_branch: Option<String>,
    /// `__manifest` version the commit wrote.
    pub graph_manifest_version: u64,
    /// 0 at genesis, else the greatest generation among its parents plus one.
    pub generation: u64,
    /// First parent; `None` only for a root commit.
    pub parent_commit_id: Option<String>,
    /// Merged source head of a branch merge.
    pub merged_parent_commit_id: Option<String>,
    /// Author.
    pub actor_id: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
}

impl Commit {
    /// Check the rules every stored commit obeys ([`Error::Internal`] otherwise): non-empty id,
    /// content hash set exactly when the contract is.
    pub fn check(&self) -> Result<()> {
        if self.graph_commit_id.is_empty() {
            return Err(Error::internal("a commit has an empty id"));
        }
        if self.schema_contract.is_some() != self.schema_content_hash.is_some() {
            return Err(Error::internal(format!(
                "commit {}: contract and schema_content_hash must be set together",
                self.graph_commit_id
            )));
        }
        Ok(())
    }
}

/// A commit and the table rows of the version it wrote. Canonical when the rows are in identity
/// order without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryRecord {
    /// The commit.
    pub commit: Commit,
    /// Every table of that version: registered, pinned and dropped.
    pub tables: Vec<TableRow>,
}

impl HistoryRecord {
    /// Sort the tables by identity; two rows of one identity are [`Error::Internal`].
    pub fn canonicalize(mut self) -> Result<Self> {
        self.tables.sort_by_key(|t| t.identity);
        if let Some(pair) = self
            .tables
            .windows(2)
            .find(|pair| pair[0].identity == pair[1].identity)
        {
            return Err(Error::internal(format!(
                "commit {} holds two rows of table {}",
                self.commit.graph_commit_id, pair[0].identity
            )));
        }
        Ok(self)
    }
}
