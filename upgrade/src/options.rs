//! How a run is asked for.

use std::sync::Arc;

use census::Limits;
use ulid::Ulid;

use crate::observer::{Observer, Unobserved};

/// Decides whether an actor may convert a branch. The command line installs none.
pub trait Authorizer: Send + Sync {
    /// `Err` carries the policy's own message.
    fn authorize(&self, actor: &str, action: &str, branch: &str) -> Result<(), String>;
}

/// Options of one run.
#[derive(Clone)]
pub struct UpgradeOptions {
    /// Read only.
    pub check: bool,
    /// `--to-format`; 14 when not given.
    pub target: Option<u32>,
    /// Bounds of the census; tests lower them.
    pub limits: Limits,
    /// The attempt id to mint; `None` draws one. Tests fix it to compare bytes.
    pub attempt: Option<Ulid>,
    /// Sees crossings and progress.
    pub observer: Arc<dyn Observer>,
    /// The policy, if one is installed.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Who runs it; required when a policy is installed.
    pub actor: Option<String>,
}

impl Default for UpgradeOptions {
    fn default() -> Self {
        Self {
            check: false,
            target: None,
            limits: Limits::default(),
            attempt: None,
            observer: Arc::new(Unobserved),
            authorizer: None,
            actor: None,
        }
    }
}
