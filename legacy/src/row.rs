//! Logical rows of the catalog and what each row type means (`docs/format/legacy-manifest.md` 2.3, 3).
//!
//! [`LogicalRow`] has one field per logical column, whatever the stored shape; everything that reads
//! legacy catalogs is written against it. [`LogicalRow::decode`] is the key grammar of stamps 7 and up.
//! A row that fills a column its type does not use is refused: this build would not know what it
//! means, and the conversion would lose it.

use graph::model::{
    ContractHead, Pin, PinMetadata, TableIdentity, TableKind, table::canonical_path,
};
use graph::schema::Contract;

use crate::contract::SourceContract;
use crate::metadata;

/// Fixed key of the contract row.
const CONTRACT_KEY: &str = "schema_contract";

/// One row, shape-independent. Columns that a read does not project are `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogicalRow<'a> {
    /// Primary key.
    pub object_id: &'a str,
    /// Row type.
    pub object_type: &'a str,
    /// Table path.
    pub location: Option<&'a str>,
    /// JSON by row type.
    pub metadata: Option<&'a str>,
    /// Alias; empty on rows without a table.
    pub table_key: &'a str,
    /// First half of the identity.
    pub stable_table_id: Option<u64>,
    /// Second half of the identity.
    pub table_incarnation_id: Option<u64>,
    /// Table version, sealed version or `__manifest` version, by row type.
    pub table_version: Option<u64>,
    /// Native table ref on pins, logical graph branch on commits.
    pub table_branch: Option<&'a str>,
    /// Rows of a pin.
    pub row_count: Option<u64>,
    /// `.pg` text, on the contract row of stamp 13.
    pub schema_source: Option<&'a str>,
    /// IR text, on the contract row of stamp 13.
    pub schema_ir: Option<&'a str>,
}

/// A table that exists in a version: its identity, alias and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its identity.
    pub identity: TableIdentity,
    /// `node:<Type>` or `edge:<Type>`.
    pub table_key: String,
    /// Path relative to the root, always the canonical one.
    pub table_path: String,
}

/// One `graph_commit` row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyCommit {
    /// Commit id.
    pub id: String,
    /// Logical branch that wrote it; `None` is main.
    pub branch: Option<String>,
    /// `__manifest` version it wrote.
    pub version: u64,
    /// First parent.
    pub parent: Option<String>,
    /// Merged source head.
    pub merged_parent: Option<String>,
    /// Author.
    pub actor: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
}

/// A decoded row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// `table`.
    Table(Registration),
    /// `table_version`; the key's clock is the pin's `manifest_version`.
    Pin {
        /// The pinned table.
        identity: TableIdentity,
        /// The registration.
        pin: Pin,
    },
    /// `table_tombstone`.
    Tombstone {
        /// The dropped table.
        identity: TableIdentity,
        /// Its alias as the tombstone spells it.
        table_key: String,
        /// Clock of the drop.
        clock: u64,
        /// Sealed table version.
        sealed_version: u64,
    },
    /// `graph_commit`.
    Commit(LegacyCommit),
    /// `graph_head`.
    Head {
        /// Logical branch, `main` for main.
        branch: String,
        /// Commit it names.
        commit: String,
    },
    /// `schema_contract`.
    Contract(ContractRow),
}

/// A `schema_contract` row as stored; below stamp 13, where no such row exists, without texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractRow {
    /// Identity of the contract.
    pub head: ContractHead,
    /// `.pg` text, byte-exact.
    pub source: Option<String>,
    /// IR text, byte-exact.
    pub ir: Option<String>,
}

impl ContractRow {
    /// The contract of a whole row, which has both texts.
    pub(crate) fn into_contract(self) -> Result<SourceContract, String> {
        let source = self.source.ok_or("a contract row without schema_source")?;
        let ir = self.ir.ok_or("a contract row without schema_ir")?;
        let head = self.head;
        SourceContract::new(Contract { head, source, ir }).map_err(|e| e.to_string())
    }
}

/// Columns a row type may fill beyond its key and type.
#[derive(Clone, Copy, Default)]
struct Filled {
    location: bool,
    metadata: bool,
    table: bool,
    table_version: bool,
    table_branch: bool,
    row_count: bool,
    content: bool,
}

