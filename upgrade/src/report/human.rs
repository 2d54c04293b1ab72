//! The report for a person (`docs/format/upgrade-protocol.md` 4): one item per line, in order.

use graph::words::counted;

use super::{Mode, Report};

/// Render the report; the text ends with a newline.
pub fn render(report: &Report) -> String {
    let unknown = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
    let none = |items: String| {
        if items.is_empty() {
            "none".into()
        } else {
            items
        }
    };
    let w = &report.work;
    let mut lines = vec![
        format!(
            "upgrade {}: {} ({})",
            report.location,
            report.outcome.as_str(),
            report.mode.as_str()
        ),
        format!("graph identity: {}", unknown(report.graph_identity.clone())),
        format!(
            "format: {} -> {}{}",
            unknown(report.observed_format.map(|n| n.to_string())),
            report.target_format,
            if report.target_defaulted {
                " (default target)"
            } else {
                ""
            }
        ),
        format!("route: {}", none(report.route.join(" -> "))),
        format!(
            "completed handlers: {}",
            none(report.completed_handlers.join(", "))
        ),
        format!(
            "last durable completed boundary: {}",
            report
                .last_durable_completed_boundary
                .as_deref()
                .unwrap_or("none")
        ),
        format!(
            "source: {}",
            counted(&[
                (w.live_refs, "live refs"),
                (w.retired_refs, "retired refs"),
                (w.orphan_writers, "orphan writers"),
                (w.legacy_commits, "legacy commits"),
                (w.bookkeeping_versions, "bookkeeping versions"),
                (w.absent_parents, "absent parents"),
            ])
        ),
        format!(
            "legacy objects: {}",
            counted(&[
                (w.data_files, "data files"),
                (w.id_shards, "id shards"),
                (w.writer_shards, "writer shards"),
                (w.schema_contents, "schema contents"),
                (w.legacy_bytes, "bytes"),
            ])
        ),
        format!("census: {} reads, {} cells", w.census_reads, w.census_cells),
    ];
    for finding in &report.findings {
        lines.push(format!("{}: {}", finding.code.as_str(), finding.message));
    }
    if let Some(recovery) = &report.recovery {
        lines.push(format!("failed handler: {}", recovery.failed_handler));
        lines.push(format!(
            "recovery executable: {}",
            recovery.executable_compatibility
        ));
        lines.push(format!("recovery action: {}", recovery.action));
    }
    if report.tables_above_pin > 0 {
        lines.push(format!(
            "advisory: {} on main with versions above the published one; the upgraded graph does not show their rows. \
             Look at them first: omnigraph repair {}",
            counted(&[(report.tables_above_pin, "tables")]),
            graph::stamp::shell_word(&report.location)
        ));
    }
    if report.mode == Mode::Check {
        lines.push(format!(
            "This check is advisory: keep the graph offline, keep a verified whole-root backup, then \
             run: omnigraph upgrade {}",
            graph::stamp::shell_word(&report.location)
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}
