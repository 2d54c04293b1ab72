//! Loading JSONL into a branch: one write transaction, one graph commit.
//!
//! | Mode | Rows | Bound | When the branch moved meanwhile |
//! |---|---|---|---|
//! | overwrite | replace the image of every type in the input | memory, never input size | `ReadSetChanged` |
//! | append | must be new | 8,192 rows and 32 MiB a table | prepared again, a bounded number of times |
//! | merge | replace rows of the same id, else are new | the same | the same |
//!
//! Types, null, enum, range and check are judged record by record; ids, unique, endpoints and cardinality over the
//! whole input and the rows that stay. All of that comes before the first commit of a table.

mod commit;
mod existing;
mod external;
mod facts;
mod keyed;
mod overwrite;
mod references;
mod rows;
mod sink;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use graph::store::Root;
use serde::Serialize;

use crate::error::{Result, WriteError};

/// Rows of one table that append and merge take in one operation.
pub const KEYED_ROWS: u64 = 8_192;
/// Bytes of one table, as Arrow holds them, that append and merge take in one operation.
pub const KEYED_BYTES: u64 = 32 << 20;

/// What happens to rows that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every type in the input gets exactly the rows of the input.
    Overwrite,
    /// Rows are added; an id that exists is a [`WriteError::KeyConflict`].
    Append,
    /// Rows are added or replaced whole, by id.
    Merge,
}

/// Where the records come from.
#[derive(Debug, Clone)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "standard input".into(),
        }
    }

    fn open(&self) -> Result<Box<dyn BufRead + Send>> {
        match self {
            Self::File(path) => {
                let file = File::open(path).map_err(|e| {
                    WriteError::invalid(format!("cannot read {}: {e}", path.display()))
                })?;
                Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
            }
            Self::Stdin => Ok(Box::new(BufReader::with_capacity(
                1 << 20,
                std::io::stdin(),
            ))),
        }
    }
}

/// Called with the number of rows read so far.
pub type OnRows = Arc<dyn Fn(u64) + Send + Sync>;

/// How to load.
#[derive(Clone)]
pub struct LoadOptions {
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// What happens to rows that exist.
    pub mode: Mode,
    /// Author of the commit.
    pub actor: Option<String>,
    /// Release budget in bytes ([`crate::publish::budget`]).
    pub budget: u64,
    /// Blobs may be URIs of objects outside of the graph: an overwrite keeps them as references, append and merge copy
    /// the bytes. Without it they are refused.
    pub external_blobs: bool,
    /// Progress.
    pub on_rows: OnRows,
}

/// What a load did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// Logical branch.
    pub branch: String,
    /// The mode.
    pub mode: Mode,
    /// The commit; `None` when the input held no record and nothing was written.
    pub graph_commit_id: Option<String>,
    /// Version of the branch; the one read when nothing was written.
    pub manifest_version: u64,
    /// Tables in the input, by table key.
    pub tables: Vec<LoadedTable>,
}

/// One table of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadedTable {
    /// `node:{Type}` or `edge:{Type}`.
    pub table_key: String,
    /// Rows of the input that were written.
    pub rows_loaded: u64,
    /// Rows among them that replaced one of the same id.
    pub rows_replaced: u64,
    /// Rows of the table afterwards.
    pub row_count: u64,
}

/// Load `input` into a branch. Nothing is visible before the one publish; what failed or was killed before is named by
/// nothing.
pub async fn load(root: &Root, input: &Input, options: &LoadOptions) -> Result<Loaded> {
    if let Some(actor) = &options.actor
        && (actor.trim().is_empty() || actor.chars().any(char::is_control))
    {
        return Err(WriteError::invalid(
            "the actor is empty or holds control characters; name who loads, for example --as nightly-import",
        ));
    }
    match options.mode {
        Mode::Overwrite => overwrite::load(root, input, options).await,
        Mode::Append | Mode::Merge => keyed::load(root, input, options).await,
    }
}
