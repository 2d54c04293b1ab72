//! What the benches share: roles in processes of their own, one JSON line a result, the counter at the store seam.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

use fixtures::fault_store::{Counts, Kind};
use serde_json::{Value, json};

/// Names the role of a child process.
pub const ROLE: &str = "OMNIGRAPH_BENCH_ROLE";
const STACK_BYTES: usize = 16 << 20;

/// What a bench fails with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Run `child` with its role in a child process, `parent` in the first one.
pub fn run<F: Future<Output = Result<(), Failure>>>(
    parent: fn() -> Result<(), Failure>,
    child: impl FnOnce(String) -> F + Send + 'static,
) -> Result<(), Failure> {
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(
        move || -> Result<(), Failure> {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .thread_stack_size(STACK_BYTES)
                .build()?;
            match std::env::var(ROLE) {
                Ok(role) => runtime.block_on(child(role)),
                Err(_) => parent(),
            }
        },
    )?;
    worker.join().map_err(|_| "the bench panicked")?
}

/// The arguments of the form `KIND:COUNT`, or the default ones.
pub fn wanted(default: &[&str]) -> Vec<String> {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a.contains(':'))
        .collect();
    if given.is_empty() {
        return default.iter().map(ToString::to_string).collect();
    }
    given
}

/// Run a role in a process of its own and read the JSON it prints.
pub fn spawn(role: &str, path: &Path) -> Result<Value, Failure> {
    spawn_with(role, path, &[])
}

/// [`spawn`] with more in the environment.
pub fn spawn_with(role: &str, path: &Path, env: &[(&str, &str)]) -> Result<Value, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .env(ROLE, role)
        .envs(env.iter().copied())
        .arg(path)
        .output()?;
    if !output.status.success() {
        return Err(format!("{role}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Requests by kind.
pub fn requests(counts: &Counts) -> Value {
    json!({
        "get": counts.requests(Kind::Get),
        "put": counts.requests(Kind::Put) + counts.requests(Kind::Create),
        "list": counts.requests(Kind::List),
        "head": counts.requests(Kind::Head),
        "delete": counts.requests(Kind::Delete),
        "copy": counts.requests(Kind::Copy),
    })
}

/// Bytes read and written.
pub fn bytes(counts: &Counts) -> Value {
    json!({ "read": counts.bytes_read(), "written": counts.bytes_written() })
}

/// The kernel's high-water mark of this process.
pub fn peak_rss_bytes() -> Result<u64, Failure> {
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

/// Bytes of the files below a folder.
pub fn folder_bytes(folder: &Path) -> Result<u64, Failure> {
    Ok(fixtures::tree::tree_digest(folder)?
        .values()
        .map(|(size, _)| size)
        .sum())
}

/// Print one line of JSON.
#[allow(clippy::print_stdout)]
pub fn emit(value: &Value) {
    println!("{value}");
}

/// Seconds since `started`, to the millisecond.
pub fn seconds(started: std::time::Instant) -> f64 {
    (started.elapsed().as_secs_f64() * 1e3).round() / 1e3
}
