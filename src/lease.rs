//! Running a maintenance command: under the lease of the root, stopped between two effects by a signal.

use std::time::Instant;

use graph::store::Root;
use maintain::Stop;
use maintain::lease::hold;

use crate::output;

/// Run `work` while this process holds the maintenance lease of `root`. SIGTERM and SIGINT ask it to stop; a second
/// one ends the process at once, which the next run copes with.
pub async fn under_lease<T>(
    root: &Root,
    verb: &'static str,
    work: impl AsyncFnOnce(Stop) -> write::Result<T>,
) -> anyhow::Result<T> {
    // Before the lease: a signal that comes while it is taken must not leave it behind.
    let mut signals = Signals::new()?;
    let lease = hold(root, verb).await?;
    let stop = lease.stop().clone();
    let asked = stop.clone();
    let listening = tokio::spawn(async move {
        loop {
            let name = signals.next().await;
            if asked.requested().is_some() {
                output::note("error: asked to stop a second time, ending at once");
                std::process::exit(1);
            }
            asked.request(format!("{name} was received"));
        }
    });
    let done = work(stop).await;
    listening.abort();
    if let Err(e) = lease.release().await {
        output::note(&format!(
            "warning: the maintenance lease was not let go ({e}); it goes stale by itself"
        ));
    }
    Ok(done?)
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "an interrupt"
    }
}

/// The echo of the target, before storage is opened.
pub fn echo(verb: &str, root: &Root, quiet: bool) {
    if !quiet {
        let kind = if root.is_local() { "local" } else { "remote" };
        output::note(&format!(
            "omnigraph {verb} → {} (direct, {kind})",
            root.uri()
        ));
    }
}

/// The one line for a log.
pub fn summary(text: &str, started: Instant, quiet: bool) {
    if !quiet {
        output::note(&format!("{text}, {:.1} s", started.elapsed().as_secs_f64()));
    }
}
