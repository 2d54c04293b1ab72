//! `cleanup` of a table of many versions, against Lance's own cleanup of a plain copy with as many versions of the same
//! rows; and what a preview of many objects costs.
//!
//! Each version holds one data file of its own, so a version that goes takes three objects with it: manifest,
//! transaction, data. `cleanup` plans, validates and reads `__manifest` and `__history` too.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use fixtures::fault_store::{FaultStore, Kind, seen_uri};
use graph::store::{Root, RootOptions};
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance::dataset::{InsertBuilder, WriteMode};
use lance_io::object_store::ObjectStoreParams;
use maintain::Stop;
use maintain::cleanup::{DEFAULT_CONCURRENCY, Policy, Report, execute, plan};
use serde_json::{Value, json};
use write::capture::Capture;
use write::genesis::init;

use crate::support::{Failure, bytes, emit, peak_rss_bytes, requests, seconds, spawn};
use crate::{PLAIN, in_turns, params, publish_staged, ratio};

const SCHEMA: &str = "node Reading { n: I64 }\n";
const TABLE: &str = "node:Reading";
const ROWS: usize = 10;
/// Objects that one delete request of an object store takes.
const BULK: u64 = 1_000;
/// Most wall time as a share of Lance's, and requests per removed object.
const TARGET: (f64, f64) = (1.0, 1.2);
/// Most memory of a preview.
const PREVIEW_BYTES: u64 = 500 << 20;

pub fn measure(versions: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("source");
    spawn(&format!("versions {versions}"), &source)?;
    let sides = in_turns(folder.path(), ["lance-cleanup", "cleanup"])?;
    let wall = ratio(&sides, "wall_seconds")?;
    let counted = in_turns(folder.path(), ["counted-lance-cleanup", "counted-cleanup"])?;
    let per_object = counted[1]["requests_per_object"]
        .as_f64()
        .ok_or("no figure")?;
    emit(&json!({
        "bench": "cleanup",
        "versions": versions,
        "lance": sides[0],
        "cleanup": sides[1],
        "lance_counted": counted[0],
        "cleanup_counted": counted[1],
        "wall_ratio": wall,
        "within_target": wall <= TARGET.0 && per_object <= TARGET.1,
    }));
    Ok(())
}

pub fn measure_preview(objects: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("source");
    spawn(&format!("objects {objects}"), &source)?;
    let plain = spawn("preview", &source)?;
    let counted = spawn("counted-preview", &source)?;
    let memory = plain["peak_rss_bytes"].as_u64().ok_or("no figure")?;
    let lists = counted["lists_of_the_table"].as_u64().ok_or("no figure")?;
    emit(&json!({
        "bench": "preview",
        "objects": objects,
        "preview": plain,
        "counted": counted,
        "within_target": memory <= PREVIEW_BYTES && lists == 1,
    }));
    Ok(())
}

