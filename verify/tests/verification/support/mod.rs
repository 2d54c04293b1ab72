//! Roots to verify: fixture S converted, and a graph that published after its conversion.

pub mod publish;
mod template;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::on_deep_stack;
use graph::store::{Root, RootOptions};
use tokio::sync::OnceCell;
use upgrade::{Outcome, UpgradeOptions, upgrade};
use verify::{Report, VerifyOptions};

pub use template::{Case, Template};

/// Run a test on a runtime with deep stacks.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    quiet_workers();
    on_deep_stack(test).unwrap();
}

/// Lance panics on damaged bytes; each becomes a finding, and its own text would only fill the output.
fn quiet_workers() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let name = std::thread::current().name().map(str::to_string);
            let worker = name.is_some_and(|n| n.starts_with("tokio-") || n.starts_with("lance"));
            if !worker {
                default(info);
            }
        }));
    });
}

/// Open a root.
pub async fn open(path: &Path) -> Root {
    Root::open(path.to_str().unwrap(), RootOptions::default())
        .await
        .unwrap()
}

/// Verify a root.
pub async fn verify(path: &Path, deep: bool) -> Report {
    let options = VerifyOptions {
        deep,
        ..VerifyOptions::default()
    };
    verify::verify(&open(path).await, &options).await.unwrap()
}

/// Finding codes, in order.
pub fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.code.as_str()).collect()
}

/// Fixture S of a stamp, converted.
pub async fn converted(stamp: u32) -> Arc<Template> {
    static CELLS: [OnceCell<Arc<Template>>; 3] = [const { OnceCell::const_new() }; 3];
    let (cell, spec) = match stamp {
        8 => (&CELLS[0], SpecS::stamp_8()),
        9 => (&CELLS[1], SpecS::stamp_9()),
        _ => (&CELLS[2], SpecS::stamp_13()),
    };
    cell.get_or_init(|| async {
        let folder = template::folder();
        let path = folder.path().join("s");
        let s = FixtureS::create(&path, spec).await.unwrap();
        let report = upgrade(&open(&path).await, &UpgradeOptions::default()).await;
        assert_eq!(report.outcome, Outcome::Completed, "{report:#?}");
        Arc::new(Template::of(folder, s.feature.clone(), s.gone.clone()))
    })
    .await
    .clone()
}

/// Fixture S of stamp 9, converted, with commits after it on main and on `feature`: block extents exist, and
/// buffers are held.
pub async fn published() -> Arc<Template> {
    static CELL: OnceCell<Arc<Template>> = OnceCell::const_new();
    CELL.get_or_init(|| async {
        let case = converted(9).await.copy();
        let root = case.root().await;
        for _ in 0..9 {
            publish::publish(&root, None, 4).await;
        }
        let feature = case.feature.clone();
        for _ in 0..3 {
            publish::publish(&root, Some(&feature), 4).await;
        }
        Arc::new(case.into_template())
    })
    .await
    .clone()
}
