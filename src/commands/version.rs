//! `omnigraph version`.

use std::process::ExitCode;

/// Two lines: name and version, the stamp served.
pub fn run() -> anyhow::Result<ExitCode> {
    crate::output::result(&format!(
        "omnigraph {}\ninternal-schema {}\n",
        env!("CARGO_PKG_VERSION"),
        graph::stamp::CURRENT
    ))?;
    Ok(ExitCode::SUCCESS)
}
