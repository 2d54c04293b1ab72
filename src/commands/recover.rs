//! `omnigraph recover`: what interrupted writes left, and its end.

use std::process::ExitCode;

use recover::{RecoverOptions, recover, render};

use crate::args::RecoverArgs;
use crate::{output, target};

/// Check or settle.
pub async fn run(args: &RecoverArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let root = target::open(uri).await?;
    target::refuse_cluster(&root).await?;
    let confirm = args.confirm && !args.check;
    if confirm && !quiet {
        output::note(&format!("omnigraph recover --confirm → {}", root.uri()));
    }
    let options = RecoverOptions {
        confirm,
        ..RecoverOptions::default()
    };
    let report = recover(&root, &options).await?;
    if args.json {
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
