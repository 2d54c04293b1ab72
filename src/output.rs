//! Stdout carries the result and nothing else, stderr everything else.

use std::io::Write as _;

use serde::Serialize;

/// Write the result. A reader that closed the pipe is no failure.
pub fn result(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(()),
    }
}

/// [`result`] or [`json`] of a command that has changed the graph: a failure to print must not read as a failure to do.
pub fn done(printed: anyhow::Result<()>, what: &str) -> anyhow::Result<()> {
    printed.map_err(|e| {
        e.context(format!(
            "{what}, and only the report of it could not be written; do not repeat the command"
        ))
    })
}

/// Write the result as one pretty-printed JSON document.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    result(&text)
}

/// One line on stderr.
pub fn note(text: &str) {
    // There is nowhere left to report a stderr that cannot be written.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The one line a failed command leaves.
pub fn error_line(error: &anyhow::Error) {
    let text = format!("{error:#}");
    note(&format!("error: {}", text.replace(['\n', '\r'], " ")));
}
