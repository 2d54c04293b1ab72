//! The heads of the live branches (`docs/format/manifest-v14.md` 12 and 13). The row rules are those of
//! [`graph::manifest`]; here is what the rows of one version must say together.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures::StreamExt as _;
use graph::history::BlockAddress;
use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_state};
use graph::model::{HistoryRecord, TableRow};
use graph::schema::columns;
use graph::schema::ir::SchemaIr;
use graph::stamp::{GuardInput, guard};
use graph::store::ManifestVersion;

use crate::finding::Code;
use crate::history::Area;
use crate::ledger::{Ledger, Origin};
use crate::receipt;
use crate::refs::{Branch, Refs};
use crate::report::Checked;
use crate::run::{Run, manifest_object};
use crate::transactions::difference;

/// Heads read at once.
const HEADS_AT_ONCE: usize = 4;

/// What later checks need of one head.
#[derive(Debug)]
pub(crate) struct Head {
    /// Logical branch.
    pub(crate) name: String,
    /// Its head commit.
    pub(crate) commit: Arc<str>,
    /// Its pinned tables.
    pub(crate) tables: Vec<TableRow>,
}

/// Read and check every head; main comes first.
pub(crate) async fn check(
    run: &Run<'_>,
    refs: &Refs,
    area: &Area,
    ledger: &mut Ledger,
    checked: &mut Checked,
) -> Vec<Head> {
    let total = refs.branches.len() as u64;
    checked.branches = total;
    let reads: Vec<_> = refs
        .branches
        .iter()
        .map(|branch| async move { (branch, Box::pin(read(run, branch)).await) })
        .collect();
    let mut reads = futures::stream::iter(reads).buffered(HEADS_AT_ONCE);
    let mut heads = Vec::new();
    // By content hash: branches mostly share one contract.
    let mut compiled: BTreeMap<String, Option<SchemaIr>> = BTreeMap::new();
    let mut done = 0;
    while let Some((branch, read)) = reads.next().await {
        done += 1;
        run.progress("reading branches", done, total);
        let Some((version, state)) = read else {
            continue;
        };
        receipt::check(run, branch, &version, area);
        contract(run, branch, &state, &mut compiled);
        rows(run, branch, &state);
        let object = manifest_object(branch.native.as_deref(), Some(state.version));
        let origin = Origin::Manifest(Arc::from(object));
        let records: Vec<HistoryRecord> = state
            .buffer
            .iter()
            .chain([&state.head])
            .filter_map(|c| state.held_record(&c.graph_commit_id))
            .collect();
        ledger.take(&run.findings, Some(&branch.name), &origin, &records);
        heads.push(Head {
            name: branch.name.clone(),
            commit: Arc::from(state.head.graph_commit_id.as_str()),
            tables: state.visible_tables().into_iter().cloned().collect(),
        });
    }
    heads
}

async fn read(run: &Run<'_>, branch: &Branch) -> Option<(ManifestVersion, BranchState)> {
    let native = branch.native.as_deref();
    let name = Some(branch.name.as_str());
    let version = match run.root.open_manifest(native, None).await {
        Ok(version) => version,
        Err(e) => {
            let object = manifest_object(native, None);
            run.findings.error(Code::HeadDamaged, name, &object, &e);
            return None;
        }
    };
    let object = manifest_object(native, Some(version.version));
    if let Err(refusal) = guard(&GuardInput::of(&version, run.root.uri())) {
        run.findings
            .add(Code::BranchRefused, name, object, refusal.to_string());
        return None;
    }
    let tree = manifest_object(native, None);
    match difference(run.root, &version.dataset, &tree).await {
        Ok(None) => {}
        Ok(Some(why)) => run
            .findings
            .add(Code::TransactionDiffers, name, &object, why),
        Err(e) => run.findings.error(Code::HeadDamaged, name, &object, &e),
    }
    match read_state(&version, ReadMode::WithContract).await {
        Ok(state) => Some((version, state)),
        Err(e) => {
            run.findings.error(Code::HeadDamaged, name, &object, &e);
            None
        }
    }
}

