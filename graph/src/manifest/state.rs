//! The state of one branch in one version (`docs/format/manifest-v14.md` 12).

use std::collections::{BTreeMap, HashSet};

use super::row::{self, LogicalRow, StoredContract, object_type};
use super::{buffer, delta};
use crate::error::{Error, Result};
use crate::model::{Commit, ContractHead, HistoryRecord, TableIdentity, TableRow, TableState};
use crate::schema::contract::Contract;

/// What one publish read for an identity it then changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The row before that publish; [`TableState::Registered`] with `registered` when there was none.
    pub before: TableRow,
    /// The version that publish wrote.
    pub replaced_at: u64,
    /// That publish registered the identity: before it there was no row.
    pub registered: bool,
}

/// Everything one version of a branch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchState {
    /// The version read.
    pub version: u64,
    /// Native ref of the opened branch; `None` is main.
    pub native: Option<String>,
    /// Every table row, ascending by identity: registered, pinned and dropped.
    pub tables: Vec<TableRow>,
    /// The head, stored whole.
    pub head: Commit,
    /// Buffered ancestors, oldest first.
    pub buffer: Vec<Commit>,
    /// Replaced rows, ascending by (`replaced_at`, identity).
    pub replaced: Vec<Replaced>,
    /// Head of the contract row.
    pub contract: ContractHead,
    /// The contract's texts, when the read asked for them.
    pub contract_texts: Option<Contract>,
}

impl BranchState {
    /// Build the state from every row of one version, in any order. Refuses what
    /// `docs/format/manifest-v14.md` 3 and 12 refuse ([`Error::Internal`]).
    pub fn from_rows(rows: Vec<LogicalRow>, version: u64, native: Option<String>) -> Result<Self> {
        let mut tables: BTreeMap<TableIdentity, TableRow> = BTreeMap::new();
        let mut heads = Vec::new();
        let mut settled = Vec::new();
        let mut replaced_rows = Vec::new();
        let mut contracts = Vec::new();
        let mut keys = HashSet::with_capacity(rows.len());
        for row in rows {
            if !keys.insert(row.object_id.clone()) {
                return Err(Error::internal(format!(
                    "two rows have the key '{}'",
                    row.object_id
                )));
            }
            if row.object_id == object_type::SCHEMA_CONTRACT
                && row.object_type != object_type::SCHEMA_CONTRACT
            {
                return Err(Error::internal(format!(
                    "the key 'schema_contract' stands under type '{}'",
                    row.object_type
                )));
            }
            match row.object_type.as_str() {
                object_type::TABLE => {
                    let table = row::decode_table(&row, version)?;
                    tables.insert(table.identity, table);
                }
                object_type::GRAPH_COMMIT => heads.push(row::decode_commit(&row, version)?),
                object_type::SETTLED_COMMIT => settled.push(row::decode_commit(&row, version)?),
                object_type::REPLACED_TABLE => replaced_rows.push(row),
                object_type::SCHEMA_CONTRACT => contracts.push(row),
                other => {
                    return Err(Error::internal(format!(
                        "row '{}' has the unknown type '{other}'",
                        row.object_id
                    )));
                }
            }
        }
        let head = match (heads.pop(), heads.pop()) {
            (Some(only), None) => only,
            (None, _) => return Err(Error::internal("there is no graph_commit row")),
            (Some(a), Some(b)) => {
                return Err(Error::internal(format!(
                    "there are two graph_commit rows, {} and {}",
                    b.commit.graph_commit_id, a.commit.graph_commit_id
                )));
            }
        };
        if head.contract == StoredContract::Inherited {
            return Err(Error::internal(format!(
                "the head {} carries the inheritance marker",
                head.commit.graph_commit_id
            )));
        }
        let head = head.commit;
        let buffer = buffer::resolve(settled, &head)?;
        let mut replaced = replaced_rows
            .iter()
            .map(|row| delta::decode(row, version, |identity| tables.get(&identity)))
            .collect::<Result<Vec<_>>>()?;
        replaced.sort_by_key(|r| (r.replaced_at, r.before.identity));
        let (contract, contract_texts) = single_contract(contracts)?;
        let tables: Vec<TableRow> = tables.into_values().collect();
        unique_aliases(&tables)?;
        Ok(Self {
            version,
            native,
            tables,
            head,
            buffer,
            replaced,
            contract,
            contract_texts,
        })
    }

