//! `omnigraph repair`: foreign table versions, reported and kept.

use std::process::ExitCode;
use std::time::Instant;

use maintain::repair::repair;

use crate::args::RepairArgs;
use crate::lease::{echo, summary};
use crate::{output, target};

/// Diagnose.
pub async fn run(args: &RepairArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    echo("repair", &root, quiet);
    let report = repair(&root).await?;
    if args.json {
        output::json(&report)?;
    } else {
        output::result(&report.human())?;
    }
    summary(&report.summary(), started, quiet);
    Ok(ExitCode::SUCCESS)
}
