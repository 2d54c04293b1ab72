//! `omnigraph optimize`: compaction and index upkeep of main.

use std::process::ExitCode;
use std::time::Instant;

use maintain::optimize::{CONCURRENCY_VARIABLE, OptimizeOptions, concurrency, optimize, plan};

use crate::args::OptimizeArgs;
use crate::lease::{echo, summary, under_lease};
use crate::{output, target};

/// Optimize, or print the plan.
pub async fn run(
    args: &OptimizeArgs,
    store: Option<&str>,
    quiet: bool,
) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    let setting = std::env::var(CONCURRENCY_VARIABLE).ok();
    let options = OptimizeOptions {
        concurrency: concurrency(setting.as_deref()),
        ..OptimizeOptions::default()
    };
    echo("optimize", &root, quiet);
    if args.check {
        let planned = plan(&root, &options).await?;
        if args.json {
            output::json(&planned)?;
        } else {
            output::result(&planned.human())?;
        }
        summary(&planned.summary(), started, quiet);
        return Ok(ExitCode::SUCCESS);
    }
    let report = under_lease(&root, "optimize", async |stop| {
        optimize(&root, &OptimizeOptions { stop, ..options }).await
    })
    .await?;
    if args.json {
        output::json(&report)?;
    } else {
        output::result(&report.human())?;
    }
    summary(&report.summary(), started, quiet);
    Ok(ExitCode::SUCCESS)
}
