//! Append and merge: the whole input in memory, checked against the rows that stay.
//!
//! The branch may move while a load is prepared. The load is then prepared again from a fresh read, from the first
//! check on, and never changes its mode.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::model::names::MAIN;
use graph::schema::vintage::SystemRole;
use graph::store::Root;
use lance::Dataset;
use records::{TableType, Types, unique_texts};

use super::commit::{StagedTable, commit};
use super::existing::{self, Held};
use super::external;
use super::references::{Needed, Use, bounded, check_cardinality};
use super::rows::{self, TableRows};
use super::{Input, LoadOptions, Loaded, LoadedTable, Mode};
use crate::capture::Capture;
use crate::error::{Result, WriteError};
use crate::table::{append, upsert};

/// How often a load is prepared before its conflict is reported.
const PREPARATIONS: u32 = 24;
/// Tables read or staged at once.
const CONCURRENT_TABLES: usize = 4;
/// Longest pause before another preparation.
const MAX_PAUSE_MS: u64 = 1_000;

pub(super) async fn load(root: &Root, input: &Input, options: &LoadOptions) -> Result<Loaded> {
    let mut capture = Capture::of(root, options.branch.as_deref()).await?;
    let types = Types::of(&capture.ir)?;
    let (source, reading) = (input.clone(), options.clone());
    let (types, mut records) = blocking(move || {
        let records = rows::read(&source, &types, &reading)?;
        Ok((types, records))
    })
    .await?;
    if records.is_empty() {
        return Ok(nothing(&capture, options.mode));
    }
    if options.external_blobs {
        external::copy(root, &types, &mut records.tables).await?;
    }
    let mode = options.mode;
    let (types, tables) = blocking(move || {
        let tables = records.finish(&types, mode)?;
        Ok((types, tables))
    })
    .await?;
    let contract = capture.state.contract.clone();
    let mut preparations = 1;
    loop {
        let conflict = match attempt(root, &capture, &types, &tables, options).await {
            Err(e) if e.is_stale() && preparations < PREPARATIONS => e,
            done => return done,
        };
        tokio::time::sleep(pause(preparations)).await;
        preparations += 1;
        capture = Capture::of(root, options.branch.as_deref()).await?;
        // The rows were read under the schema of the first capture.
        if capture.state.contract != contract {
            return Err(conflict);
        }
    }
}

/// Longer with every loss, and never the same for two writers.
fn pause(preparations: u32) -> Duration {
    let most = (20_u64 << preparations.min(6)).min(MAX_PAUSE_MS);
    let random = ulid::Ulid::new().random() as u64;
    Duration::from_millis(5 + random % most)
}

/// Run `work` where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| graph::Error::internal(format!("reading the input panicked: {e}")))?
}

/// The report of an input without records.
pub(super) fn nothing(capture: &Capture, mode: Mode) -> Loaded {
    Loaded {
        branch: capture.branch.clone().unwrap_or_else(|| MAIN.to_string()),
        mode,
        graph_commit_id: None,
        manifest_version: capture.state.version,
        tables: Vec::new(),
    }
}

async fn attempt(
    root: &Root,
    capture: &Capture,
    types: &Types,
    tables: &[TableRows],
    options: &LoadOptions,
) -> Result<Loaded> {
    let checks: Vec<_> = tables
        .iter()
        .map(|rows| check_table(root, capture, types, rows, options.mode))
        .collect();
    let checked: Vec<Checked> = futures::stream::iter(checks)
        .buffered(CONCURRENT_TABLES)
        .try_collect()
        .await?;
    check_references(root, capture, types, tables).await?;
    let stagings: Vec<_> = tables
        .iter()
        .zip(&checked)
        .map(|(rows, checked)| stage(types, rows, checked))
        .collect();
    let staged: Vec<StagedTable> = futures::stream::iter(stagings)
        .buffered(CONCURRENT_TABLES)
        .try_collect()
        .await?;
    let published = commit(root, capture, staged, options).await?;
    let mut report = nothing(capture, options.mode);
    report.graph_commit_id = Some(published.state.head.graph_commit_id.clone());
    report.manifest_version = published.version.version;
    for (rows, checked) in tables.iter().zip(&checked) {
        let key = &types.tables()[rows.table].table_key;
        let now = published.state.tables.iter().find(|t| t.table_key == *key);
        report.tables.push(LoadedTable {
            table_key: key.clone(),
            rows_loaded: rows.ids.len() as u64,
            rows_replaced: checked.held.ids.len() as u64,
            row_count: now.and_then(|t| t.state.pin()).map_or(0, |p| p.row_count),
        });
    }
    Ok(report)
}

/// A table whose rows may come.
struct Checked {
    /// The pinned image.
    dataset: Arc<Dataset>,
    /// What of it they meet.
    held: Held,
}

