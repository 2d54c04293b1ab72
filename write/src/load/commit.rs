//! From staged transactions to one graph commit.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::store::Root;
use graph::table::table_location;
use lance::Dataset;
use lance::dataset::transaction::Transaction;
use ulid::Ulid;

use super::{LoadOptions, Mode};
use crate::capture::Capture;
use crate::error::Result;
use crate::gates;
use crate::publish::{
    Changes, ExpectedTable, Lineage, Published, Request, Update, publish_captured,
};
use crate::table::{commit_detached, discard, fold, next_pin};

/// Tables committed at once.
const CONCURRENT_COMMITS: usize = 8;

/// A transaction staged on the image of one table.
#[derive(Debug, Clone)]
pub(super) struct StagedTable {
    /// Alias.
    pub table_key: String,
    /// The pinned image.
    pub base: Arc<Dataset>,
    /// Not committed yet.
    pub transaction: Transaction,
}

/// Commit each table as a detached version and publish them all in one graph commit.
pub(super) async fn commit(
    root: &Root,
    capture: &Capture,
    staged: Vec<StagedTable>,
    options: &LoadOptions,
) -> Result<Published> {
    let now = std::time::SystemTime::now();
    let rows = staged
        .iter()
        .map(|s| Ok(capture.table(&s.table_key)?.0))
        .collect::<Result<Vec<_>>>()?;
    let paths: Vec<&str> = rows.iter().map(|row| row.table_path.as_str()).collect();
    let _held = gates::pass(root, capture.branch.as_deref(), &paths).await;
    let witness = capture.witness()?;
    // An overwrite leaves nothing to fold.
    let grows = options.mode != Mode::Overwrite;
    let commits: Vec<_> = staged
        .iter()
        .map(|table| commit_table(root, capture, table, &witness, grows))
        .collect();
    let updates: Vec<Update> = futures::stream::iter(commits)
        .buffered(CONCURRENT_COMMITS)
        .try_collect()
        .await?;
    let request = Request {
        changes: Changes {
            updates,
            ..Changes::default()
        },
        expected: rows.into_iter().map(ExpectedTable::of).collect(),
        lineage: Lineage {
            nonce: Ulid::from_datetime(now),
            branch: capture.branch.clone(),
            actor: options.actor.clone(),
            created_at: crate::micros(now),
            merged: None,
            budget: options.budget,
        },
        precondition: capture.precondition(),
    };
    publish_captured(root, capture, &request).await
}

async fn commit_table(
    root: &Root,
    capture: &Capture,
    table: &StagedTable,
    witness: &crate::table::Witness,
    grows: bool,
) -> Result<Update> {
    let (row, pin) = capture.table(&table.table_key)?;
    let (base, transaction) = (table.base.clone(), table.transaction.clone());
    let staged = commit_detached(root, base, transaction, witness).await?;
    let staged = match grows {
        true => fold(root, staged, witness).await,
        false => staged,
    };
    Ok(Update::Pin {
        identity: row.identity,
        table_key: row.table_key.clone(),
        pin: Box::new(next_pin(root, pin, &staged, 1)),
    })
}

/// Remove the files of transactions that will not be committed.
pub(super) async fn discard_all(root: &Root, capture: &Capture, staged: &[StagedTable]) {
    for table in staged {
        if let Ok((row, pin)) = capture.table(&table.table_key) {
            let (path, branch) = table_location(row, pin);
            let location = match branch {
                Some(branch) => format!("{path}/tree/{branch}"),
                None => path,
            };
            discard(root, &location, &table.transaction).await;
        }
    }
}
