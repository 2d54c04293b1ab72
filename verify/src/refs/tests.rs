//! Every byte of every ref object and retirement archive, one bit of each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use std::ops::Range;
use std::path::Path;

use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::tree::walk;
use graph::store::{Root, RootOptions};
use upgrade::{Outcome, UpgradeOptions, upgrade};

use crate::finding::Findings;
use crate::history;
use crate::ledger::Ledger;
use crate::options::VerifyOptions;
use crate::report::Checked;
use crate::run::Run;
use crate::{branches, pins, refs, table_refs};

/// The value of `createAt`: it orders the branches a commit id is looked up in, and all copies of a commit are
/// equal, so no answer depends on it.
fn created_at(text: &str) -> Range<usize> {
    let member = "\"createAt\"";
    let at = text.find(member).unwrap() + member.len();
    let start = at + text[at..].find(|c: char| c.is_ascii_digit()).unwrap();
    let length = text[start..].find(|c: char| !c.is_ascii_digit()).unwrap();
    start..start + length
}

/// The uuid that the ref itself added to its identifier. The receipt repeats it for a converted branch and the
/// identifiers of its forks do; of a table fork without forks nothing does, and nothing compares it.
fn own_uuid(text: &str) -> Range<usize> {
    let end = text.find("\n      ]\n    ]").unwrap() - 1;
    end - 32..end
}

fn run<'a>(root: &'a Root, options: &'a VerifyOptions) -> Run<'a> {
    Run {
        root,
        options,
        findings: Findings::new(100),
    }
}

fn found(run: Run<'_>) -> bool {
    !run.findings.into_sorted().0.is_empty()
}

/// The pins of all heads.
async fn head_pins(root: &Root, options: &VerifyOptions) -> pins::HeadPins {
    let run = run(root, options);
    let mut checked = Checked::default();
    let found = refs::check(&run, &mut checked).await;
    let mut ledger = Ledger::new(false);
    let area = history::Area::default();
    let heads = branches::check(&run, &found, &area, &mut ledger, &mut checked).await;
    pins::check_heads(&run, &heads, &mut checked).await
}

/// Whether the checks of refs, receipts and table refs notice anything.
async fn noticed(root: &Root, options: &VerifyOptions, pins: Option<&pins::HeadPins>) -> bool {
    let run = run(root, options);
    if let Some(pins) = pins {
        table_refs::check(&run, pins).await;
        return found(run);
    }
    let mut checked = Checked::default();
    let refs = refs::check(&run, &mut checked).await;
    // The receipts repeat the identifiers.
    let area = history::Area {
        has_directory: true,
        ..history::Area::default()
    };
    for branch in refs.branches.iter().filter(|b| b.contents.is_some()) {
        let native = branch.native.as_deref();
        let version = root.open_manifest(native, None).await.unwrap();
        crate::receipt::check(&run, branch, &version, &area);
    }
    found(run)
}

async fn flip_all(root: &Root, path: &Path, key: &str, pins: Option<&pins::HeadPins>) -> usize {
    let options = VerifyOptions::default();
    let file = path.join(key);
    let whole = std::fs::read(&file).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut unused = vec![created_at(&text)];
    if pins.is_some() {
        unused.push(own_uuid(&text));
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        // The lowest bit turns digits into digits and letters into letters: the hardest to notice.
        bytes[at] ^= if at % 4 == 3 { 1 << (at / 4 % 8) } else { 1 };
        std::fs::write(&file, &bytes).unwrap();
        if !noticed(root, &options, pins).await {
            assert!(
                unused.iter().any(|range| range.contains(&at)),
                "{key}: byte {at} in {:?} is not noticed",
                String::from_utf8_lossy(&bytes[at.saturating_sub(20)..bytes.len().min(at + 20)])
            );
        }
    }
    std::fs::write(&file, &whole).unwrap();
    whole.len()
}

#[test]
fn every_byte_of_every_ref_object() {
    const STACK: usize = 16 << 20;
    let body = || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().canonicalize().unwrap().join("s");
            FixtureS::create(&path, SpecS::stamp_9()).await.unwrap();
            let root = Root::open(path.to_str().unwrap(), RootOptions::default())
                .await
                .unwrap();
            let report = upgrade(&root, &UpgradeOptions::default()).await;
            assert_eq!(report.outcome, Outcome::Completed);
            let options = VerifyOptions::default();
            let pins = head_pins(&root, &options).await;
            assert!(!noticed(&root, &options, None).await);
            assert!(!noticed(&root, &options, Some(&pins)).await);
            let mut keys = Vec::new();
            walk(&path, "", &mut |key, _| {
                if key.contains("/_refs/") || key.ends_with("_omnigraph_retired_branch.json") {
                    keys.push(key.to_string());
                }
                Ok(())
            })
            .unwrap();
            assert!(keys.len() >= 5, "{keys:?}");
            let start = std::time::Instant::now();
            for key in keys {
                let of_table = !key.starts_with("__manifest");
                let flipped = flip_all(&root, &path, &key, of_table.then_some(&pins)).await;
                eprintln!("{flipped} bytes of {key}: {:?}", start.elapsed());
            }
        });
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(body);
    thread.unwrap().join().unwrap();
}
