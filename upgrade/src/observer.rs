//! Where a run can be watched and stopped: one crossing before and after every durable effect.

use async_trait::async_trait;
use graph::Result;
use graph::refs::RetireStep;

/// A point of the run next to a durable effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crossing {
    /// Main's schema archive is about to be created.
    BeforeArchive,
    /// Main's schema archive exists.
    AfterArchive,
    /// The fence is about to be committed.
    BeforeFence,
    /// The fence is committed.
    AfterFence,
    /// One effect of retiring a lock is about to happen.
    BeforeLock {
        /// The lock's native ref.
        native: String,
        /// Which effect.
        step: RetireStep,
    },
    /// A lock is retired.
    AfterLock {
        /// The lock's native ref.
        native: String,
    },
    /// A legacy object is about to be created.
    BeforeObject {
        /// Its key below the root.
        key: String,
    },
    /// A legacy object exists.
    AfterObject {
        /// Its key below the root.
        key: String,
    },
    /// Every legacy object was read back against the intent.
    LegacyValidated,
    /// A ref's conversion is staged, not committed.
    Staged {
        /// `main` or the native ref.
        name: String,
    },
    /// A ref is converted.
    Converted {
        /// `main` or the native ref.
        name: String,
    },
    /// Everything is validated; activation is about to be committed.
    BeforeActivation,
    /// The graph is activated.
    AfterActivation,
}

/// What a run is doing, for a progress bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The phase, in words.
    pub phase: &'static str,
    /// Done so far.
    pub done: u64,
    /// In all; 0 when it is not known.
    pub total: u64,
}

/// Sees the run. An error of [`Observer::crossing`] stops it there, as a failure of storage would.
#[async_trait]
pub trait Observer: Send + Sync {
    /// A crossing is reached.
    async fn crossing(&self, _crossing: &Crossing) -> Result<()> {
        Ok(())
    }

    /// Progress was made.
    fn progress(&self, _progress: Progress) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

#[async_trait]
impl Observer for Unobserved {}
