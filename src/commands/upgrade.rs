//! `omnigraph upgrade`: target rules, echo, report, exit code.

use std::process::ExitCode;
use std::sync::Arc;

use upgrade::{UpgradeOptions, report, upgrade};

use crate::args::UpgradeArgs;
use crate::progress::Bar;
use crate::{output, target};

/// Check or upgrade.
pub async fn run(args: &UpgradeArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let root = target::open(uri).await?;
    target::refuse_cluster(&root).await?;
    if !args.check && !quiet {
        let kind = if root.is_local() { "local" } else { "remote" };
        output::note(&format!(
            "omnigraph upgrade → {} (direct, {kind})",
            root.uri()
        ));
    }
    let bar = Arc::new(Bar::new(quiet || args.json));
    let options = UpgradeOptions {
        check: args.check,
        target: args.to_format,
        observer: bar.clone(),
        ..UpgradeOptions::default()
    };
    let report = upgrade(&root, &options).await;
    bar.finish();
    if args.json {
        output::json(&report)?;
    } else {
        output::result(&report::render(&report))?;
    }
    Ok(if report.outcome.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
