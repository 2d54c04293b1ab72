//! What `optimize` costs: a graph with one table of 2,000 small fragments, against Lance's own compaction of a plain
//! copy of the same table in the same run.
//!
//! Prints one JSON line. Each side runs in a process of its own on a copy of its own, so that peak memory is that of
//! the work alone. The indexes of the graph's table cover every fragment, so that both sides only compact; `optimize`
//! also opens the graph and publishes.
//!
//! The number of fragments can be given: `cargo bench --bench maintenance -- fragments:100`.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::store::{Root, RootOptions};
use graph::table::open_pin;
use lance::Dataset;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use lance_file::version::LanceFileVersion;
use maintain::indexes::{IndexOptions, build_missing};
use maintain::optimize::{OptimizeOptions, optimize};
use serde_json::{Value, json};
use support::{Failure, emit, peak_rss_bytes, run, seconds, spawn};
use write::capture::Capture;
use write::genesis::init;
use write::publish::{Changes, ExpectedTable, Lineage, Request, Update, publish};
use write::table::{commit_detached, next_pin};

const FRAGMENTS: usize = 2_000;
const ROWS: usize = 50;
/// Each side runs so often, in turns; the fastest counts, since a busy machine only makes one slower.
const ROUNDS: usize = 3;
/// The plain copy, beside the graph.
const PLAIN: &str = "plain";
/// Most wall time and peak memory, as a share of Lance's.
const TARGET: (f64, f64) = (1.1, 1.2);

fn main() -> Result<(), Failure> {
    run(parent, child)
}

fn parent() -> Result<(), Failure> {
    let fragments: usize = std::env::args()
        .find_map(|a| a.strip_prefix("fragments:")?.parse().ok())
        .unwrap_or(FRAGMENTS);
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("source");
    spawn(&format!("generate {fragments}"), &source)?;
    let mut sides = [Value::Null, Value::Null];
    for round in 0..ROUNDS {
        for (role, best) in ["lance", "optimize"].iter().zip(&mut sides) {
            let copy = folder.path().join(format!("{role}-{round}"));
            fixtures::tree::copy_tree(&source, &copy)?;
            let side = spawn(role, &copy)?;
            std::fs::remove_dir_all(&copy)?;
            let better = |of: &Value| of["wall_seconds"].as_f64() < best["wall_seconds"].as_f64();
            if best.is_null() || better(&side) {
                *best = side;
            }
        }
    }
    let ratio = |member: &str| -> Result<f64, Failure> {
        let of = |side: &Value| side[member].as_f64().ok_or("no figure");
        Ok((of(&sides[1])? / of(&sides[0])? * 1e3).round() / 1e3)
    };
    let (wall, memory) = (ratio("wall_seconds")?, ratio("peak_rss_bytes")?);
    emit(&json!({
        "bench": "maintenance",
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

async fn child(role: String) -> Result<(), Failure> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("no path")?);
    std::fs::create_dir_all(&path)?;
    let path = path.canonicalize()?;
    let root = Root::open(&path.to_string_lossy(), RootOptions::default()).await?;
    if let Some(count) = role.strip_prefix("generate ") {
        generate(&root, count.parse()?).await?;
        emit(&Value::Null);
        return Ok(());
    }
    let mut plain = match role.as_str() {
        // As anybody opens it, with Lance's caches.
        "lance" => Some(Dataset::open(&root.dataset_uri(PLAIN)).await?),
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
    let wall = seconds(started);
    emit(&json!({
        "wall_seconds": wall,
        "peak_rss_bytes": peak_rss_bytes()?,
        "fragments_removed": removed,
        "fragments_added": added,
    }));
    Ok(())
}

/// A graph with one table of `fragments` fragments whose indexes cover all of them, and beside it a plain Lance
/// dataset of the same rows in the same files.
async fn generate(root: &Root, fragments: usize) -> Result<(), Failure> {
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
    let params = |mode| WriteParams {
        mode,
        max_rows_per_file: ROWS,
        data_storage_version: Some(LanceFileVersion::V2_2),
        enable_stable_row_ids: true,
        auto_cleanup: None,
        skip_auto_cleanup: true,
        ..WriteParams::default()
    };
    InsertBuilder::new(root.dataset_uri(PLAIN).as_str())
        .with_params(&params(WriteMode::Create))
        .execute(vec![batch.clone()])
        .await?;
    let capture = Capture::of(root, None).await?;
    let (row, pin) = capture.table(&declared.table_key)?;
    let base = open_pin(root, row, pin).await?.dataset;
    let append = InsertBuilder::new(base.clone())
        .with_params(&params(WriteMode::Append))
        .execute_uncommitted(vec![batch])
        .await?;
    let staged = commit_detached(root, base, append, &capture.witness()?).await?;
    let request = Request {
        changes: Changes {
            updates: vec![Update::Pin {
                identity: row.identity,
                table_key: row.table_key.clone(),
                pin: Box::new(next_pin(root, pin, &staged, 1)),
            }],
            ..Changes::default()
        },
        expected: vec![ExpectedTable::of(row)],
        lineage: Lineage {
            nonce: Default::default(),
            branch: None,
            actor: None,
            created_at: 0,
            merged: None,
            budget: HISTORY_RELEASE_BYTES,
        },
        precondition: capture.precondition(),
    };
    publish(root, &request).await?;
    build_missing(root, &IndexOptions::default()).await?;
    Ok(())
}
