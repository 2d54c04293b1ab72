//! What an upgrade costs: stamp-9 roots of 1,000, 4,000 and 16,000 commits on four tables, stamp-13 roots, and a
//! root with 200 live branches.
//!
//! Prints one JSON line a root. Requests and bytes are counted at the store seam on one copy of the root;
//! wall seconds and peak memory are those of a process of its own on another copy, without the counter. Beside
//! them, from the same run: reading every `__manifest` version once with plain Lance (`floor`), and reading and
//! writing the rows of main's tables once (`reload`, what a rebuild does at least; it keeps no history).
//!
//! Roots can be given as `9:COMMITS`, `13:COMMITS` and `branches:COUNT`:
//! `cargo bench --bench upgrade -- 9:100 13:100 branches:20`.

mod support;

use std::path::{Path, PathBuf};
use std::time::Instant;

use fixtures::fault_store::{FaultStore, seen_uri};
use fixtures::history_gen::{HistorySpec, generate, generate_13, generate_branches};
use graph::store::{MANIFEST_DIR, Root, RootOptions};
use serde_json::{Value, json};
use support::{
    Failure, bytes, emit, folder_bytes, peak_rss_bytes, requests, seconds, spawn, wanted,
};
use upgrade::{UpgradeOptions, upgrade};

const ROOTS: [&str; 6] = [
    "9:1000",
    "9:4000",
    "9:16000",
    "13:1000",
    "13:4000",
    "branches:200",
];
fn main() -> Result<(), Failure> {
    support::run(parent, |role| async move { child(&role).await })
}

fn parent() -> Result<(), Failure> {
    for what in wanted(&ROOTS) {
        let folder = tempfile::tempdir()?;
        let (plain, counted) = (folder.path().join("plain"), folder.path().join("counted"));
        spawn(&format!("generate {what}"), &plain)?;
        fixtures::tree::copy_tree(&plain, &counted)?;
        let manifest_bytes = folder_bytes(&plain.join("__manifest"))?;
        let floor = spawn("floor", &plain)?;
        let reload = spawn("reload", &plain)?;
        let check = spawn("check", &plain)?;
        let run = spawn("run", &plain)?;
        let counted_check = spawn("counted-check", &counted)?;
        let counted_run = spawn("counted-run", &counted)?;
        let side = |measured: &Value, counts: &Value| {
            json!({
                "outcome": measured["outcome"],
                "wall_seconds": measured["wall_seconds"],
                "peak_rss_bytes": measured["peak_rss_bytes"],
                "requests": counts["requests"],
                "bytes": counts["bytes"],
            })
        };
        let line = json!({
            "bench": "upgrade",
            "root": what,
            "manifest_bytes": manifest_bytes,
            "check": side(&check, &counted_check),
            "run": side(&run, &counted_run),
            "floor": floor,
            "reload": reload,
        });
        emit(&line);
    }
    Ok(())
}

async fn child(role: &str) -> Result<(), Failure> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("no path")?);
    if let Some(what) = role.strip_prefix("generate ") {
        make(what, &path).await?;
        emit(&Value::Null);
        return Ok(());
    }
    if role == "floor" || role == "reload" {
        let path = path.canonicalize()?;
        let root = Root::open(&path.to_string_lossy(), RootOptions::default()).await?;
        let started = Instant::now();
        let done = if role == "floor" {
            floor(&root).await?
        } else {
            reload(&root).await?
        };
        emit(&json!({ "wall_seconds": seconds(started), "done": done }));
        return Ok(());
    }
    let store = FaultStore::new();
    let counted = role.starts_with("counted-");
    let root = if counted {
        let options = RootOptions {
            wrapper: Some(store.wrapper()),
        };
        Root::open(&seen_uri(&path), options).await?
    } else {
        Root::open(
            &path.canonicalize()?.to_string_lossy(),
            RootOptions::default(),
        )
        .await?
    };
    let started = Instant::now();
    let report = upgrade(
        &root,
        &UpgradeOptions {
            check: role.ends_with("check"),
            ..UpgradeOptions::default()
        },
    )
    .await;
    let wall = seconds(started);
    if !report.outcome.is_success() {
        return Err(format!("{role}: {}", upgrade::report::render(&report)).into());
    }
    emit(&json!({
        "outcome": report.outcome.as_str(),
        "wall_seconds": wall,
        "peak_rss_bytes": peak_rss_bytes()?,
        "requests": requests(&store.counts()),
        "bytes": bytes(&store.counts()),
    }));
    Ok(())
}

async fn make(what: &str, path: &Path) -> Result<(), Failure> {
    let (kind, count) = what.split_once(':').ok_or("KIND:COUNT")?;
    let count = count.parse()?;
    match kind {
        "9" => drop(generate(path, HistorySpec::stamp_9(count)).await?),
        "13" => generate_13(path, count).await?,
        "branches" => generate_branches(path, count).await?,
        _ => return Err(format!("no such root: {what}").into()),
    }
    Ok(())
}

/// Read the `table` rows of every version of every ref of `__manifest` once, as a naive census has to.
async fn floor(root: &Root) -> Result<u64, Failure> {
    let live = graph::refs::live_refs(root).await?;
    let natives = std::iter::once(None).chain(live.iter().map(|r| Some(r.native.as_str())));
    let mut versions = 0;
    for native in natives {
        for version in root.linear_versions(MANIFEST_DIR, native).await? {
            let opened = root.open_manifest(native, Some(version)).await?;
            let mut scanner = opened.dataset.scan();
            scanner.project(&["object_id", "object_type"])?;
            scanner.filter("object_type = 'table'")?;
            scanner.try_into_batch().await?;
            versions += 1;
        }
    }
    Ok(versions)
}

/// Read the rows of main's tables and write them to new ones, without indexes and without history.
async fn reload(root: &Root) -> Result<u64, Failure> {
    let target = tempfile::tempdir()?;
    let mut rows = 0;
    let main = root.open_manifest(None, None).await?;
    let all = main.dataset.scan().try_into_batch().await?;
    for (n, folder) in fixtures::history_gen::table_locations(&all)?
        .into_iter()
        .enumerate()
    {
        let dataset = root.open_dataset(&folder, None, None).await?;
        let all = dataset.scan().try_into_batch().await?;
        rows += all.num_rows() as u64;
        let uri = target.path().join(n.to_string());
        lance::dataset::InsertBuilder::new(uri.to_string_lossy().as_ref())
            .execute(vec![all])
            .await?;
    }
    Ok(rows)
}
