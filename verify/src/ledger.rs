//! Every commit met, one line each: what its copies must agree on, and what its children and parents are
//! checked against.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use graph::history::legacy::record_digest;
use graph::history::path::ExtentKey;
use graph::model::{Commit, ContractHead, HistoryRecord, Pin, TableRow};

use crate::finding::{Code, Findings};
use crate::succession::{Boundary, Outline, step};

/// Where a copy of a commit was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An extent under `__history/`.
    Extent(ExtentKey),
    /// A version of `__manifest`.
    Manifest(Arc<str>),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Extent(key) => f.write_str(&key.key()),
            Self::Manifest(object) => f.write_str(object),
        }
    }
}

/// One commit.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) parent: Option<Box<str>>,
    pub(crate) merged: Option<Box<str>>,
    pub(crate) graph_branch: Option<Arc<str>>,
    pub(crate) native: Option<Arc<str>>,
    pub(crate) version: u64,
    pub(crate) generation: u64,
    pub(crate) origin: Origin,
    digest: [u8; 16],
}

/// A pin that some commit names.
#[derive(Debug, Clone)]
pub(crate) struct NamedPin {
    pub(crate) table: TableRow,
    pub(crate) pin: Pin,
    /// A commit that names it.
    pub(crate) commit: Arc<str>,
}

/// What tells two pins apart: the table version, and everything recorded of it.
pub(crate) type PinKey = [u8; 16];

/// The key of a pin; the clock does not count.
pub(crate) fn pin_key(table: &TableRow, pin: &Pin) -> PinKey {
    short(&format!(
        "{}\n{:?}\n{}\n{}\n{}",
        table.table_path,
        pin.table_branch,
        pin.table_version,
        pin.row_count,
        pin.metadata.to_json()
    ))
}

/// The first half of a SHA-256.
pub(crate) fn short(text: &str) -> [u8; 16] {
    let full = graph::digest::sha256(text.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&full[..16]);
    half
}

/// Contract head and content hash, with a commit that names them.
pub(crate) type Contracts = BTreeMap<(String, ContractHead), Arc<str>>;

/// The commits met so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    commits: HashMap<Arc<str>, Known>,
    copies: u64,
    texts: HashMap<Box<str>, Arc<str>>,
    contracts: Contracts,
    /// Steps to a parent that was not the row before.
    pub(crate) boundaries: Vec<Boundary>,
    /// Every pin met; `None` when they are not wanted.
    pub(crate) pins: Option<HashMap<PinKey, NamedPin>>,
}

impl Ledger {
    /// An empty ledger; `pins` says whether pins are collected.
    pub(crate) fn new(pins: bool) -> Self {
        Self {
            commits: HashMap::new(),
            copies: 0,
            texts: HashMap::new(),
            contracts: BTreeMap::new(),
            boundaries: Vec::new(),
            pins: pins.then(HashMap::new),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Known> {
        self.commits.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Known)> {
        self.commits.iter()
    }

    pub(crate) fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    pub(crate) fn len(&self) -> u64 {
        self.commits.len() as u64
    }

    pub(crate) fn copies(&self) -> u64 {
        self.copies
    }

    fn text(&mut self, text: Option<&str>) -> Option<Arc<str>> {
        let text = text?;
        if let Some(held) = self.texts.get(text) {
            return Some(held.clone());
        }
        let shared: Arc<str> = Arc::from(text);
        self.texts.insert(Box::from(text), shared.clone());
        Some(shared)
    }

    /// Take the canonical records of one object, in row order. Each copy must equal the others of its
    /// commit, and the tables of a row must follow from those of the row before when that is its parent.
    pub(crate) fn take(
        &mut self,
        findings: &Findings,
        branch: Option<&str>,
        origin: &Origin,
        records: &[HistoryRecord],
    ) {
        let mut before: Option<(&Commit, Outline)> = None;
        for record in records {
            let outline = Outline::of(record);
            if self.add(findings, branch, origin, record)
                && let Some(parent) = &record.commit.parent_commit_id
            {
                match &before {
                    Some((commit, tables)) if commit.graph_commit_id == *parent => {
                        if let Some(why) = step(tables, &outline) {
                            findings.add(
                                Code::RecordInconsistent,
                                branch,
                                origin.to_string(),
                                format!(
                                    "the tables of commit {} do not follow from those of its parent \
                                     {parent}: {why}",
                                    record.commit.graph_commit_id
                                ),
                            );
                        }
                    }
                    _ => self.boundaries.push(Boundary {
                        branch: branch.map(str::to_string),
                        child: Arc::from(record.commit.graph_commit_id.as_str()),
                        parent: parent.as_str().into(),
                        tables: outline.clone(),
                        origin: origin.clone(),
                    }),
                }
            }
            before = Some((&record.commit, outline));
        }
    }

    /// Add one copy; `true` when it is the first of its commit.
    fn add(
        &mut self,
        findings: &Findings,
        branch: Option<&str>,
        origin: &Origin,
        record: &HistoryRecord,
    ) -> bool {
        let commit = &record.commit;
        let digest = match record_digest(&[record]) {
            Ok(full) => {
                let mut half = [0; 16];
                half.copy_from_slice(&full[..16]);
                half
            }
            Err(e) => {
                findings.error(Code::CommitInconsistent, branch, &origin.to_string(), &e);
                return false;
            }
        };
        if let Some(held) = self.commits.get(commit.graph_commit_id.as_str()) {
            self.copies += 1;
            if held.digest != digest {
                findings.add(
                    Code::CommitCopiesDiffer,
                    branch,
                    origin.to_string(),
                    format!(
                        "the copy of commit {} in {origin} differs from the one in {}",
                        commit.graph_commit_id, held.origin
                    ),
                );
            }
            return false;
        }
        let id: Arc<str> = Arc::from(commit.graph_commit_id.as_str());
        let known = Known {
            parent: commit.parent_commit_id.as_deref().map(Box::from),
            merged: commit.merged_parent_commit_id.as_deref().map(Box::from),
            graph_branch: self.text(commit.graph_branch.as_deref()),
            native: self.text(commit.native_branch.as_deref()),
            version: commit.graph_manifest_version,
            generation: commit.generation,
            origin: origin.clone(),
            digest,
        };
        self.commits.insert(id.clone(), known);
        if let Some(head) = &commit.schema_contract {
            let hash = commit.schema_content_hash.clone().unwrap_or_default();
            self.contracts
                .entry((hash, head.clone()))
                .or_insert_with(|| id.clone());
        }
        if let Some(pins) = &mut self.pins {
            for table in &record.tables {
                if let Some(pin) = table.state.pin() {
                    pins.entry(pin_key(table, pin)).or_insert_with(|| NamedPin {
                        table: TableRow {
                            state: graph::model::TableState::Registered,
                            ..table.clone()
                        },
                        pin: pin.clone(),
                        commit: id.clone(),
                    });
                }
            }
        }
        true
    }
}
