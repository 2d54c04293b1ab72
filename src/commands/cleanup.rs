//! `omnigraph cleanup`: what nothing retained needs, shown or removed.

use std::process::ExitCode;

use anyhow::Context as _;
use graph::store::Root;
use maintain::cleanup::{
    self, CONCURRENCY_VARIABLE, Policy, Report, Stop, concurrency, execute, human, plan,
    require_no_sidecar,
};

use crate::args::CleanupArgs;
use crate::{consent, output, target};

/// Preview a cleanup, or run it. The order of the checks is that of `docs/format/maintenance.md` 1.4.
pub async fn run(args: &CleanupArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let policy = Policy::new(args.keep, args.older_than.as_deref())?;
    let tables = concurrency(std::env::var(CONCURRENCY_VARIABLE).ok().as_deref());
    let stop = Stop::default();
    listen(stop.clone())?;
    if !args.confirm {
        output::note(&format!(
            "cleanup preview of {uri} ({}): nothing is changed; run it with --confirm to remove",
            policy.text()
        ));
        let root = target::open(uri).await?;
        let planned = plan(&root, policy, tables, &stop).await?;
        let mut report = Report::preview(&planned);
        if let Err(e) = require_no_sidecar(&root).await {
            report.notes.push(format!("--confirm will be refused: {e}"));
        }
        return print(args, &policy, &report);
    }
    consent::require(uri, "removing old versions of", args.yes, args.json)?;
    if !quiet {
        let local = !uri.contains("://") || uri.starts_with("file://");
        let access = if local {
            "direct, local"
        } else {
            "direct, remote"
        };
        output::note(&format!("omnigraph cleanup → {uri} ({access})"));
    }
    let root = target::open(uri).await?;
    confirm(&root, args, policy, tables, &stop).await
}

/// The one place where a cleanup changes a root.
async fn confirm(
    root: &Root,
    args: &CleanupArgs,
    policy: Policy,
    tables: usize,
    stop: &Stop,
) -> anyhow::Result<ExitCode> {
    // The lease of the root (`maintain::lease::hold(root, "cleanup")`) is taken here and held to the end.
    require_no_sidecar(root).await?;
    let planned = plan(root, policy, tables, stop).await?;
    let done = execute(root, &planned, tables, stop).await?;
    print(args, &policy, &Report::confirm(&planned, &done))
}

fn print(args: &CleanupArgs, policy: &Policy, report: &Report) -> anyhow::Result<ExitCode> {
    if args.json {
        output::json(report)?;
    } else {
        output::result(&human::render(report, &policy.text()))?;
    }
    let rows = report.datasets.iter().filter_map(|r| r.error.as_ref());
    let trees = report.native_trees.iter().filter_map(|t| t.error.as_ref());
    for error in rows.chain(trees).chain(&report.errors) {
        output::note(&format!("cleanup: {error}"));
    }
    output::note(&cleanup::human::summary(report));
    let failed = report.stopped || (args.strict && report.failures() > 0);
    Ok(ExitCode::from(u8::from(failed)))
}

/// SIGTERM and SIGINT stop between effects: the plan is not begun, or the rest of it is left for the next run. A second
/// one ends the process at once, which a rerun finishes just as well.
fn listen(stop: Stop) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        tokio::spawn(async move {
            for _ in 0..2 {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if stop.is_asked() {
                    std::process::exit(1);
                }
                stop.ask();
            }
        });
    }
    #[cfg(not(unix))]
    {
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.ask();
            }
        });
    }
    Ok(())
}