fn contract(
    run: &Run<'_>,
    branch: &Branch,
    state: &BranchState,
    compiled: &mut BTreeMap<String, Option<SchemaIr>>,
) {
    let object = manifest_object(branch.native.as_deref(), Some(state.version));
    let wrong = |code: Code, message: String| {
        run.findings
            .add(code, Some(&branch.name), object.clone(), message);
    };
    let head = &state.head;
    if head.schema_contract.as_ref() != Some(&state.contract) {
        wrong(
            Code::HeadInconsistent,
            format!(
                "the contract row is not the contract that the head {} names",
                head.graph_commit_id
            ),
        );
    }
    let Some(texts) = &state.contract_texts else {
        return wrong(
            Code::HeadInconsistent,
            "the contract row holds no texts".into(),
        );
    };
    let hash = match texts.content_hash() {
        Ok(hash) => hash,
        Err(e) => return wrong(Code::SchemaContractInvalid, e.to_string()),
    };
    if head.schema_content_hash.as_deref() != Some(hash.as_str()) {
        wrong(
            Code::HeadInconsistent,
            format!(
                "the contract row hashes to {hash}, the head {} names {}",
                head.graph_commit_id,
                head.schema_content_hash.as_deref().unwrap_or("none")
            ),
        );
    }
    let ir = compiled
        .entry(hash)
        .or_insert_with(|| match texts.validate() {
            Ok(ir) => Some(ir),
            Err(e) => {
                wrong(Code::SchemaContractInvalid, e.to_string());
                None
            }
        });
    // A branch that was converted with an older head may hold tables of an older schema: all commits
    // from before share the contract that was live at the upgrade.
    let published = matches!(BlockAddress::parse(&head.graph_commit_id), Ok(Some(_)));
    if let Some(ir) = ir
        && (branch.native.is_none() || published)
        && let Some(why) = tables_of(ir, state)
    {
        wrong(Code::HeadInconsistent, why);
    }
}

/// Why the visible tables are not those that the contract declares.
fn tables_of(ir: &SchemaIr, state: &BranchState) -> Option<String> {
    let declared = match columns::tables(ir) {
        Ok(declared) => declared,
        Err(e) => return Some(e.to_string()),
    };
    let declared: BTreeMap<&str, _> = declared
        .iter()
        .map(|t| (t.table_key.as_str(), t.identity))
        .collect();
    let visible: BTreeMap<&str, _> = state
        .visible_tables()
        .into_iter()
        .map(|t| (t.table_key.as_str(), t.identity))
        .collect();
    let key = declared
        .keys()
        .chain(visible.keys())
        .find(|key| declared.get(**key) != visible.get(**key))?;
    let say = |found: Option<&graph::model::TableIdentity>| {
        found.map_or_else(|| "nothing".to_string(), ToString::to_string)
    };
    Some(format!(
        "the contract declares {} as {key}, the catalog pins {}",
        say(declared.get(key)),
        say(visible.get(key))
    ))
}

/// The writer-side rules of the buffer.
fn rows(run: &Run<'_>, branch: &Branch, state: &BranchState) {
    let object = manifest_object(branch.native.as_deref(), Some(state.version));
    let wrong = |message: String| {
        run.findings.add(
            Code::HeadInconsistent,
            Some(&branch.name),
            object.clone(),
            message,
        );
    };
    let oldest = state.buffer.first().map(|c| c.graph_manifest_version);
    let stale = state
        .replaced
        .iter()
        .find(|r| oldest.is_none_or(|oldest| r.replaced_at <= oldest));
    if let Some(stale) = stale {
        wrong(format!(
            "table {} was replaced at version {}, which no buffered commit needs",
            stale.before.identity, stale.replaced_at
        ));
    }
    let mut ids = HashSet::new();
    for commit in state.held_commits() {
        if !ids.insert(commit.graph_commit_id.as_str()) {
            wrong(format!("commit {} is held twice", commit.graph_commit_id));
        }
    }
    for commit in state.buffer.iter().skip(1) {
        if let Ok(Some(address)) = BlockAddress::parse(&commit.graph_commit_id)
            && address.slot == 0
        {
            wrong(format!(
                "commit {} has slot 0 and is not the oldest buffered one",
                commit.graph_commit_id
            ));
        }
    }
    let replaced: HashSet<u64> = state.replaced.iter().map(|r| r.replaced_at).collect();
    let published: HashSet<u64> = state
        .held_commits()
        .map(|c| c.graph_manifest_version)
        .collect();
    if let Some(at) = replaced.iter().find(|at| !published.contains(at)) {
        wrong(format!(
            "a table was replaced at version {at}, which no held commit wrote"
        ));
    }
}
