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
    let lease = hold(root, verb).await?;
    let stop = lease.stop().clone();
    let listening = listen(stop.clone())?;
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
fn listen(stop: Stop) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if stop.requested().is_some() {
                output::note("error: a second signal was received, ending at once");
                std::process::exit(1);
            }
            stop.request(format!("{name} was received"));
        }
    }))
}

#[cfg(not(unix))]
fn listen(stop: Stop) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    Ok(tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.request("an interrupt was received");
        }
    }))
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
