//! Genesis of a graph (`docs/format/manifest-v14.md` 10).
//!
//! Writes each empty table at version 1, the schema archive, then `__manifest` in one Create commit. Only that last
//! create makes a graph; a stop before it leaves empty tables and an archive that the next `init` names.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::history::schema_archive::create_archive;
use graph::manifest::scan::{ReadMode, read_state};
use graph::manifest::{BranchState, batch};
use graph::model::table::canonical_path;
use graph::model::{Commit, Pin, PinMetadata, TableRow, TableState};
use graph::schema::columns::{self, DeclaredTable};
use graph::schema::contract::Contract;
use graph::schema::ir::SchemaIr;
use graph::schema::ir::resolve;
use graph::schema::source::{ParseMode, compile};
use graph::schema::vintage::Vintage;
use graph::stamp::{CURRENT, STAMP_KEY, shell_word};
use graph::store::{MANIFEST_DIR, ManifestVersion, Root};
use graph::table::manifest_metadata;
use graph::{Error, words};
use lance::Dataset;
use ulid::Ulid;

use crate::error::{Result, WriteError};

/// Version of `__manifest` at birth.
pub const GENESIS_MANIFEST_VERSION: u64 = 1;
/// Tables created at once.
const CONCURRENT_CREATES: usize = 4;
/// Folders that hold a graph's data: never passed over.
const DATA: [&str; 4] = [MANIFEST_DIR, "__history", "nodes", "edges"];
/// What else a graph of some release leaves in its root.
const LEFTOVERS: [&str; 12] = [
    "_schema.pg",
    "_schema.ir.json",
    "__schema_state.json",
    "_schema.pg.staging",
    "_schema.ir.json.staging",
    "__schema_state.json.staging",
    "__recovery",
    "__graph_index",
    "_graph_commits.lance",
    "_graph_commit_recoveries.lance",
    "_graph_runs.lance",
    "_graph_run_actors.lance",
];

/// A graph that was born.
#[derive(Debug, Clone)]
pub struct Born {
    /// Its first state; the head is the genesis commit.
    pub state: BranchState,
    /// Its schema.
    pub ir: SchemaIr,
}

/// Create a graph with the schema `source` at an empty root. With `force`, leftovers of an old graph that hold no
/// data are passed over. A root that holds anything else of a graph is [`Error::Refused`], a source that breaks a rule
/// too; a lost acknowledgement is resolved by reading version 1.
pub async fn init(root: &Root, source: &str, force: bool) -> Result<Born> {
    let compiled = compile(source, ParseMode::Admission, Some(Vintage::Current))
        .map_err(|e| Error::refused(format!("the schema is not accepted: {e}")))?;
    let now = std::time::SystemTime::now();
    let domain = Ulid::from_datetime(now).to_string();
    let ir = resolve(&compiled, None, &domain, Vintage::Current)?;
    records::Types::of(&ir)?.require_patterns()?;
    let contract = Contract::of(source, &ir);
    let content_hash = contract.content_hash()?;
    let declared = columns::tables(&ir)?;
    require_empty(root, force).await?;
    if root.is_remote() {
        root.require_conditional_setting()?;
        root.prove_conditional_create().await?;
    }
    let creates: Vec<_> = declared
        .iter()
        .map(|table| create_table(root, table))
        .collect();
    let mut tables: Vec<TableRow> = futures::stream::iter(creates)
        .buffer_unordered(CONCURRENT_CREATES)
        .try_collect()
        .await?;
    tables.sort_by_key(|t| t.identity);
    create_archive(root, &contract).await?;
    let state = BranchState {
        version: GENESIS_MANIFEST_VERSION,
        native: None,
        tables,
        head: Commit {
            graph_commit_id: Ulid::from_datetime(now).to_string(),
            schema_contract: Some(contract.head.clone()),
            schema_content_hash: Some(content_hash),
            graph_branch: None,
            native_branch: None,
            graph_manifest_version: GENESIS_MANIFEST_VERSION,
            generation: 0,
            parent_commit_id: None,
            merged_parent_commit_id: None,
            actor_id: None,
            created_at: crate::micros(now),
        },
        buffer: Vec::new(),
        replaced: Vec::new(),
        contract: contract.head.clone(),
        contract_texts: Some(contract),
    };
    create_manifest(root, &state).await?;
    Ok(Born { state, ir })
}

