//! `omnigraph repair` on stamps 6, 8 and 9: table versions above the pin.

use std::process::ExitCode;

use graph::store::Root;
use recover::repair::{RepairOptions, render, repair};

use crate::output;

/// Show drift, or publish it.
pub async fn run(root: &Root, confirm: bool, force: bool, json: bool) -> anyhow::Result<ExitCode> {
    let options = RepairOptions {
        confirm,
        force,
        now: None,
    };
    let report = repair(root, &options).await?;
    if json {
        output::json(&report)?;
    } else {
        output::result(&render(&report))?;
    }
    Ok(if report.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
