//! `omnigraph build-indexes` and `omnigraph rebuild-full-text-indexes`.

use std::process::ExitCode;
use std::time::Instant;

use maintain::Stop;
use maintain::indexes::{
    IndexOptions, build_missing, plan_full_text, plan_missing, rebuild_full_text,
};
use serde::Serialize;

use super::logical;
use crate::args::IndexArgs;
use crate::lease::{echo, summary, under_lease};
use crate::{output, target};

const BUILD: &str = "build-indexes";
const REBUILD: &str = "rebuild-full-text-indexes";

/// Build what is missing, or print it.
pub async fn build(args: &IndexArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    echo(BUILD, &root, quiet);
    if args.check {
        let plan = plan_missing(&root, logical(&args.branch)).await?;
        print(args, &plan, || plan.human())?;
        summary(&plan.summary(), started, quiet);
    } else {
        let report = under_lease(&root, BUILD, async |stop| {
            build_missing(&root, &options(args, stop)).await
        })
        .await?;
        print(args, &report, || report.human())?;
        summary(&report.summary(), started, quiet);
    }
    Ok(ExitCode::SUCCESS)
}

/// Rebuild the full-text indexes, or print them.
pub async fn rebuild(
    args: &IndexArgs,
    store: Option<&str>,
    quiet: bool,
) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    echo(REBUILD, &root, quiet);
    if args.check {
        let plan = plan_full_text(&root, logical(&args.branch)).await?;
        print(args, &plan, || plan.human())?;
        summary(&plan.summary(), started, quiet);
    } else {
        let report = under_lease(&root, REBUILD, async |stop| {
            rebuild_full_text(&root, &options(args, stop)).await
        })
        .await?;
        print(args, &report, || report.human())?;
        summary(&report.summary(), started, quiet);
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &IndexArgs, stop: Stop) -> IndexOptions {
    IndexOptions {
        branch: logical(&args.branch).map(str::to_string),
        actor: args.actor.clone(),
        stop,
    }
}

fn print(
    args: &IndexArgs,
    document: &impl Serialize,
    human: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if args.json {
        output::json(document)
    } else {
        output::result(&human())
    }
}