/// Refuse a root that holds anything of a graph.
async fn require_empty(root: &Root, force: bool) -> Result<()> {
    let (files, folders) = root.list_level("").await?;
    let mut data = Vec::new();
    for name in DATA {
        if let Some(found) = root.list(name)?.try_next().await? {
            data.push(found.0);
        }
    }
    let word = shell_word(root.uri());
    let born = !root.linear_versions(MANIFEST_DIR, None).await?.is_empty();
    if born {
        return Err(Error::refused(format!(
            "{} already holds a graph ({MANIFEST_DIR} has a version); nothing was written. Look at it with: \
             omnigraph commit list {word}",
            root.uri()
        ))
        .into());
    }
    if !data.is_empty() {
        return Err(Error::refused(format!(
            "{} holds data and no version of {MANIFEST_DIR}: an init that was interrupted, or a graph that lost its catalog ({}). \
             Nothing was written, and --force does not pass over data. Restore the whole root from a backup if it was \
             a graph; if it was being created, remove {} from it and run init again",
            root.uri(),
            data.join(", "),
            DATA.join(", "),
        ))
        .into());
    }
    let leftovers: Vec<String> = files
        .into_iter()
        .chain(folders)
        .filter(|name| LEFTOVERS.contains(&name.as_str()))
        .collect();
    if force || leftovers.is_empty() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{} holds {} of another graph: {}. Nothing was written; move them away, use another root, or pass over them \
         with --force",
        root.uri(),
        words::counted(&[(leftovers.len() as u64, "leftover")]),
        leftovers.join(", ")
    ))
    .into())
}

async fn create_table(root: &Root, declared: &DeclaredTable) -> Result<TableRow> {
    let path = canonical_path(&declared.table_key, declared.identity)?;
    let schema = Arc::new(declared.schema.clone());
    let dataset = root
        .create_dataset(&path, schema, Vec::new())
        .await
        .map_err(|e| e.within(format!("table {}", declared.table_key)))?;
    let version = dataset.manifest().version;
    Ok(TableRow {
        identity: declared.identity,
        table_key: declared.table_key.clone(),
        table_path: path,
        state: TableState::Pinned(Pin {
            table_version: version,
            table_branch: None,
            row_count: 0,
            metadata: PinMetadata {
                last_linear_version: Some(version),
                ..manifest_metadata(root, &dataset)
            },
            manifest_version: GENESIS_MANIFEST_VERSION,
        }),
    })
}

async fn create_manifest(root: &Root, state: &BranchState) -> Result<()> {
    let metadata = HashMap::from([(STAMP_KEY.to_string(), CURRENT.to_string())]);
    let rows = batch::encode(&state.to_rows()?, metadata)?;
    let created = root
        .create_dataset(MANIFEST_DIR, rows.schema(), vec![rows])
        .await;
    match created {
        Ok(dataset) => require_genesis(state, dataset).await,
        Err(Error::Conflict(why)) => Err(Error::Conflict(format!(
            "another init created {} meanwhile: {why}",
            root.uri()
        ))
        .into()),
        Err(cause) => {
            let in_doubt = |cause: String| WriteError::InDoubt {
                commit_id: state.head.graph_commit_id.clone(),
                location: shell_word(root.uri()),
                cause,
            };
            match root.open_manifest(None, None).await {
                Ok(version) => require_genesis(state, version.dataset)
                    .await
                    .map_err(|e| in_doubt(format!("{cause}; {e}"))),
                Err(e) if e.is_not_found() && !root.is_remote() => Err(cause.into()),
                Err(e) => Err(in_doubt(format!("{cause}; reading it back: {e}"))),
            }
        }
    }
}

/// Stamp, version and head must be those that were sent.
async fn require_genesis(state: &BranchState, dataset: Arc<Dataset>) -> Result<()> {
    let version = ManifestVersion {
        version: dataset.manifest().version,
        native: None,
        dataset,
    };
    let stamped = version.metadata(STAMP_KEY) == Some(CURRENT.to_string().as_str());
    let found = read_state(&version, ReadMode::State).await?;
    if stamped && version.version == GENESIS_MANIFEST_VERSION && found.head == state.head {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "the graph at this root has head {} in version {}, not the genesis commit {} that was sent",
        found.head.graph_commit_id, version.version, state.head.graph_commit_id
    ))
    .into())
}
