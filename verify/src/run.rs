//! One verification, from the guard to the report.

use graph::manifest::scan::open_branch;
use graph::store::Root;
use graph::{Error, Result};

use crate::finding::{Code, Findings};
use crate::ledger::Ledger;
use crate::options::{Progress, VerifyOptions};
use crate::report::{Checked, DeepChecked, Outcome, Report};
use crate::{archives, branches, deep, history, lineage, pins, refs, succession, table_refs};

/// What every part of a verification is handed.
pub(crate) struct Run<'a> {
    pub(crate) root: &'a Root,
    pub(crate) options: &'a VerifyOptions,
    pub(crate) findings: Findings,
}

impl Run<'_> {
    pub(crate) fn progress(&self, phase: &'static str, done: u64, total: u64) {
        self.options
            .observer
            .progress(Progress { phase, done, total });
    }

    /// At least one.
    pub(crate) fn concurrency(&self) -> usize {
        self.options.limits.concurrency.max(1)
    }
}

/// Verify a root. Nothing is written. A root that the stamp guard refuses, and one without a catalog, is an
/// error; everything else that is wrong is a finding.
pub async fn verify(root: &Root, options: &VerifyOptions) -> Result<Report> {
    // A head that is damaged is found again, with its branch, below.
    if let Err(e @ (Error::Refused(_) | Error::NotFound(_) | Error::Storage { .. })) =
        open_branch(root, None).await
    {
        return Err(e);
    }
    let run = Run {
        root,
        options,
        findings: Findings::new(options.limits.findings),
    };
    let mut checked = Checked::default();
    let mut ledger = Ledger::new(options.deep);

    let refs = refs::check(&run, &mut checked).await;
    let area = history::check(&run, &mut ledger, &mut checked).await;
    let heads = branches::check(&run, &refs, &area, &mut ledger, &mut checked).await;
    if options.deep {
        let mut read = DeepChecked::default();
        deep::manifest_versions(&run, &refs, &mut ledger, &mut read).await;
        checked.deep = Some(read);
    }
    succession::check_boundaries(&run, &mut ledger).await;
    lineage::check(&run, &heads, &area, &ledger);
    archives::check(&run, &area, &ledger, &mut checked).await;
    let opened = pins::check_heads(&run, &heads, &mut checked).await;
    table_refs::check(&run, &opened).await;
    if let Some(read) = &mut checked.deep {
        deep::tables(&run, opened, &mut ledger, read).await;
    }
    checked.commits = ledger.len();
    checked.commit_copies = ledger.copies();

    let (findings, findings_omitted) = run.findings.into_sorted();
    Ok(Report {
        location: root.uri().to_string(),
        deep: options.deep,
        outcome: if findings.is_empty() {
            Outcome::Ok
        } else {
            Outcome::Damaged
        },
        findings,
        findings_omitted,
        checked,
    })
}

/// The object a finding about a missing or broken catalog version names.
pub(crate) fn manifest_object(native: Option<&str>, version: Option<u64>) -> String {
    let tree = match native {
        None => graph::store::MANIFEST_DIR.to_string(),
        Some(native) => format!("{}/tree/{native}", graph::store::MANIFEST_DIR),
    };
    match version {
        None => tree,
        Some(version) => format!("{tree} at version {version}"),
    }
}

/// The code of an error of something `missing` says was absent.
pub(crate) fn code_of(error: &Error, missing: Code, broken: Code) -> Code {
    if error.is_not_found() {
        missing
    } else {
        broken
    }
}
