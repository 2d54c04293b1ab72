//! `optimize` of a table of many small fragments, against Lance's own compaction of a plain copy of the same table.
//!
//! The indexes of the graph's table cover every fragment, so that both sides only compact; `optimize` also opens the
//! graph and publishes.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use graph::store::{Root, RootOptions};
use lance::Dataset;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{InsertBuilder, WriteMode};
use maintain::indexes::{IndexOptions, build_missing};
use maintain::optimize::{OptimizeOptions, optimize};
use serde_json::{Value, json};
use write::genesis::init;

use crate::support::{Failure, emit, peak_rss_bytes, seconds, spawn};
use crate::{PLAIN, in_turns, params, publish_staged, ratio};

const ROWS: usize = 50;
/// Most wall time and peak memory, as a share of Lance's.
const TARGET: (f64, f64) = (1.1, 1.2);

pub fn measure(fragments: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("source");
    spawn(&format!("fragments {fragments}"), &source)?;
    let sides = in_turns(folder.path(), ["lance-compact", "optimize"])?;
    let (wall, memory) = (
        ratio(&sides, "wall_seconds")?,
        ratio(&sides, "peak_rss_bytes")?,
    );
    emit(&json!({
        "bench": "optimize",
        "fragments": fragments,
        "rows": fragments * ROWS,
        "lance": sides[0],
        "optimize": sides[1],
        "wall_ratio": wall,
        "memory_ratio": memory,
        "within_target": wall <= TARGET.0 && memory <= TARGET.1,
    }));
    Ok(())
}

/// One side.
pub async fn side(role: &str, path: &Path) -> Result<Value, Failure> {
    let root = Root::open(&path.to_string_lossy(), RootOptions::default()).await?;
    let mut plain = match role {
        // As anybody opens it, with Lance's caches.
        "lance-compact" => Some(Dataset::open(&root.dataset_uri(PLAIN)).await?),
        _ => None,
    };
    let started = Instant::now();
    let (removed, added) = match &mut plain {
        Some(dataset) => {
            let done = compact_files(dataset, CompactionOptions::default(), None).await?;
            (done.fragments_removed, done.fragments_added)
        }
        None => {
            let report = optimize(&root, &OptimizeOptions::default()).await?;
            let table = report.datasets.first().ok_or("no table")?;
            (table.fragments_removed, table.fragments_added)
        }
    };
    Ok(json!({
        "wall_seconds": seconds(started),
        "peak_rss_bytes": peak_rss_bytes()?,
        "fragments_removed": removed,
        "fragments_added": added,
    }))
}

/// A graph with one table of `fragments` fragments whose indexes cover all of them, and beside it a plain Lance
/// dataset of the same rows in the same files.
pub async fn generate(root: &Root, fragments: usize) -> Result<(), Failure> {
    let born = init(root, "node Reading { n: I64  note: String }\n", false).await?;
    let declared = graph::schema::tables(&born.ir)?.remove(0);
    let schema = Arc::new(declared.schema);
    let numbers = || 0..(fragments * ROWS) as i64;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            numbers().map(|n| format!("{n:026}")),
        )),
        Arc::new(Int64Array::from_iter_values(numbers())),
        Arc::new(StringArray::from_iter_values(numbers().map(|n| {
            format!("what was read at {n} and nowhere else, {n:064}")
        }))),
    ];
    let batch = RecordBatch::try_new(schema, columns)?;
    InsertBuilder::new(root.dataset_uri(PLAIN).as_str())
        .with_params(&params(WriteMode::Create, ROWS))
        .execute(vec![batch.clone()])
        .await?;
    publish_staged(root, &declared.table_key, 1, |base| {
        let append = InsertBuilder::new(base);
        let params = params(WriteMode::Append, ROWS);
        async move {
            append
                .with_params(&params)
                .execute_uncommitted(vec![batch])
                .await
        }
    })
    .await?;
    build_missing(root, &IndexOptions::default()).await?;
    Ok(())
}
