//! Asking before something on a remote store is replaced or deleted.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;

/// Local graphs and `--yes` pass. Otherwise a person at a terminal is asked to type `yes`; without one, and with
/// `--json`, the command is refused.
pub fn require(uri: &str, what: &str, yes: bool, json: bool) -> anyhow::Result<()> {
    if yes || !uri.contains("://") || uri.starts_with("file://") {
        return Ok(());
    }
    if json || !std::io::stdin().is_terminal() {
        bail!("{what} {uri} needs consent: run the command again with --yes");
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{what} {uri}. Type yes to go on: ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "yes" | "y" => Ok(()),
        _ => bail!("not confirmed; nothing was changed"),
    }
}
