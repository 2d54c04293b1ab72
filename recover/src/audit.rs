//! The record of recoveries, `_graph_commit_recoveries.lance` (`docs/format/recovery-sidecars.md` 10).

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchIterator, StringArray, TimestampMicrosecondArray,
    cast::AsArray as _,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use futures::TryStreamExt as _;
use graph::store::{CommitOutcome, Root, guarded};
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::{InsertBuilder, WriteMode};
use serde::Serialize;

/// The dataset, relative to the root.
pub const AUDIT_DIR: &str = "_graph_commit_recoveries.lance";
/// Attempts of an append in all.
const ATTEMPTS: u32 = 6;

/// What a recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum RecoveryKind {
    /// Published.
    RolledForward,
    /// Taken back.
    RolledBack,
    /// Its branch is gone.
    OrphanedBranchDiscarded,
}

impl RecoveryKind {
    /// As stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RolledForward => "RolledForward",
            Self::RolledBack => "RolledBack",
            Self::OrphanedBranchDiscarded => "OrphanedBranchDiscarded",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditRow {
    /// The commit that recovery left.
    pub graph_commit_id: String,
    /// What it did.
    pub recovery_kind: String,
    /// Actor of the sidecar.
    pub recovery_for_actor: Option<String>,
    /// Operation of the sidecar.
    pub operation_id: String,
    /// Its writer.
    pub sidecar_writer_kind: String,
    /// Compact JSON.
    pub per_table_outcomes_json: String,
    /// Microseconds since the epoch.
    pub created_at: i64,
}

fn schema() -> Schema {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    Schema::new(vec![
        text("graph_commit_id", false),
        text("recovery_kind", false),
        text("recovery_for_actor", true),
        text("operation_id", false),
        text("sidecar_writer_kind", false),
        text("per_table_outcomes_json", false),
        Field::new(
            "created_at",
            DataType::Timestamp(TimeUnit::Microsecond, None),
            false,
        ),
    ])
}

/// Every row, oldest first; none when the dataset is not there. One that cannot be read is an error: a second row of
/// one recovery must not be written.
pub async fn rows(root: &Root) -> Result<Vec<AuditRow>> {
    match open(root).await? {
        None => Ok(Vec::new()),
        Some(dataset) => scan(dataset).await,
    }
}

/// Whether a recovery of this operation and kind is recorded.
pub fn is_recorded(rows: &[AuditRow], operation_id: &str, kind: RecoveryKind) -> bool {
    rows.iter()
        .any(|r| r.operation_id == operation_id && r.recovery_kind == kind.as_str())
}

async fn open(root: &Root) -> Result<Option<Arc<Dataset>>> {
    match root.open_dataset(AUDIT_DIR, None, None).await {
        Ok(dataset) => Ok(Some(dataset)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

async fn scan(dataset: Arc<Dataset>) -> Result<Vec<AuditRow>> {
    guarded(AUDIT_DIR, async move {
        let failed = |e| Error::lance(format!("cannot read {AUDIT_DIR}"), e);
        let mut stream = dataset.scan().try_into_stream().await.map_err(failed)?;
        let mut out = Vec::new();
        while let Some(batch) = stream.try_next().await.map_err(failed)? {
            decode(&batch, &mut out)?;
        }
        out.sort_by_key(|r| r.created_at);
        Ok(out)
    })
    .await
}

fn decode(batch: &RecordBatch, out: &mut Vec<AuditRow>) -> Result<()> {
    let wrong =
        |name: &str| Error::internal(format!("{AUDIT_DIR}: the column {name} is not its own"));
    let texts = |name: &str| {
        let array = batch.column_by_name(name)?.as_string_opt::<i32>()?;
        Some(array.clone())
    };
    let column = |name: &str| texts(name).ok_or_else(|| wrong(name));
    let (commit, kind) = (column("graph_commit_id")?, column("recovery_kind")?);
    let (actor, operation) = (column("recovery_for_actor")?, column("operation_id")?);
    let (writer, outcomes) = (
        column("sidecar_writer_kind")?,
        column("per_table_outcomes_json")?,
    );
    let created = batch
        .column_by_name("created_at")
        .and_then(|c| c.as_any().downcast_ref::<TimestampMicrosecondArray>())
        .ok_or_else(|| wrong("created_at"))?;
    for n in 0..batch.num_rows() {
        out.push(AuditRow {
            graph_commit_id: commit.value(n).to_string(),
            recovery_kind: kind.value(n).to_string(),
            recovery_for_actor: actor.is_valid(n).then(|| actor.value(n).to_string()),
            operation_id: operation.value(n).to_string(),
            sidecar_writer_kind: writer.value(n).to_string(),
            per_table_outcomes_json: outcomes.value(n).to_string(),
            created_at: created.value(n),
        });
    }
    Ok(())
}

/// Append a row unless one of its operation and kind is there.
pub async fn append(root: &Root, row: &AuditRow) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let base = match open(root).await? {
            Some(dataset) => dataset,
            None => match root
                .create_dataset(AUDIT_DIR, Arc::new(schema()), Vec::new())
                .await
            {
                Ok(dataset) => dataset,
                // Another run made it.
                Err(Error::Conflict(_)) => continue,
                Err(e) => return Err(e),
            },
        };
        let held = scan(base.clone()).await?;
        if held
            .iter()
            .any(|r| r.operation_id == row.operation_id && r.recovery_kind == row.recovery_kind)
        {
            return Ok(());
        }
        let params = root.write_params(WriteMode::Append);
        let batch = encode(row)?;
        let staging = base.clone();
        let transaction = guarded(AUDIT_DIR, async move {
            let schema = batch.schema();
            let reader = RecordBatchIterator::new([Ok(batch)], schema);
            InsertBuilder::new(staging)
                .with_params(&params)
                .execute_uncommitted_stream(reader)
                .await
                .map_err(|e| Error::lance(format!("cannot stage a row of {AUDIT_DIR}"), e))
        })
        .await?;
        match root.commit_exact(AUDIT_DIR, base, transaction).await {
            CommitOutcome::Landed(_) => return Ok(()),
            CommitOutcome::Lost(_) => {}
            CommitOutcome::Unknown(e) => return Err(e),
        }
    }
    Err(Error::Conflict(format!(
        "{AUDIT_DIR} was written by another process during each of {ATTEMPTS} attempts; stop it, then rerun"
    )))
}

fn encode(row: &AuditRow) -> Result<RecordBatch> {
    let text = |value: &str| Arc::new(StringArray::from(vec![value])) as ArrayRef;
    let columns: Vec<ArrayRef> = vec![
        text(&row.graph_commit_id),
        text(&row.recovery_kind),
        Arc::new(StringArray::from(vec![row.recovery_for_actor.as_deref()])),
        text(&row.operation_id),
        text(&row.sidecar_writer_kind),
        text(&row.per_table_outcomes_json),
        Arc::new(TimestampMicrosecondArray::from(vec![row.created_at])),
    ];
    RecordBatch::try_new(Arc::new(schema()), columns)
        .map_err(|e| Error::internal(format!("{AUDIT_DIR}: {e}")))
}