    /// Every row of the version, in written order: tables, head, settled oldest first, replaced, the
    /// contract last. The contract texts must be held.
    pub fn to_rows(&self) -> Result<Vec<LogicalRow>> {
        let texts = self.contract_texts.as_ref().ok_or_else(|| {
            Error::internal("the contract texts are needed to write a version and were not read")
        })?;
        let stored = match &self.head.schema_contract {
            Some(head) => StoredContract::Own(head.clone()),
            None => StoredContract::None,
        };
        let mut rows: Vec<LogicalRow> = self.tables.iter().map(row::encode_table).collect();
        rows.push(row::encode_commit(
            &self.head,
            &stored,
            object_type::GRAPH_COMMIT,
        ));
        rows.extend(buffer::encode(&self.buffer, &self.head));
        for replaced in &self.replaced {
            let current = self.table(replaced.before.identity).ok_or_else(|| {
                Error::internal(format!(
                    "replaced table {} has no table row",
                    replaced.before.identity
                ))
            })?;
            rows.push(delta::encode(replaced, current)?);
        }
        rows.push(row::encode_contract(
            &self.contract,
            &texts.source,
            &texts.ir,
        ));
        Ok(rows)
    }

    /// The row of an identity.
    pub fn table(&self, identity: TableIdentity) -> Option<&TableRow> {
        self.tables
            .binary_search_by_key(&identity, |t| t.identity)
            .ok()
            .and_then(|i| self.tables.get(i))
    }

    /// The visible tables: every pinned row, ascending by `table_key`.
    pub fn visible_tables(&self) -> Vec<&TableRow> {
        visible(&self.tables)
    }

    /// The head, when this very branch wrote it. An unpublished fork has none.
    pub fn exact_head(&self) -> Option<&Commit> {
        (self.head.native_branch == self.native).then_some(&self.head)
    }

    /// Head and buffered commits, newest first.
    pub fn held_commits(&self) -> impl Iterator<Item = &Commit> {
        std::iter::once(&self.head).chain(self.buffer.iter().rev())
    }

    /// The tables as of `at`, which must be the head's version or a buffered commit's; older versions
    /// are in `__history` (`docs/format/manifest-v14.md` 5.3).
    pub fn tables_at(&self, at: u64) -> Vec<TableRow> {
        self.tables
            .iter()
            .filter_map(|now| {
                let earlier = self
                    .replaced
                    .iter()
                    .find(|r| r.before.identity == now.identity && r.replaced_at > at);
                match earlier {
                    None => Some(now.clone()),
                    Some(r) if r.registered => None,
                    Some(r) => Some(r.before.clone()),
                }
            })
            .collect()
    }

    /// The full record of a held commit, or `None` when the id is neither the head nor buffered.
    pub fn held_record(&self, commit_id: &str) -> Option<HistoryRecord> {
        let commit = self
            .held_commits()
            .find(|c| c.graph_commit_id == commit_id)?;
        let tables = if commit.graph_commit_id == self.head.graph_commit_id {
            self.tables.clone()
        } else {
            self.tables_at(commit.graph_manifest_version)
        };
        Some(HistoryRecord {
            commit: commit.clone(),
            tables,
        })
    }
}

/// Pinned rows ascending by `table_key`.
pub fn visible(tables: &[TableRow]) -> Vec<&TableRow> {
    let mut pinned: Vec<&TableRow> = tables
        .iter()
        .filter(|t| matches!(t.state, TableState::Pinned(_)))
        .collect();
    pinned.sort_by(|a, b| a.table_key.cmp(&b.table_key));
    pinned
}

fn single_contract(mut rows: Vec<LogicalRow>) -> Result<(ContractHead, Option<Contract>)> {
    let row = match (rows.pop(), rows.pop()) {
        (Some(only), None) => only,
        (None, _) => return Err(Error::internal("there is no schema_contract row")),
        (Some(_), Some(_)) => return Err(Error::internal("there are two schema_contract rows")),
    };
    let head = row::decode_contract(&row)?;
    let texts = match (row.schema_source, row.schema_ir) {
        (Some(source), Some(ir)) => Some(Contract {
            head: head.clone(),
            source,
            ir,
        }),
        (None, None) => None,
        _ => {
            return Err(Error::internal(
                "the schema_contract row holds only one of its two texts",
            ));
        }
    };
    Ok((head, texts))
}

fn unique_aliases(tables: &[TableRow]) -> Result<()> {
    for pair in visible(tables).windows(2) {
        if let [a, b] = pair
            && a.table_key == b.table_key
        {
            return Err(Error::internal(format!(
                "tables {} and {} are both pinned as {}",
                a.identity, b.identity, a.table_key
            )));
        }
    }
    Ok(())
}
