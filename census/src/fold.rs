//! Folding the versions of one ref, oldest first (`docs/format/legacy-manifest.md` 7.4). Pure: a version is
//! its number and its schema; pins and drops come from the ref's head scan.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::graph::model::measure::{commit_bytes, record_bytes};
use ::graph::model::{Commit, HistoryRecord, TableIdentity, TableRow};
use legacy::fold::{head_commit, tables_at};
use legacy::{LegacyCommit, Registration, SourceContract, VersionSchema};

use crate::finding::{Finding, FindingCode, Stop};
use crate::heads::Head;
use crate::input::Limits;
use crate::snapshot::Meter;

/// What folding one ref leaves.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    /// One record per own commit, oldest first.
    pub records: Vec<HistoryRecord>,
    /// Contracts that records may name, by digest.
    pub contracts: BTreeMap<String, Arc<SourceContract>>,
    /// The first version read: membership and contract that orphans are given.
    pub first: Option<VersionSchema>,
    /// Tables of the head version.
    pub head_tables: Vec<TableRow>,
    /// Membership checks that need a record of another ref.
    pub deferred: Vec<Deferred>,
    /// Versions without a commit.
    pub bookkeeping: u64,
    /// Those of them below the first commit of the lineage.
    pub pre_genesis: u64,
}

/// A version without a commit, before the first own commit of a fork: its registrations must equal
/// those of the nearest inherited commit.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub version: u64,
    pub nearest: String,
    pub registrations: Vec<Registration>,
}

/// The fold of one ref in progress.
pub(crate) struct RefFold<'a> {
    head: &'a Head,
    fallback: Option<Arc<SourceContract>>,
    generations: &'a HashMap<&'a str, u64>,
    limits: &'a Limits,
    /// Own commits by version.
    own: BTreeMap<u64, &'a LegacyCommit>,
    nearest_inherited: Option<&'a LegacyCommit>,
    /// Clocks of all pins and drops, ascending.
    clocks: Vec<(u64, TableIdentity)>,
    /// Records made at versions without a contract row, which the first later one may still name.
    waiting: Vec<usize>,
    folded: Folded,
}

impl<'a> RefFold<'a> {
    /// Start with the ref's head and its fallback contract.
    pub(crate) fn new(
        head: &'a Head,
        fallback: Option<Arc<SourceContract>>,
        generations: &'a HashMap<&'a str, u64>,
        limits: &'a Limits,
    ) -> Self {
        let scan = &head.scan;
        let mut clocks: Vec<_> = scan
            .pins
            .keys()
            .chain(scan.tombstones.keys())
            .map(|(identity, clock)| (*clock, *identity))
            .collect();
        clocks.sort_unstable();
        Self {
            head,
            fallback,
            generations,
            limits,
            own: head.own().map(|c| (c.version, c)).collect(),
            nearest_inherited: head_commit(head.inherited()),
            clocks,
            waiting: Vec::new(),
            folded: Folded::default(),
        }
    }

    /// Take the head of a ref that has no version of its own.
    pub(crate) fn fresh_fork(
        &mut self,
        schema: VersionSchema,
        meter: &mut Meter,
    ) -> Result<(), Stop> {
        let tables = tables_at(
            &self.head.scan,
            self.head.input.pinned,
            &schema.registrations,
        );
        meter.registrations(schema.registrations.len())?;
        meter.tables(tables.len())?;
        self.folded.head_tables = tables;
        self.folded.first = Some(schema);
        Ok(())
    }

    /// Fold the next own version.
    pub(crate) fn version(
        &mut self,
        version: u64,
        schema: VersionSchema,
        meter: &mut Meter,
    ) -> Result<(), Stop> {
        if self.folded.first.is_none() {
            meter.registrations(schema.registrations.len())?;
            self.folded.first = Some(schema.clone());
        }
        if let Some(contract) = &schema.contract {
            self.name_waiting(contract);
        }
        let own = self.own.get(&version).copied();
        let is_head = version == self.head.input.pinned;
        if own.is_some() || is_head {
            let tables = tables_at(&self.head.scan, version, &schema.registrations);
            if is_head {
                meter.tables(tables.len())?;
                self.folded.head_tables.clone_from(&tables);
            }
            if let Some(commit) = own {
                meter.tables(tables.len())?;
                return Ok(self.record(commit, schema.contract, tables)?);
            }
        }
        self.bookkeeping(version, schema.registrations, meter)
    }

