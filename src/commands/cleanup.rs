//! `omnigraph cleanup`: what nothing retained needs, shown or removed.

use std::process::ExitCode;

use maintain::Stop;
use maintain::cleanup::{
    self, CONCURRENCY_VARIABLE, Policy, Report, concurrency, execute, human, plan,
    require_no_sidecar,
};

use crate::args::CleanupArgs;
use crate::lease::{echo, under_lease};
use crate::{consent, output, target};

/// Preview a cleanup, or run it. The order of the checks is that of `docs/format/maintenance.md` 1.4.
pub async fn run(args: &CleanupArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let policy = Policy::new(args.keep, args.older_than.as_deref())?;
    let tables = concurrency(std::env::var(CONCURRENCY_VARIABLE).ok().as_deref());
    if !args.confirm {
        output::note(&format!(
            "cleanup preview of {uri} ({}): nothing is changed; run it with --confirm to remove",
            policy.text()
        ));
        let root = target::open(uri).await?;
        let planned = plan(&root, policy, tables, &Stop::new()).await?;
        let mut report = Report::preview(&planned);
        if let Err(e) = require_no_sidecar(&root).await {
            report.notes.push(format!("--confirm will be refused: {e}"));
        }
        return print(args, &policy, &report);
    }
    consent::require(uri, "removing old versions of", args.yes, args.json)?;
    let root = target::open(uri).await?;
    echo("cleanup", &root, quiet);
    // Before the lease too, so that a refusal leaves nothing at all.
    require_no_sidecar(&root).await?;
    let report = under_lease(&root, "cleanup", async |stop| {
        require_no_sidecar(&root).await?;
        let planned = plan(&root, policy, tables, &stop).await?;
        let done = execute(&root, &planned, tables, &stop).await?;
        Ok(Report::confirm(&planned, &done))
    })
    .await?;
    print(args, &policy, &report)
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
