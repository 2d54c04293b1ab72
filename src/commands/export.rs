//! `omnigraph export`: the rows of one state as JSONL.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use graph::view::At;
use write::export::export;

use super::logical;
use crate::args::ExportArgs;
use crate::progress::Rows;
use crate::target;

/// Print the rows of a state.
pub async fn run(args: &ExportArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let at = args.at.as_deref().map_or(Ok(At::Head), At::parse)?;
    let root = target::open(uri).await?;
    let rows = Rows::new(quiet, "exporting");
    let mut out = BufWriter::with_capacity(1 << 20, Output::default());
    let exported = export(&root, logical(&args.branch), &at, &mut out, &|n| {
        rows.show(n)
    })
    .await;
    rows.finish();
    exported?;
    Ok(ExitCode::SUCCESS)
}

/// Standard output, for which a reader that went away is no failure.
#[derive(Default)]
struct Output {
    closed: bool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        match std::io::stdout().write(bytes) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match std::io::stdout().flush() {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}
