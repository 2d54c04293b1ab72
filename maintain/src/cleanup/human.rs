//! The report for a person (`docs/format/maintenance.md` 5.12).

use super::reason::Reason;
use super::report::{Area, KeptRow, Mode, Report, Row, subject};

/// Width of the subject column.
const SUBJECT: usize = 40;

/// The text for stdout. `policy` is the policy in words.
pub fn render(report: &Report, policy: &str) -> String {
    let mut text = match report.mode {
        Mode::Preview => preview_head(report, policy),
        Mode::Confirm => confirm_head(report, policy),
    };
    for row in &report.datasets {
        if report.mode == Mode::Preview || row.error.is_none() {
            one(row, report.mode, &mut text);
        }
    }
    areas(report, &mut text);
    for tree in &report.native_trees {
        let size = format!("{} objects, {} bytes", tree.objects, tree.bytes);
        let name = format!("{}/tree/{}", tree.dataset, tree.tree);
        let end = match (&tree.error, tree.removed, &tree.why) {
            (Some(error), _, _) => format!("not removed: {error}"),
            (None, true, _) if report.mode == Mode::Preview => format!("goes ({size})"),
            (None, true, _) => format!("removed ({size})"),
            (None, false, Some(why)) => format!("stays: {why}"),
            (None, false, None) => "not removed".to_string(),
        };
        text.push_str(&format!("  tree {name}: {end}\n"));
    }
    for kept in &report.undecidable_trees {
        text.push_str(&format!(
            "  no tree of {} goes: {}\n",
            kept.dataset, kept.why
        ));
    }
    list(&mut text, "branch deletions to finish", &report.retirements);
    list(
        &mut text,
        "merge-input tags released",
        &report.released_tags,
    );
    for note in &report.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}

fn preview_head(report: &Report, policy: &str) -> String {
    let (manifests, files, bytes, trees) = report.totals();
    format!(
        "cleanup {} ({policy}) — would remove {manifests} versions, {files} files ({bytes} bytes) and {trees} trees; \
         nothing was changed\n",
        report.uri
    )
}

fn confirm_head(report: &Report, policy: &str) -> String {
    let removed: u64 = report.datasets.iter().map(|r| r.manifests_removed).sum();
    let bytes: u64 = report.datasets.iter().map(|r| r.bytes_removed).sum();
    let failed: Vec<String> = report
        .datasets
        .iter()
        .filter(|r| r.error.is_some())
        .map(|r| subject(&r.type_key))
        .collect();
    let ok = report.datasets.len() - failed.len();
    let mut text = format!(
        "cleanup {} ({policy}) — removed {removed} versions ({bytes} bytes) across {ok} datasets\n",
        report.uri
    );
    if !failed.is_empty() {
        text.push_str(&format!(
            "  {} failed: {}\n",
            failed.len(),
            failed.join(", ")
        ));
    }
    text
}

fn one(row: &Row, mode: Mode, text: &mut String) {
    let subject = subject(&row.type_key);
    if let Some(error) = &row.error {
        text.push_str(&format!("  {subject:SUBJECT$} error: {error}\n"));
        return;
    }
    let verb = match mode {
        Mode::Preview => "would remove",
        Mode::Confirm => "removed",
    };
    text.push_str(&format!(
        "  {subject:SUBJECT$} {verb} {} versions, {} files, {} bytes of {}\n",
        row.manifests_removed,
        row.files_removed,
        row.bytes_removed + row.index_bytes_removed,
        row.total_bytes
    ));
    let staging = row.staging;
    if row.unpublished_manifests > 0 {
        text.push_str(&format!(
            "    unpublished staging: {} live, {} dead, {} undecidable\n",
            staging.live.manifests, staging.dead.manifests, staging.undecidable.manifests
        ));
    }
    if !row.foreign_versions.is_empty() {
        let versions: Vec<String> = row.foreign_versions.iter().map(u64::to_string).collect();
        text.push_str(&format!("    foreign versions: {}\n", versions.join(", ")));
    }
    let kept: Vec<String> = row
        .kept
        .iter()
        .filter(|k| k.reason != Reason::Layout)
        .map(kept_words)
        .collect();
    if !kept.is_empty() {
        text.push_str(&format!("    stays: {}\n", kept.join("; ")));
    }
}

fn kept_words(kept: &KeptRow) -> String {
    format!(
        "{} {} versions, {} files, {} bytes",
        kept.reason.words(),
        kept.versions,
        kept.files,
        kept.bytes
    )
}

fn areas(report: &Report, text: &mut String) {
    let mut area = |name: &str, area: Area| {
        text.push_str(&format!(
            "  {name:SUBJECT$} {} objects, {} bytes, {} stay\n",
            area.objects, area.bytes, area.bytes_kept
        ));
    };
    area("__manifest", report.manifest);
    area("__history", report.history);
}

fn list(text: &mut String, what: &str, names: &[String]) {
    if !names.is_empty() {
        text.push_str(&format!("  {what}: {}\n", names.join(", ")));
    }
}

/// One line for a log: `key=value` pairs.
pub fn summary(report: &Report) -> String {
    let (manifests, files, bytes, trees) = report.totals();
    let mode = match report.mode {
        Mode::Preview => "preview",
        Mode::Confirm => "confirm",
    };
    format!(
        "cleanup mode={mode} datasets={} versions={manifests} files={files} bytes={bytes} trees={trees} failed={} \
         stopped={}",
        report.datasets.len(),
        report.failures(),
        report.stopped
    )
}
