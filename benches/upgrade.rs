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

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fixtures::fault_store::{Counts, FaultStore, Kind, seen_uri};
use fixtures::history_gen::{HistorySpec, generate, generate_13, generate_branches};
use graph::store::{MANIFEST_DIR, Root, RootOptions};
use serde_json::{Value, json};
use upgrade::{UpgradeOptions, upgrade};

const ROOTS: [&str; 6] = [
    "9:1000",
    "9:4000",
    "9:16000",
    "13:1000",
    "13:4000",
    "branches:200",
];
const ROLE: &str = "OMNIGRAPH_BENCH_ROLE";
const STACK_BYTES: usize = 16 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let worker =
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(|| -> Result<(), Failure> {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .enable_all()
                    .thread_stack_size(STACK_BYTES)
                    .build()?;
                match std::env::var(ROLE) {
                    Ok(role) => runtime.block_on(child(&role)),
                    Err(_) => parent(),
                }
            })?;
    worker.join().map_err(|_| "the bench panicked")?
}

fn parent() -> Result<(), Failure> {
    let mut roots: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a.contains(':'))
        .collect();
    if roots.is_empty() {
        roots = ROOTS.map(str::to_string).to_vec();
    }
    for what in roots {
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

/// Run a role in a process of its own and read the JSON it prints.
fn spawn(role: &str, path: &Path) -> Result<Value, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .env(ROLE, role)
        .arg(path)
        .output()?;
    if !output.status.success() {
        return Err(format!("{role}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
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
        let wall = started.elapsed().as_secs_f64();
        emit(&json!({ "wall_seconds": (wall * 1e3).round() / 1e3, "done": done }));
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
    let wall = started.elapsed().as_secs_f64();
    if !report.outcome.is_success() {
        return Err(format!("{role}: {}", upgrade::report::render(&report)).into());
    }
    emit(&json!({
        "outcome": report.outcome.as_str(),
        "wall_seconds": (wall * 1e3).round() / 1e3,
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

fn requests(counts: &Counts) -> Value {
    json!({
        "get": counts.requests(Kind::Get),
        "put": counts.requests(Kind::Put) + counts.requests(Kind::Create),
        "list": counts.requests(Kind::List),
        "head": counts.requests(Kind::Head),
        "delete": counts.requests(Kind::Delete),
        "copy": counts.requests(Kind::Copy),
    })
}

fn bytes(counts: &Counts) -> Value {
    json!({ "read": counts.bytes_read(), "written": counts.bytes_written() })
}

/// The kernel's high-water mark of this process.
fn peak_rss_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib: u64 = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|l| l.trim().strip_suffix("kB"))
        .ok_or("no VmHWM")?
        .trim()
        .parse()?;
    Ok(kib * 1024)
}

fn folder_bytes(folder: &Path) -> Result<u64, Failure> {
    Ok(fixtures::tree::tree_digest(folder)?
        .values()
        .map(|(size, _)| size)
        .sum())
}

#[allow(clippy::print_stdout)]
fn emit(value: &Value) {
    println!("{value}");
}
