//! The report for a person.

use super::{Mode, Outcome, Report, SidecarReport, Status};
use crate::judge::Table;

/// Render a report; ends in a newline.
pub fn render(report: &Report) -> String {
    let mut lines = vec![format!("stamp: {}", report.stamp)];
    if let Some(staging) = &report.staging {
        let word = match staging.status {
            Status::Settled => "done",
            Status::Refused => "stays",
            _ => "would be done",
        };
        lines.push(format!(
            "{}: {:?} ({word}): {}",
            staging.objects.join(", "),
            staging.decision,
            staging.reason
        ));
    }
    lines.extend(report.notes.iter().map(|n| format!("note: {n}")));
    for sidecar in &report.sidecars {
        lines.push(String::new());
        lines.extend(sidecar_lines(sidecar));
    }
    if !report.sidecars.is_empty() {
        lines.push(String::new());
    }
    lines.push(last_line(report));
    lines.push(String::new());
    lines.join("\n")
}

fn sidecar_lines(s: &SidecarReport) -> Vec<String> {
    let mut lines = vec![format!("__recovery/{}", s.file)];
    if let (Some(kind), Some(branch)) = (s.writer_kind, &s.branch) {
        lines.push(format!(
            "  {kind} on {branch} by {}, {}{}",
            s.actor_id.as_deref().unwrap_or("nobody"),
            s.phase.unwrap_or("without phase"),
            s.age_seconds
                .map_or(String::new(), |a| format!(", {} old", age(a))),
        ));
    }
    lines.extend(s.tables.iter().map(table_line));
    let word = match s.status {
        Status::Planned => "would be settled by",
        Status::Settled => "settled by",
        Status::Refused => "stays",
        Status::NotAttempted => "not attempted",
        Status::Failed => "failed in",
    };
    lines.push(match s.status {
        Status::Refused => format!("  stays: {}", s.reason),
        _ => format!("  {word} {:?}: {}", s.decision, s.reason),
    });
    lines.extend(s.actions.iter().map(|a| format!("    - {a}")));
    lines.extend(s.error.iter().map(|e| format!("  error: {e}")));
    lines.extend(s.remedy.iter().map(|r| format!("  {r}")));
    lines
}

fn table_line(t: &Table) -> String {
    let on = t
        .table_branch
        .as_ref()
        .map_or(String::new(), |b| format!(" on ref {b}"));
    let operations = match t.operations.is_empty() {
        true => String::new(),
        false => format!(", above the pin: {}", t.operations.join(", ")),
    };
    let absent = if t.exists { "" } else { " (not there)" };
    format!(
        "  {}{on}{absent}: published {}, newest {}, expected {}, {:?}, {:?}{operations}",
        t.table_key, t.pinned_version, t.head_version, t.expected_version, t.ownership, t.class
    )
}

fn age(seconds: i64) -> String {
    match seconds {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

fn last_line(report: &Report) -> String {
    match (report.outcome, report.mode) {
        (Outcome::Clean, _) => "clean: no sidecar is there, and nothing is staged".into(),
        (Outcome::Pending, _) => {
            "everything can be settled; nothing was changed. Take a backup of the whole root, then run omnigraph \
             recover --confirm"
                .into()
        }
        (Outcome::Recovered, _) => "recovered: everything is settled".into(),
        (Outcome::Refused, Mode::Check) => "refused: something stays, see above; nothing was changed".into(),
        (Outcome::Refused, Mode::Confirm) => "refused: something stays, see above".into(),
        (Outcome::Failed, _) => "failed: see above; run omnigraph recover --confirm again".into(),
    }
}
