//! What an upgrade costs: stamp-9 roots of 100, 1,000 and 4,000 commits on four tables.
//!
//! Prints one JSON line a size. Requests and bytes are counted at the store seam on one copy of the root;
//! wall seconds and peak memory are those of a process of its own on another copy, without the counter. Sizes
//! can be given: `cargo bench --bench upgrade -- 100 1000`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fixtures::fault_store::{Counts, FaultStore, Kind, seen_uri};
use fixtures::history_gen::{HistorySpec, generate};
use graph::store::{Root, RootOptions};
use serde_json::{Value, json};
use upgrade::{UpgradeOptions, upgrade};

const SIZES: [usize; 3] = [100, 1_000, 4_000];
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
    let mut sizes: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    for commits in sizes {
        let folder = tempfile::tempdir()?;
        let (plain, counted) = (folder.path().join("plain"), folder.path().join("counted"));
        spawn(&format!("generate {commits}"), &plain)?;
        fixtures::tree::copy_tree(&plain, &counted)?;
        let manifest_bytes = folder_bytes(&plain.join("__manifest"))?;
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
            "source_format": 9,
            "commits": commits,
            "tables": 4,
            "manifest_bytes": manifest_bytes,
            "check": side(&check, &counted_check),
            "run": side(&run, &counted_run),
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
    if let Some(commits) = role.strip_prefix("generate ") {
        generate(&path, HistorySpec::stamp_9(commits.parse()?)).await?;
        emit(&Value::Null);
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