    /// What was folded.
    pub(crate) fn finish(self) -> Folded {
        self.folded
    }

    /// The first contract row of the ref is also the contract of its earlier commits.
    fn name_waiting(&mut self, contract: &Arc<SourceContract>) {
        for at in self.waiting.drain(..) {
            if let Some(record) = self.folded.records.get_mut(at) {
                record.commit.schema_contract = Some(contract.head().clone());
                record.commit.schema_content_hash = Some(contract.content_hash().to_string());
            }
        }
        keep(&mut self.folded.contracts, contract);
    }

    fn record(
        &mut self,
        commit: &LegacyCommit,
        own_contract: Option<Arc<SourceContract>>,
        tables: Vec<TableRow>,
    ) -> Result<(), Finding> {
        if own_contract.is_none() {
            self.waiting.push(self.folded.records.len());
        }
        let Some(contract) = own_contract.or_else(|| self.fallback.clone()) else {
            return Err(Finding::unsupported(format!(
                "commit {} (version {} of {}) has no schema contract: its version has none, nor has the \
                 head of its ref or of main",
                commit.id,
                commit.version,
                self.head.label()
            )));
        };
        let record = record(
            commit,
            self.head.native(),
            self.generations,
            &contract,
            tables,
        );
        check_bounds(&record, self.limits)?;
        keep(&mut self.folded.contracts, &contract);
        self.folded.records.push(record);
        Ok(())
    }

    /// A version without a commit must not have changed a pin, a drop, the membership or an alias.
    fn bookkeeping(
        &mut self,
        version: u64,
        registrations: Vec<Registration>,
        meter: &mut Meter,
    ) -> Result<(), Stop> {
        self.folded.bookkeeping += 1;
        if let Some(nearest) = self.folded.records.last() {
            let at = nearest.commit.graph_manifest_version;
            let id = nearest.commit.graph_commit_id.clone();
            let same = membership_difference(&nearest.tables, &registrations);
            self.unchanged(at, version, &id)?;
            if let Some(difference) = same {
                return Err(uncommitted(self.head, version, &id, at, &difference).into());
            }
            return Ok(());
        }
        if let Some(nearest) = self.nearest_inherited {
            self.unchanged(nearest.version, version, &nearest.id)?;
            meter.registrations(registrations.len())?;
            self.folded.deferred.push(Deferred {
                version,
                nearest: nearest.id.clone(),
                registrations,
            });
            return Ok(());
        }
        self.folded.pre_genesis += 1;
        if let Some((clock, identity)) = self.first_clock(0, version) {
            return Err(pre_genesis(
                self.head,
                version,
                &format!(
                    "table {} was pinned or dropped at version {clock}",
                    self.called(identity)
                ),
            )
            .into());
        }
        match registrations.first() {
            Some(r) => Err(pre_genesis(
                self.head,
                version,
                &format!("table {} ({}) is registered", r.table_key, r.identity),
            )
            .into()),
            None => Ok(()),
        }
    }

    /// Require that no pin or drop lies after the nearest commit, up to `version`.
    fn unchanged(&self, after: u64, version: u64, nearest: &str) -> Result<(), Finding> {
        match self.first_clock(after.saturating_add(1), version) {
            None => Ok(()),
            Some((clock, identity)) => Err(uncommitted(
                self.head,
                version,
                nearest,
                after,
                &format!(
                    "table {} was pinned or dropped at version {clock}",
                    self.called(identity)
                ),
            )),
        }
    }

    /// The first pin or drop with a clock in `from..=upto`.
    fn first_clock(&self, from: u64, upto: u64) -> Option<(u64, TableIdentity)> {
        let at = self.clocks.partition_point(|(clock, _)| *clock < from);
        self.clocks
            .get(at)
            .filter(|(clock, _)| *clock <= upto)
            .copied()
    }

    fn called(&self, identity: TableIdentity) -> String {
        match self.head.scan.registrations.get(&identity) {
            Some(r) => format!("{} ({identity})", r.table_key),
            None => identity.to_string(),
        }
    }
}

fn keep(contracts: &mut BTreeMap<String, Arc<SourceContract>>, contract: &Arc<SourceContract>) {
    if !contracts.contains_key(contract.content_hash()) {
        contracts.insert(contract.content_hash().to_string(), contract.clone());
    }
}

