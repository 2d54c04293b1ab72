//! Asking a run to end between two effects.

use std::sync::{Arc, OnceLock};

use graph::{Error, Result};

/// A request to stop that every part of a run sees. Clones share it; it is never withdrawn.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    why: Arc<OnceLock<String>>,
}

impl Stop {
    /// Nobody asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ask; `why` ends up in the error. The first reason stays.
    pub fn request(&self, why: impl Into<String>) {
        // A second reason adds nothing.
        let _ = self.why.set(why.into());
    }

    /// Why somebody asked, if somebody did.
    pub fn requested(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// [`Error::Refused`] with the reason and `how_far` (what was done and what was not) once somebody asked.
    /// Called before every effect.
    pub fn check(&self, how_far: impl FnOnce() -> String) -> Result<()> {
        match self.requested() {
            None => Ok(()),
            Some(why) => Err(Error::refused(format!("stopped: {why}; {}", how_far()))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_is_told_to_all() {
        let stop = Stop::new();
        let clone = stop.clone();
        clone.check(|| "never".into()).unwrap();
        stop.request("SIGTERM");
        clone.request("another");
        let error = clone.check(|| "2 of 5 tables".into()).unwrap_err();
        assert_eq!(error.to_string(), "stopped: SIGTERM; 2 of 5 tables");
    }
}