/// One side; the counted ones go through the counter at the store seam.
pub async fn side(role: &str, path: &Path) -> Result<Value, Failure> {
    let store = FaultStore::new();
    let counted = role.starts_with("counted-");
    let (uri, wrapper) = match counted {
        true => (seen_uri(path), Some(store.wrapper())),
        false => (path.to_string_lossy().into_owned(), None),
    };
    let root = Root::open(
        &uri,
        RootOptions {
            wrapper: wrapper.clone(),
        },
    )
    .await?;
    let preview = role.ends_with("preview");
    let (started, removed, manifests);
    if role.ends_with("lance-cleanup") {
        let builder = DatasetBuilder::from_uri(format!("{uri}/{PLAIN}"));
        let dataset = match wrapper {
            None => builder,
            Some(wrapper) => builder.with_store_params(ObjectStoreParams {
                object_store_wrapper: Some(wrapper),
                ..ObjectStoreParams::default()
            }),
        };
        let dataset = dataset.load().await?;
        store.reset();
        started = Instant::now();
        let policy = CleanupPolicyBuilder::default();
        let policy = policy.retain_n_versions(&dataset, 1).await?.build();
        let done = dataset.cleanup_with_policy(policy).await?;
        manifests = done.old_versions;
        removed = done.old_versions + done.data_files_removed + done.transaction_files_removed;
    } else {
        store.reset();
        started = Instant::now();
        let policy = Policy::new(Some(1), None)?;
        let planned = plan(&root, policy, DEFAULT_CONCURRENCY, &Stop::new()).await?;
        let report = if preview {
            Report::preview(&planned)
        } else {
            let done = execute(&root, &planned, DEFAULT_CONCURRENCY, &Stop::new()).await?;
            Report::confirm(&planned, &done)
        };
        manifests = report.datasets.iter().map(|d| d.old_versions_removed).sum();
        removed = match preview {
            true => 0,
            false => store.counts().requests(Kind::Delete),
        };
    }
    let wall = seconds(started);
    let mut side = json!({
        "wall_seconds": wall,
        "peak_rss_bytes": peak_rss_bytes()?,
        "manifests_removed": manifests,
    });
    if counted {
        let counts = store.counts();
        let deletes = counts.requests(Kind::Delete);
        let others: u64 = [
            Kind::Get,
            Kind::Put,
            Kind::Create,
            Kind::List,
            Kind::Head,
            Kind::Copy,
        ]
        .iter()
        .map(|kind| counts.requests(*kind))
        .sum();
        side["requests"] = requests(&counts);
        side["bytes"] = bytes(&counts);
        side["objects_removed"] = removed.into();
        let share = |requests: u64| (requests as f64 / removed as f64 * 1e3).round() / 1e3;
        if preview {
            // Its tags lie below a folder of their own, which is listed too.
            let of_table = |r: &&fixtures::fault_store::Request| {
                let mut parts = r.path.trim_end_matches('/').rsplit('/');
                r.kind == Kind::List && parts.nth(1) == Some("nodes")
            };
            side["lists_of_the_table"] = store.requests().iter().filter(of_table).count().into();
        } else {
            // One delete a request on a local disk, a thousand on an object store.
            side["requests_per_object"] = share(others + deletes.div_ceil(BULK)).into();
            side["requests_per_object_one_by_one"] = share(others + deletes).into();
        }
    }
    Ok(side)
}

fn batch(schema: Arc<arrow_schema::Schema>, version: usize) -> Result<RecordBatch, Failure> {
    let numbers = || (0..ROWS).map(|n| n + version * ROWS);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            numbers().map(|n| format!("{n:026}")),
        )),
        Arc::new(Int64Array::from_iter_values(numbers().map(|n| n as i64))),
    ];
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// A graph with one table of `versions` published versions, each of which replaced all rows, and beside it a plain
/// dataset with as many.
pub async fn generate(root: &Root, versions: usize) -> Result<(), Failure> {
    let born = init(root, SCHEMA, false).await?;
    let declared = graph::schema::tables(&born.ir)?.remove(0);
    let schema = Arc::new(declared.schema);
    let overwrite = params(WriteMode::Overwrite, ROWS);
    for version in 0..versions {
        let rows = batch(schema.clone(), version)?;
        let mode = match version {
            0 => params(WriteMode::Create, ROWS),
            _ => overwrite.clone(),
        };
        InsertBuilder::new(root.dataset_uri(PLAIN).as_str())
            .with_params(&mode)
            .execute(vec![rows.clone()])
            .await?;
        publish_staged(root, &declared.table_key, version as i64, |base| {
            let write = InsertBuilder::new(base);
            let params = overwrite.clone();
            async move {
                write
                    .with_params(&params)
                    .execute_uncommitted(vec![rows])
                    .await
            }
        })
        .await?;
    }
    Ok(())
}

/// A graph with one table and `objects` files in it that no version names.
pub async fn generate_objects(root: &Root, objects: usize) -> Result<(), Failure> {
    init(root, SCHEMA, false).await?;
    let capture = Capture::of(root, None).await?;
    let (row, _) = capture.table(TABLE)?;
    for object in 0..objects {
        let key = format!("{}/data/{object:032}.lance", row.table_path);
        root.overwrite(&key, bytes::Bytes::from_static(b"loose"))
            .await?;
    }
    Ok(())
}