/// Ids, unique constraints and cardinality of one table.
async fn check_table(
    root: &Root,
    capture: &Capture,
    types: &Types,
    rows: &TableRows,
    mode: Mode,
) -> Result<Checked> {
    let table = &types.tables()[rows.table];
    let coming: HashSet<&str> = rows
        .ids
        .iter()
        .zip(&rows.may_exist)
        .filter_map(|(id, may_exist)| may_exist.then_some(id.as_str()))
        .collect();
    let unique: Vec<HashMap<String, usize>> = table
        .unique
        .iter()
        .map(|constraint| {
            let texts = unique_texts(types, table, constraint, &rows.batch)?;
            distinct(table, texts, &rows.lines)
        })
        .collect::<Result<_>>()?;
    let texts: Vec<HashSet<&str>> = unique
        .iter()
        .map(|u| u.keys().map(String::as_str).collect())
        .collect();
    let cardinality = bounded(table.cardinality);
    let dataset = existing::open(root, capture, table).await?;
    let held = existing::held(
        dataset.clone(),
        types,
        table,
        &coming,
        &texts,
        cardinality.is_some(),
    )
    .await?;
    if mode == Mode::Append
        && let Some(at) = rows.ids.iter().position(|id| held.ids.contains(id))
    {
        return Err(WriteError::KeyConflict {
            table_key: table.table_key.clone(),
            key: rows.ids[at].clone(),
            line: rows.lines.get(at).copied(),
            earlier: None,
        });
    }
    for (index, taken) in held.unique.iter().enumerate() {
        let first = taken
            .iter()
            .filter_map(|(text, id)| Some((*unique[index].get(text)?, text, id)))
            .min();
        if let Some((row, text, id)) = first {
            return Err(WriteError::invalid(format!(
                "line {}: {} must be unique in {}, and the row \"{id}\" has {text} already; nothing was written",
                rows.lines.get(row).copied().unwrap_or_default(),
                table.table_key,
                members(types, table, index),
            )));
        }
    }
    if let Some(allowed) = cardinality {
        let mut touched: HashMap<&str, u64> = held
            .moved
            .iter()
            .map(|source| (source.as_str(), 0))
            .collect();
        for (source, _) in &rows.endpoints {
            *touched.entry(source).or_default() += 1;
        }
        let counts = touched.iter().map(|(source, new)| {
            let stays = held.sources.get(*source).copied().unwrap_or_default();
            (*source, stays + new)
        });
        check_cardinality(&table.table_key, allowed, counts)?;
    }
    Ok(Checked { dataset, held })
}

/// The names of a unique constraint's members.
pub(super) fn members(types: &Types, table: &TableType, constraint: usize) -> String {
    let names: Vec<String> = table.unique[constraint]
        .iter()
        .map(|member| match member {
            records::Member::System(role) => types.vintage().column(*role).to_string(),
            records::Member::Property(index) => table.properties[*index].name.clone(),
        })
        .collect();
    format!("({})", names.join(", "))
}

/// Texts by row; two rows with one text are refused.
fn distinct(
    table: &TableType,
    texts: Vec<Option<String>>,
    lines: &[u64],
) -> Result<HashMap<String, usize>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (row, text) in texts.into_iter().enumerate() {
        let Some(text) = text else { continue };
        if let Some(before) = seen.get(&text) {
            let line = |row: usize| lines.get(row).copied().unwrap_or_default();
            return Err(WriteError::invalid(format!(
                "line {}: {} has {text} a second time, which must be unique; it stands on line {} already. Nothing was \
                 written",
                line(row),
                table.table_key,
                line(*before),
            )));
        }
        seen.insert(text, row);
    }
    Ok(seen)
}

/// Every endpoint must be a node of the input or one that is stored.
async fn check_references(
    root: &Root,
    capture: &Capture,
    types: &Types,
    tables: &[TableRows],
) -> Result<()> {
    let mut needed = Needed::default();
    for rows in tables {
        let Some((from, to)) = types.tables()[rows.table].endpoints else {
            continue;
        };
        for ((src, dst), line) in rows.endpoints.iter().zip(&rows.lines) {
            for (node, id, role) in [(from, src, SystemRole::Src), (to, dst, SystemRole::Dst)] {
                let used = Use {
                    line: *line,
                    edge: rows.table,
                    role,
                };
                needed.add(node, id, used);
            }
        }
    }
    let loaded: HashMap<usize, HashSet<&str>> = tables
        .iter()
        .map(|rows| (rows.table, rows.ids.iter().map(String::as_str).collect()))
        .collect();
    needed.forget(|node, id| loaded.get(&node).is_some_and(|ids| ids.contains(id)));
    let stored = stored_nodes(root, capture, types, &needed, |_| false).await?;
    needed.forget(|node, id| stored.get(&node).is_some_and(|ids| ids.contains(id)));
    needed.require_none(types)
}

/// The needed ids that the node tables hold, those aside that `replaced` says are written anew.
pub(super) async fn stored_nodes(
    root: &Root,
    capture: &Capture,
    types: &Types,
    needed: &Needed,
    replaced: impl Fn(usize) -> bool,
) -> Result<HashMap<usize, HashSet<String>>> {
    let mut stored = HashMap::new();
    for (node, wanted) in needed.open().filter(|(node, _)| !replaced(*node)) {
        let dataset = existing::open(root, capture, &types.tables()[node]).await?;
        stored.insert(node, existing::ids(dataset, types, &wanted).await?);
    }
    Ok(stored)
}

async fn stage(types: &Types, rows: &TableRows, checked: &Checked) -> Result<StagedTable> {
    let (base, batch) = (checked.dataset.clone(), rows.batch.clone());
    // Rows that are all new need no join with the stored ones.
    let transaction = if checked.held.ids.is_empty() {
        append(base.clone(), vec![batch]).await?
    } else {
        let id = types.vintage().column(SystemRole::Id);
        upsert(base.clone(), id, batch).await?
    };
    Ok(StagedTable {
        table_key: types.tables()[rows.table].table_key.clone(),
        base,
        transaction,
    })
}
