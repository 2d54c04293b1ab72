//! Read-only verification of a stamp-14 root (`docs/format/manifest-v14.md` 13, `docs/format/history.md`
//! 7.12; what is checked and what no reader can notice stands in `docs/verify.md`).
//!
//! Every object is read on its own: an error or a panic of one is a finding that names it, and the others
//! are checked all the same. Records are streamed; what stays in memory is one line a commit.

mod archives;
mod branches;
mod deep;
mod finding;
mod history;
mod ledger;
mod legacy;
mod lineage;
mod options;
mod pins;
mod receipt;
mod ref_object;
mod refs;
pub mod report;
mod run;
mod scan;
mod succession;
mod table_refs;
mod tags;
mod transactions;

pub use finding::{Code, Finding};
pub use options::{Limits, Observer, Progress, Unobserved, VerifyOptions};
pub use report::{Checked, DeepChecked, HistoryObjects, Outcome, Report};
pub use run::verify;
