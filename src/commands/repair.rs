//! `omnigraph repair`: foreign table versions, reported and kept at stamp 14; drift of stamps 6, 8 and 9.

use std::process::ExitCode;
use std::time::Instant;

use graph::stamp::StampReading;
use maintain::repair::repair;

use super::repair_legacy;
use crate::args::RepairArgs;
use crate::lease::{echo, summary};
use crate::{output, target};

/// Diagnose.
pub async fn run(args: &RepairArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    echo("repair", &root, quiet);
    let main = root.open_manifest(None, None).await?;
    if matches!(StampReading::of(&main), StampReading::Number(6 | 8 | 9)) {
        return repair_legacy::run(&root, args.confirm, args.force, args.json).await;
    }
    if args.confirm {
        target::usage(
            "repair of a graph of stamp 14 is diagnosis only: it takes neither --confirm nor --force",
        );
    }
    let report = repair(&root).await?;
    if args.json {
        output::json(&report)?;
    } else {
        output::result(&report.human())?;
    }
    summary(&report.summary(), started, quiet);
    Ok(ExitCode::SUCCESS)
}