impl LogicalRow<'_> {
    /// Decode by row type. The error says what is wrong with the row; the caller adds which row of
    /// which version.
    pub fn decode(&self) -> Result<Row, String> {
        if self.object_id == CONTRACT_KEY && self.object_type != "schema_contract" {
            return Err(format!(
                "the key of the contract row is used by object type '{}'",
                self.object_type
            ));
        }
        match self.object_type {
            "table" => self.table().map(Row::Table),
            "table_version" => self.pin(),
            "table_tombstone" => self.tombstone(),
            "graph_commit" => self.commit().map(Row::Commit),
            "graph_head" => self.head(),
            "schema_contract" => self.contract().map(Row::Contract),
            other => Err(format!("unknown object type '{other}'")),
        }
    }

    /// The identity of a row type that must carry one.
    fn identity(&self) -> Result<TableIdentity, String> {
        let (Some(stable), Some(incarnation)) = (self.stable_table_id, self.table_incarnation_id)
        else {
            return Err("the table identity is null".to_string());
        };
        TableIdentity::new(stable, incarnation).map_err(|e| e.to_string())
    }

    /// Refuse every filled column that `allowed` does not list.
    fn only(&self, allowed: Filled) -> Result<(), String> {
        let identity = self.stable_table_id.is_some() || self.table_incarnation_id.is_some();
        if identity && !allowed.table {
            return Err(format!(
                "a {} row must not carry a table identity",
                self.object_type
            ));
        }
        let extra = [
            ("location", self.location.is_some() && !allowed.location),
            ("metadata", self.metadata.is_some() && !allowed.metadata),
            ("table_key", !self.table_key.is_empty() && !allowed.table),
            (
                "table_version",
                self.table_version.is_some() && !allowed.table_version,
            ),
            (
                "table_branch",
                self.table_branch.is_some() && !allowed.table_branch,
            ),
            ("row_count", self.row_count.is_some() && !allowed.row_count),
            (
                "schema_source",
                self.schema_source.is_some() && !allowed.content,
            ),
            ("schema_ir", self.schema_ir.is_some() && !allowed.content),
        ];
        match extra.iter().find(|(_, filled)| *filled) {
            Some((column, _)) => Err(format!(
                "the column {column} must be null on a {} row",
                self.object_type
            )),
            None => Ok(()),
        }
    }

    fn require_key(&self, expected: &str) -> Result<(), String> {
        if self.object_id == expected {
            Ok(())
        } else {
            Err(format!(
                "the key does not fit the row, expected '{expected}'"
            ))
        }
    }

    /// The clock in a key of the form `<prefix>:<identity>:<20 digits>`.
    fn clock(&self, prefix: &str, identity: TableIdentity) -> Result<u64, String> {
        let start = format!("{prefix}:{identity}:");
        let digits = self.object_id.strip_prefix(&start).ok_or_else(|| {
            format!("the key does not fit the row, expected '{start}' and 20 digits")
        })?;
        if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!(
                "the key ends in '{digits}', expected 20 decimal digits"
            ));
        }
        digits
            .parse()
            .map_err(|_| format!("the number {digits} in the key is above {}", u64::MAX))
    }

    fn table(&self) -> Result<Registration, String> {
        let identity = self.identity()?;
        self.only(Filled {
            location: true,
            table: true,
            ..Filled::default()
        })?;
        self.require_key(&format!("table:{identity}"))?;
        let path = canonical_path(self.table_key, identity).map_err(|e| e.to_string())?;
        if self.location != Some(path.as_str()) {
            return Err(format!(
                "table {} has the path {}, expected '{path}'",
                self.table_key,
                self.location.map_or("null".into(), |l| format!("'{l}'"))
            ));
        }
        Ok(Registration {
            identity,
            table_key: self.table_key.to_string(),
            table_path: path,
        })
    }

    fn pin(&self) -> Result<Row, String> {
        let identity = self.identity()?;
        self.only(Filled {
            metadata: true,
            table: true,
            table_version: true,
            table_branch: true,
            row_count: true,
            ..Filled::default()
        })?;
        let clock = self.clock("table_version", identity)?;
        TableKind::split(self.table_key).map_err(|e| e.to_string())?;
        let text = self.metadata.ok_or("a pin has no metadata")?;
        let metadata = serde_json::from_str::<PinMetadata>(text)
            .map_err(|e| format!("pin metadata is not valid JSON: {e}"))?;
        Ok(Row::Pin {
            identity,
            pin: Pin {
                table_version: self.table_version.ok_or("a pin has no table_version")?,
                table_branch: self.table_branch.map(str::to_string),
                row_count: self.row_count.ok_or("a pin has no row_count")?,
                metadata,
                manifest_version: clock,
            },
        })
    }

    fn tombstone(&self) -> Result<Row, String> {
        let identity = self.identity()?;
        self.only(Filled {
            table: true,
            table_version: true,
            ..Filled::default()
        })?;
        Ok(Row::Tombstone {
            identity,
            table_key: self.table_key.to_string(),
            clock: self.clock("table_tombstone", identity)?,
            sealed_version: self
                .table_version
                .ok_or("a drop has no sealed table_version")?,
        })
    }

    fn commit(&self) -> Result<LegacyCommit, String> {
        self.only(Filled {
            metadata: true,
            table_version: true,
            table_branch: true,
            ..Filled::default()
        })?;
        if self.object_id.is_empty() {
            return Err("a commit has an empty id".to_string());
        }
        let version = self
            .table_version
            .ok_or("a commit has no __manifest version (column table_version)")?;
        let m = metadata::commit(self.metadata)?;
        Ok(LegacyCommit {
            id: self.object_id.to_string(),
            branch: self.table_branch.map(str::to_string),
            version,
            parent: m.parent_commit_id,
            merged_parent: m.merged_parent_commit_id,
            actor: m.actor_id,
            created_at: m.created_at,
        })
    }

    fn head(&self) -> Result<Row, String> {
        self.only(Filled {
            metadata: true,
            ..Filled::default()
        })?;
        let branch = self
            .object_id
            .strip_prefix("graph_head:")
            .filter(|branch| !branch.is_empty())
            .ok_or("the key does not fit the row, expected 'graph_head:<branch>'")?;
        let m = metadata::head(self.metadata)?;
        Ok(Row::Head {
            branch: branch.to_string(),
            commit: m.head_commit_id,
        })
    }

    fn contract(&self) -> Result<ContractRow, String> {
        self.only(Filled {
            metadata: true,
            content: true,
            ..Filled::default()
        })?;
        Ok(ContractRow {
            head: metadata::contract(self.metadata)?,
            source: self.schema_source.map(str::to_string),
            ir: self.schema_ir.map(str::to_string),
        })
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
