//! What a refused run may look like.

use std::path::Path;

use super::roots::unchanged;
use super::run::{Run, codes, omnigraph};

/// The stable finding codes (`docs/format/upgrade-protocol.md` 9).
pub const CODES: [&str; 19] = [
    "unknown_upgrade_ownership",
    "pending_upgrade",
    "source_recovery_required",
    "unsupported_target",
    "newer_than_binary",
    "unsupported_source",
    "schema_apply_lock_retired",
    "history_objects_present",
    "legacy_lineage_incomplete",
    "legacy_lineage_corrupt",
    "legacy_uncommitted_change",
    "legacy_record_over_bound",
    "legacy_census_over_bound",
    "legacy_directory_over_bound",
    "legacy_head_record_mismatch",
    "legacy_plan_changed",
    "legacy_objects_differ",
    "preflight_failed",
    "upgrade_interrupted",
];

/// How an `upgrade --json --quiet` ended: the outcome with its codes, or the one error line.
pub fn verdict(run: Run) -> String {
    if run.stdout.is_empty() {
        return run.one_error_line();
    }
    let report = run.json();
    assert_eq!(run.stderr, "", "{run:#?}");
    let outcome = report["outcome"].as_str().unwrap();
    let good = ["check_passed", "already_current", "completed"].contains(&outcome);
    assert_eq!(run.code, Some(if good { 0 } else { 1 }), "{run:#?}");
    let codes = codes(&report);
    assert!(
        good || !codes.is_empty(),
        "a refusal without a finding: {run:#?}"
    );
    for (code, finding) in codes.iter().zip(report["findings"].as_array().unwrap()) {
        assert!(CODES.contains(&code.as_str()), "{run:#?}");
        let message = finding["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && !message.contains(['\n', '\r']),
            "{run:#?}"
        );
    }
    format!("{outcome} {}", codes.join(" "))
}

/// Assert that `upgrade` refuses `root` in both modes, for one reason, and changes nothing; the verdict.
pub fn upgrade_refuses(root: &Path) -> String {
    let at = root.to_str().unwrap();
    unchanged(root, || {
        let run = |args: &[&str]| verdict(omnigraph(args).exits(1));
        let check = run(&["upgrade", at, "--check", "--json", "--quiet"]);
        let execute = run(&["upgrade", at, "--json", "--quiet"]);
        assert_eq!(check, execute, "check and run disagree on {at}");
        check
    })
}

/// [`upgrade_refuses`], and every other command refuses too.
pub fn every_command_refuses(root: &Path) -> String {
    let at = root.to_str().unwrap();
    let verdict = upgrade_refuses(root);
    unchanged(root, || {
        for args in [
            &["snapshot", at][..],
            &["commit", "list", at],
            &["snapshot", at, "--at", "2"],
        ] {
            omnigraph(args).one_error_line();
        }
        // The human report is one line an item: nine, the findings, the remedy, the advice.
        let human = omnigraph(["upgrade", at, "--check"]).exits(1);
        let lines = human.stdout.lines().count();
        assert!([0, 11, 14].contains(&lines), "{human:#?}");
    });
    verdict
}