/// The record of a commit: its row as history stores it, and its tables.
pub(crate) fn record(
    commit: &LegacyCommit,
    native: Option<&str>,
    generations: &HashMap<&str, u64>,
    contract: &SourceContract,
    tables: Vec<TableRow>,
) -> HistoryRecord {
    HistoryRecord {
        commit: Commit {
            graph_commit_id: commit.id.clone(),
            schema_contract: Some(contract.head().clone()),
            schema_content_hash: Some(contract.content_hash().to_string()),
            graph_branch: commit.branch.clone(),
            native_branch: native.map(str::to_string),
            graph_manifest_version: commit.version,
            // Every present commit has a generation.
            generation: generations
                .get(commit.id.as_str())
                .copied()
                .unwrap_or_default(),
            parent_commit_id: commit.parent.clone(),
            merged_parent_commit_id: commit.merged_parent.clone(),
            actor_id: commit.actor.clone(),
            created_at: commit.created_at,
        },
        tables,
    }
}

/// The bounds of one record (8.4).
pub(crate) fn check_bounds(record: &HistoryRecord, limits: &Limits) -> Result<(), Finding> {
    let commit = &record.commit;
    let measures = [
        ("own fields", commit_bytes(commit), limits.commit_bytes),
        (
            "record with its tables",
            record_bytes(record),
            limits.record_bytes,
        ),
    ];
    for (what, bytes, limit) in measures {
        if bytes > limit {
            return Err(Finding::new(
                FindingCode::LegacyRecordOverBound,
                format!(
                    "commit {} (version {} of '{}'): its {what} would take {bytes} bytes, above the \
                     limit of {limit}",
                    commit.graph_commit_id,
                    commit.graph_manifest_version,
                    commit.graph_branch.as_deref().unwrap_or("main")
                ),
            ));
        }
    }
    Ok(())
}

/// The deferred checks, when every record exists (7.2 step 8). `record` finds one by commit id.
pub(crate) fn check_deferred<'r>(
    head: &Head,
    deferred: &[Deferred],
    record: impl Fn(&str) -> Option<&'r HistoryRecord>,
) -> Result<(), Stop> {
    for check in deferred {
        let nearest = record(&check.nearest).ok_or_else(|| {
            ::graph::Error::internal(format!(
                "the census has no record of commit {}",
                check.nearest
            ))
        })?;
        if let Some(difference) = membership_difference(&nearest.tables, &check.registrations) {
            let at = nearest.commit.graph_manifest_version;
            return Err(uncommitted(head, check.version, &check.nearest, at, &difference).into());
        }
    }
    Ok(())
}

/// The first difference of membership, alias, path or order, in words.
fn membership_difference(before: &[TableRow], after: &[Registration]) -> Option<String> {
    let same = |t: &TableRow, r: &Registration| {
        t.identity == r.identity && t.table_key == r.table_key && t.table_path == r.table_path
    };
    let longest = before.len().max(after.len());
    (0..longest).find_map(|at| match (before.get(at), after.get(at)) {
        (Some(t), Some(r)) if same(t, r) => None,
        (Some(t), Some(r)) if t.identity == r.identity => Some(format!(
            "table {} is called {} instead of {}",
            r.identity, r.table_key, t.table_key
        )),
        (Some(t), Some(r)) if t.identity < r.identity => Some(format!(
            "table {} ({}) is no longer registered",
            t.table_key, t.identity
        )),
        (Some(t), None) => Some(format!(
            "table {} ({}) is no longer registered",
            t.table_key, t.identity
        )),
        (_, Some(r)) => Some(format!(
            "table {} ({}) is newly registered",
            r.table_key, r.identity
        )),
        (None, None) => None,
    })
}

fn uncommitted(head: &Head, version: u64, nearest: &str, at: u64, change: &str) -> Finding {
    Finding::new(
        FindingCode::LegacyUncommittedChange,
        format!(
            "version {version} of {} holds no commit, but since the nearest commit {nearest} (version \
             {at}) {change}; the history has no place for a change without a commit",
            head.label()
        ),
    )
}

fn pre_genesis(head: &Head, version: u64, change: &str) -> Finding {
    Finding::new(
        FindingCode::LegacyUncommittedChange,
        format!(
            "version {version} of {} lies before the first commit, but {change}; the history has no place \
             for a change without a commit",
            head.label()
        ),
    )
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
