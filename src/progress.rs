//! A progress bar on stderr: only on a terminal, and only for what takes more than two seconds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use upgrade::{Observer, Progress};

/// Silent for this long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Draws the progress of an upgrade or a verification.
pub struct Bar {
    started: Instant,
    bar: ProgressBar,
    phase: Mutex<&'static str>,
}

impl Bar {
    /// A bar that is silent with `quiet`, and when stderr is no terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = hidden("{msg:28} {wide_bar} {pos}/{len} {elapsed}");
        if !quiet {
            show_late(&bar);
        }
        Self {
            started: Instant::now(),
            bar,
            phase: Mutex::new(""),
        }
    }

    /// Remove the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Counts rows whose number nobody knows beforehand.
pub struct Rows {
    bar: ProgressBar,
}

impl Rows {
    /// A counter that is silent with `quiet`, and when stderr is no terminal.
    pub fn new(quiet: bool, what: &'static str) -> Self {
        let bar = hidden("{msg} {spinner} {human_pos} rows, {per_sec}, {elapsed}");
        bar.set_message(what);
        if !quiet {
            show_late(&bar);
        }
        Self { bar }
    }

    /// So many rows so far.
    pub fn show(&self, rows: u64) {
        self.bar.set_position(rows);
    }

    /// Remove it.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn hidden(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn show_late(bar: &ProgressBar) {
    let late = bar.clone();
    tokio::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        if !late.is_finished() {
            // Draws nothing where stderr is no terminal.
            late.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
}

impl Observer for Bar {
    fn progress(&self, progress: Progress) {
        self.show(progress.phase, progress.done, progress.total);
    }
}

impl verify::Observer for Bar {
    fn progress(&self, progress: verify::Progress) {
        self.show(progress.phase, progress.done, progress.total);
    }
}

impl Bar {
    fn show(&self, name: &'static str, done: u64, total: u64) {
        if let Ok(mut phase) = self.phase.lock()
            && *phase != name
        {
            *phase = name;
            self.bar.set_message(name);
            self.bar.reset_elapsed();
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        if self.started.elapsed() >= PATIENCE {
            self.bar.tick();
        }
    }
}
