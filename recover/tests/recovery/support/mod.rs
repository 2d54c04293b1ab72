//! Stopped sample roots, runs over them, and what a run leaves.

pub mod edit;
mod left;

use std::future::Future;
use std::path::{Path, PathBuf};

use fixtures::fault_store::{FaultStore, seen_uri};
use fixtures::on_deep_stack;
use fixtures::sample::{UnpackedRoot, samples_folder, unpack_archive};
use graph::store::{Root, RootOptions};
use recover::{RecoverOptions, Report, recover};

pub use left::{Left, left};

/// The stopped samples.
pub const STOPPED: [&str; 6] = [
    "sc-load-armed-partial",
    "sc-load-confirmed",
    "sc-merge-confirmed",
    "sc-optimize",
    "sc-schema-staged",
    "sc-touch-fork",
];

/// The time of every run.
pub const NOW: i64 = 1_800_000_000_000_000;

/// Run a test on a runtime with deep stacks.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    on_deep_stack(test).unwrap();
}

/// The folder of the archives; a clone without it skips the samples.
pub fn archives() -> Option<PathBuf> {
    let found = samples_folder(Path::new(env!("CARGO_MANIFEST_DIR")));
    if found.is_none() {
        eprintln!("skipped: no sample roots beside this clone");
    }
    found
}

/// Lay a stopped sample out.
pub fn stopped(archives: &Path, name: &str) -> UnpackedRoot {
    unpack_archive(&archives.join(format!("{name}.tar.gz")), name).unwrap()
}

/// Lay out what the release left of it.
pub fn twin(archives: &Path, name: &str) -> UnpackedRoot {
    unpack_archive(&archives.join(format!("{name}.recovered.tar.gz")), name).unwrap()
}

/// Open a root.
pub async fn open(path: &Path) -> Root {
    Root::open(path.to_str().unwrap(), RootOptions::default())
        .await
        .unwrap()
}

/// Open a root whose every request a fault store sees.
pub async fn open_seen(path: &Path, faults: &FaultStore) -> Root {
    let options = RootOptions {
        wrapper: Some(faults.wrapper()),
    };
    Root::open(&seen_uri(path), options).await.unwrap()
}

/// Options of a run.
pub fn options(confirm: bool) -> RecoverOptions {
    RecoverOptions {
        confirm,
        now: Some(NOW),
    }
}

/// Only read.
pub async fn check(path: &Path) -> Report {
    recover(&open(path).await, &options(false)).await.unwrap()
}

/// Settle.
pub async fn confirm(path: &Path) -> Report {
    recover(&open(path).await, &options(true)).await.unwrap()
}
