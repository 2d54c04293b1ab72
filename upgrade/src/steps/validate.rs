//! Validation of converted refs against their source versions (steps 31 h and 32). Reads only.
//!
//! The source is read again by its own rows: greatest pin clock per identity, unless a drop stands at or
//! above it. Record, source and converted version must then agree pin by pin.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::history::lookup::HistoryReader;
use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_state};
use graph::model::names::{MAIN, logical_name};
use graph::model::{HistoryRecord, Pin, TableIdentity, TableRow};
use graph::store::ManifestVersion;
use graph::{Error, Result};
use legacy::{HeadScan, Role};

use super::convert::Conversion;
use super::{fence, inventory, legacy_objects};
use crate::intent::{SourceBranch, UpgradeIntent};
use crate::observer::Progress;
use crate::receipt::{RefState, is_completed};
use crate::run::{Ready, Run, Stop};

/// Refs validated at once.
const REFS_AT_ONCE: usize = 4;

/// Step 32: legacy objects, every ref, the inventory.
pub(super) async fn validate_all(run: &Run<'_>, ready: &Ready) -> Result<(), Stop> {
    legacy_objects::validate(run, &ready.intent).await?;
    let reader = HistoryReader::new(run.root.clone());
    let total = ready.intent.branches.len() as u64;
    // Futures, not a closure, are kept across an await: so the run stays `Send`.
    let checks: Vec<_> = ready
        .intent
        .branches
        .iter()
        .map(|branch| {
            let reader = &reader;
            async move {
                let conversion = Conversion::of(run, ready, reader, branch).await?;
                let head = run
                    .root
                    .open_manifest(branch.native.as_deref(), None)
                    .await?;
                ref_is_converted(ready, branch, &conversion, &head).await
            }
        })
        .collect();
    let mut checked = futures::stream::iter(checks).buffered(REFS_AT_ONCE);
    let mut done = 0;
    while checked.try_next().await?.is_some() {
        done += 1;
        run.options.observer.progress(Progress {
            phase: "validating branches",
            done,
            total,
        });
    }
    let scope = fence::scope_of(&ready.intent)?;
    inventory::verify(run, ready.intent.source_format, &scope, Some(&ready.intent)).await?;
    Ok(())
}

/// One converted head: its receipt, its equivalence with the source version, its contract.
pub(super) async fn ref_is_converted(
    ready: &Ready,
    branch: &SourceBranch,
    conversion: &Conversion,
    head: &ManifestVersion,
) -> Result<()> {
    let name = branch.name();
    if !is_completed(&ready.intent, branch, &RefState::of(head))? {
        return Err(Error::internal(format!(
            "ref '{name}' does not carry the receipt of this upgrade"
        )));
    }
    let state = read_state(head, ReadMode::WithContract).await?;
    let Conversion { source, record } = conversion;
    equivalent(branch, record, &state, source)
        .and_then(|()| same_contract(&ready.intent, branch, record, &state))
        .map_err(|why| Error::internal(format!("ref '{name}' is not what its source was: {why}")))
}

/// The rows of a ref's pinned source version.
pub(super) async fn source_scan(
    run: &Run<'_>,
    ready: &Ready,
    branch: &SourceBranch,
) -> Result<HeadScan> {
    let reader = &ready.reader;
    let version = match &branch.native {
        None => ready.main.clone(),
        Some(native) => {
            run.root
                .open_manifest(Some(native), Some(branch.version))
                .await?
        }
    };
    let stamp = reader.admit(&version, Role::LiveHead).map_err(|reason| {
        Error::internal(format!("{} is not admitted: {reason}", version.describe()))
    })?;
    reader.scan_head(&version, stamp).await
}

type Pins<'a> = BTreeMap<TableIdentity, (&'a str, &'a str, &'a Pin)>;

fn pins<'a>(tables: impl IntoIterator<Item = &'a TableRow>) -> Pins<'a> {
    tables
        .into_iter()
        .filter_map(|t| {
            t.state.pin().map(|pin| {
                (
                    t.identity,
                    (t.table_key.as_str(), t.table_path.as_str(), pin),
                )
            })
        })
        .collect()
}

/// The pinned tables of a source head by its own rows.
pub(super) fn source_tables(scan: &HeadScan) -> Vec<TableRow> {
    let registrations: Vec<legacy::Registration> = scan.registrations.values().cloned().collect();
    legacy::fold::tables_at(scan, scan.version, &registrations)
        .into_iter()
        .filter(|t| t.state.pin().is_some())
        .collect()
}

fn equivalent(
    branch: &SourceBranch,
    record: &HistoryRecord,
    state: &BranchState,
    source: &HeadScan,
) -> Result<(), String> {
    let from_source = source_tables(source);
    let (source_pins, record_pins, state_pins) = (
        pins(&from_source),
        pins(&record.tables),
        pins(&state.tables),
    );
    if source_pins.len() != record_pins.len() || record_pins.len() != state_pins.len() {
        return Err(format!(
            "{} live tables in the source, {} in the record, {} in the converted version",
            source_pins.len(),
            record_pins.len(),
            state_pins.len()
        ));
    }
    for (identity, expected) in &record_pins {
        if state_pins.get(identity) != Some(expected) {
            return Err(format!(
                "table {} ({identity}) is pinned otherwise in the converted version than in the record",
                expected.0
            ));
        }
        if source_pins.get(identity) != Some(expected) {
            return Err(format!(
                "table {} ({identity}) is pinned otherwise in the source than in the record",
                expected.0
            ));
        }
    }
    let id = record.commit.graph_commit_id.as_str();
    let own = record.commit.native_branch == branch.native;
    let served = state.exact_head().map(|c| c.graph_commit_id.as_str());
    if state.head.graph_commit_id != id || served != own.then_some(id) {
        return Err(format!(
            "it serves head {}, expected {id}",
            state.head.graph_commit_id
        ));
    }
    if own {
        let key = branch.native.as_deref().map_or(MAIN, logical_name);
        let named = source.heads.get(key).map(String::as_str);
        if named != Some(id) {
            return Err(format!(
                "the source's graph_head:{key} names {}, expected {id}",
                named.unwrap_or("nothing")
            ));
        }
    }
    Ok(())
}

fn same_contract(
    intent: &UpgradeIntent,
    branch: &SourceBranch,
    record: &HistoryRecord,
    state: &BranchState,
) -> Result<(), String> {
    let texts = state
        .contract_texts
        .as_ref()
        .ok_or("it holds no contract texts")?;
    let hash = texts.content_hash().map_err(|e| e.to_string())?;
    let commit = &record.commit;
    if commit.schema_contract.as_ref() != Some(&state.contract)
        || commit.schema_content_hash.as_deref() != Some(hash.as_str())
        || state.head != *commit
    {
        return Err(format!(
            "its contract row is not the one commit {} names",
            commit.graph_commit_id
        ));
    }
    if branch.native.is_none()
        && intent
            .contract()
            .map(|c| (&c.identity, c.content_sha256.to_ascii_lowercase()))
            != Some((&state.contract, hash))
    {
        return Err("its contract is not the one the intent binds".into());
    }
    Ok(())
}
