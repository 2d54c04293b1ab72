//! `omnigraph verify`: everything a graph holds, read and compared.

use std::process::ExitCode;
use std::sync::Arc;

use verify::{Outcome, VerifyOptions, report, verify};

use crate::args::VerifyArgs;
use crate::progress::Bar;
use crate::{output, target};

/// Verify a graph.
pub async fn run(args: &VerifyArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let root = target::open(uri).await?;
    let bar = Arc::new(Bar::new(quiet));
    let options = VerifyOptions {
        deep: args.deep,
        observer: bar.clone(),
        ..VerifyOptions::default()
    };
    let verified = verify(&root, &options).await;
    bar.finish();
    let report = verified?;
    if args.json {
        output::json(&report)?;
    } else {
        output::result(&report::render(&report))?;
    }
    Ok(match report.outcome {
        Outcome::Ok => ExitCode::SUCCESS,
        Outcome::Damaged => ExitCode::from(1),
    })
}
