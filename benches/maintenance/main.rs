//! What maintenance costs, each figure against plain Lance in the same run:
//!
//! * `optimize:2000`: a table of so many small fragments, against Lance's own compaction;
//! * `cleanup:5000`: a table of so many versions, against Lance's own cleanup of versions;
//! * `preview:100000`: a preview of a table with so many objects: time, memory and listings.
//!
//! Prints one JSON line each. Each side runs in a process of its own on a copy of its own, so that peak memory is that
//! of the work alone. Name what to run: `cargo bench --bench maintenance -- optimize:100 cleanup:500`.

mod cleanup;
mod optimize;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::store::{Root, RootOptions};
use graph::table::open_pin;
use lance::Dataset;
use lance::dataset::transaction::Transaction;
use lance::dataset::{WriteMode, WriteParams};
use lance_file::version::LanceFileVersion;
use serde_json::Value;
use support::{Failure, emit, run, spawn, wanted};
use write::capture::Capture;
use write::publish::{Changes, ExpectedTable, Lineage, Request, Update, publish_captured};
use write::table::{commit_detached, next_pin};

/// Each side runs so often, in turns; the fastest counts, since a busy machine only makes one slower.
const ROUNDS: usize = 3;
/// The plain copy, beside the graph.
const PLAIN: &str = "plain";

fn main() -> Result<(), Failure> {
    run(parent, child)
}

fn parent() -> Result<(), Failure> {
    for what in wanted(&["optimize:2000", "cleanup:5000", "preview:100000"]) {
        let (kind, count) = what.split_once(':').ok_or("KIND:COUNT")?;
        let count = count.parse()?;
        match kind {
            "optimize" => optimize::measure(count)?,
            "cleanup" => cleanup::measure(count)?,
            "preview" => cleanup::measure_preview(count)?,
            _ => return Err(format!("{kind} is not optimize, cleanup or preview").into()),
        }
    }
    Ok(())
}

async fn child(role: String) -> Result<(), Failure> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("no path")?);
    std::fs::create_dir_all(&path)?;
    let path = path.canonicalize()?;
    let done = match role.split_once(' ') {
        Some((what, count)) => {
            let root = Root::open(&path.to_string_lossy(), RootOptions::default()).await?;
            let count = count.parse()?;
            match what {
                "fragments" => optimize::generate(&root, count).await?,
                "versions" => cleanup::generate(&root, count).await?,
                _ => cleanup::generate_objects(&root, count).await?,
            }
            Value::Null
        }
        None if role.ends_with("cleanup") || role.ends_with("preview") => {
            cleanup::side(&role, &path).await?
        }
        None => optimize::side(&role, &path).await?,
    };
    emit(&done);
    Ok(())
}

/// Both sides by turns, each time on a fresh copy of `source` in `folder`; the fastest run of each.
fn in_turns(folder: &Path, roles: [&str; 2]) -> Result<[Value; 2], Failure> {
    let mut sides = [Value::Null, Value::Null];
    for round in 0..ROUNDS {
        for (role, best) in roles.iter().zip(&mut sides) {
            let copy = folder.join(format!("{role}-{round}"));
            copy_with_times(&folder.join("source"), &copy)?;
            let side = spawn(role, &copy)?;
            std::fs::remove_dir_all(&copy)?;
            let better = |of: &Value| of["wall_seconds"].as_f64() < best["wall_seconds"].as_f64();
            if best.is_null() || better(&side) {
                *best = side;
            }
        }
    }
    Ok(sides)
}

/// Copy a tree with the times of its files: Lance's cleanup takes no file that is newer than the version that stays.
fn copy_with_times(source: &Path, copy: &Path) -> Result<(), Failure> {
    fixtures::tree::copy_tree(source, copy)?;
    for key in fixtures::tree::tree_digest(source)?.keys() {
        let time = std::fs::metadata(source.join(key))?.modified()?;
        let copied = std::fs::File::options().write(true).open(copy.join(key))?;
        copied.set_modified(time)?;
    }
    Ok(())
}

/// The second side's figure as a share of the first's.
fn ratio(sides: &[Value; 2], member: &str) -> Result<f64, Failure> {
    let of = |side: &Value| side[member].as_f64().ok_or("no figure");
    Ok((of(&sides[1])? / of(&sides[0])? * 1e3).round() / 1e3)
}

fn params(mode: WriteMode, rows: usize) -> WriteParams {
    WriteParams {
        mode,
        max_rows_per_file: rows,
        data_storage_version: Some(LanceFileVersion::V2_2),
        enable_stable_row_ids: true,
        auto_cleanup: None,
        skip_auto_cleanup: true,
        ..WriteParams::default()
    }
}

/// Stage what `write` makes of the table's pin and publish it.
async fn publish_staged<F>(
    root: &Root,
    table_key: &str,
    created_at: i64,
    write: impl FnOnce(Arc<Dataset>) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = lance::Result<Transaction>>,
{
    let capture = Capture::of(root, None).await?;
    let (row, pin) = capture.table(table_key)?;
    let base = open_pin(root, row, pin).await?.dataset;
    let written = write(base.clone()).await?;
    let staged = commit_detached(root, base, written, &capture.witness()?).await?;
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
            nonce: ulid::Ulid::new(),
            branch: None,
            actor: None,
            created_at,
            merged: None,
            budget: HISTORY_RELEASE_BYTES,
        },
        precondition: capture.precondition(),
    };
    publish_captured(root, &capture, &request).await?;
    Ok(())
}
