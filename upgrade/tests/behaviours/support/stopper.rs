//! Observers that stop a run, act at a crossing, or only remember what they saw.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use graph::{Error, Result};
use upgrade::{Crossing, Observer, Progress, UpgradeOptions};

/// The message of an injected stop.
pub const STOP: &str = "stopped by the test";

type Fits = Box<dyn Fn(&Crossing) -> bool + Send + Sync>;

/// Remembers every crossing and stops at the one with an index, or at the first that fits.
#[derive(Default)]
pub struct Stopper {
    index: Option<usize>,
    fits: Option<Fits>,
    seen: Mutex<Vec<Crossing>>,
}

impl Stopper {
    /// Stops nowhere.
    pub fn never() -> Arc<Self> {
        Arc::default()
    }

    /// Stop at the crossing of this number (from 0).
    pub fn nth(index: usize) -> Arc<Self> {
        Arc::new(Self {
            index: Some(index),
            ..Self::default()
        })
    }

    /// Stop at the first crossing that fits.
    pub fn when(fits: impl Fn(&Crossing) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            fits: Some(Box::new(fits)),
            ..Self::default()
        })
    }

    /// Stop right after the fence.
    pub fn after_fence() -> Arc<Self> {
        Self::when(|c| *c == Crossing::AfterFence)
    }

    /// Every crossing so far.
    pub fn seen(&self) -> Vec<Crossing> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl Observer for Stopper {
    async fn crossing(&self, crossing: &Crossing) -> Result<()> {
        let mut seen = self.seen.lock().unwrap();
        seen.push(crossing.clone());
        let fits = self.fits.as_ref().is_some_and(|fits| fits(crossing));
        if fits || self.index == Some(seen.len() - 1) {
            return Err(Error::internal(STOP));
        }
        Ok(())
    }
}

type Action = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Does something else once, at the first crossing that fits: what a second process does meanwhile.
pub struct Act {
    at: Box<dyn Fn(&Crossing) -> bool + Send + Sync>,
    action: Mutex<Option<Action>>,
}

impl Act {
    /// Options of a run beside which `action` happens at the crossing `at`.
    pub fn options(
        at: impl Fn(&Crossing) -> bool + Send + Sync + 'static,
        action: impl FnOnce() -> BoxFuture<'static, ()> + Send + 'static,
    ) -> (UpgradeOptions, Arc<Self>) {
        let act = Arc::new(Self {
            at: Box::new(at),
            action: Mutex::new(Some(Box::new(action))),
        });
        let options = UpgradeOptions {
            observer: act.clone(),
            ..UpgradeOptions::default()
        };
        (options, act)
    }

    /// Whether the action was taken.
    pub fn happened(&self) -> bool {
        self.action.lock().unwrap().is_none()
    }
}

#[async_trait]
impl Observer for Act {
    async fn crossing(&self, crossing: &Crossing) -> Result<()> {
        if !(self.at)(crossing) {
            return Ok(());
        }
        let action = self.action.lock().unwrap().take();
        if let Some(action) = action {
            action().await;
        }
        Ok(())
    }
}

/// Remembers the phases of a run.
#[derive(Debug, Default)]
pub struct Phases(Mutex<Vec<&'static str>>);

impl Phases {
    /// Whether a phase was reported.
    pub fn has(&self, phase: &str) -> bool {
        self.0.lock().unwrap().contains(&phase)
    }
}

#[async_trait]
impl Observer for Phases {
    fn progress(&self, progress: Progress) {
        self.0.lock().unwrap().push(progress.phase);
    }
}
