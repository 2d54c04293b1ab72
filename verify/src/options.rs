//! How a verification is asked for and watched.

use std::sync::Arc;

/// What a verification is doing, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The phase, in words.
    pub phase: &'static str,
    /// Done so far.
    pub done: u64,
    /// In all; 0 when it is not known.
    pub total: u64,
}

/// Sees progress.
pub trait Observer: Send + Sync {
    /// Progress was made.
    fn progress(&self, _progress: Progress) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Bounds of one verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Branches, archives and table versions looked at at once.
    pub concurrency: usize,
    /// Findings the report lists; the others are counted.
    pub findings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 16,
            findings: 1_000,
        }
    }
}

/// Options of one verification.
#[derive(Clone)]
pub struct VerifyOptions {
    /// Also open every pin that history names, and read all table data once.
    pub deep: bool,
    /// Bounds.
    pub limits: Limits,
    /// Sees progress.
    pub observer: Arc<dyn Observer>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            deep: false,
            limits: Limits::default(),
            observer: Arc::new(Unobserved),
        }
    }
}
