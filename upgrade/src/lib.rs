//! The offline upgrade of a standalone root from stamp 8 or 9 to stamp 14
//! (`docs/format/upgrade-protocol.md`).
//!
//! Six steps, one file each in `steps`: preflight (which reads everything a decision needs and writes
//! nothing), fence, legacy objects, conversion per ref, validation, activation. Each durable effect lands
//! exactly once or not at all, so that a stop anywhere leaves a state the next run names and finishes.

mod intent;
mod observer;
mod options;
mod receipt;
pub mod report;
mod run;
mod steps;

pub use intent::{SourceBranch, SourceLock, UpgradeIntent, UpgradeSchemaContract};
pub use observer::{Crossing, Observer, Progress, Unobserved};
pub use options::{Authorizer, UpgradeOptions};
pub use receipt::BranchReceipt;
pub use report::{Code, Finding, Mode, Outcome, Recovery, Report, Work};
pub use run::upgrade;
