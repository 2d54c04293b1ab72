//! Stopping between effects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graph::{Error, Result};

/// A request to stop, shared with whoever asks. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Ask to stop before the next effect.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
    }

    /// Whether someone asked.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// [`Error::Refused`] that says how far it came, once someone asked.
    pub fn check(&self, so_far: &str) -> Result<()> {
        if self.is_asked() {
            return Err(Error::refused(format!("stopped by a signal: {so_far}")));
        }
        Ok(())
    }
}
