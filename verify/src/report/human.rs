//! The report for a person: what was read, what is wrong, what to do next.

use graph::words::counted;

use super::{Outcome, Report};

/// Whether trees without a ref are all there is.
fn only_interrupted_creations(report: &Report) -> bool {
    report.findings_omitted == 0
        && report
            .findings
            .iter()
            .all(|f| f.code == crate::Code::TreeUnclaimed)
}

/// Render the report; the text ends with a newline.
pub fn render(report: &Report) -> String {
    let c = &report.checked;
    let h = &c.history;
    let mut lines = vec![
        format!(
            "verify {}: {}{}",
            report.location,
            report.outcome.as_str(),
            if report.deep { " (deep)" } else { "" }
        ),
        format!(
            "catalog: {}",
            counted(&[
                (c.branches, "live branches"),
                (c.retired_refs, "retired refs"),
                (c.tags, "tags"),
            ])
        ),
        format!(
            "lineage: {}",
            counted(&[(c.commits, "commits"), (c.commit_copies, "further copies")])
        ),
        format!(
            "history: {}",
            counted(&[
                (h.block_extents, "block extents"),
                (h.singletons, "singletons"),
                (h.legacy_data_files, "legacy data files"),
                (h.id_shards, "id shards"),
                (h.writer_shards, "writer shards"),
                (h.directories, "directories"),
                (h.schema_archives, "schema archives"),
            ])
        ),
        format!(
            "heads: {}",
            counted(&[(c.head_pins, "pins"), (c.head_rows, "rows")])
        ),
    ];
    if let Some(d) = &c.deep {
        lines.push(format!(
            "history pins: {}",
            counted(&[
                (d.history_pins, "pins"),
                (
                    d.history_pins_removed_by_retention,
                    "removed by an earlier cleanup"
                ),
                (d.manifest_versions, "older catalog versions"),
            ])
        ));
        lines.push(format!(
            "table data: {}",
            counted(&[
                (d.table_versions, "table versions"),
                (d.data_files, "data files"),
                (d.rows, "rows"),
                (d.bytes, "bytes"),
            ])
        ));
    }
    if c.head_pins_with_other_etag > 0 {
        lines.push(format!(
            "note: {} pins recorded another ETag: the root was copied or restored",
            c.head_pins_with_other_etag
        ));
    }
    for finding in &report.findings {
        let branch = match &finding.branch {
            Some(branch) => format!(" on branch {branch}"),
            None => String::new(),
        };
        // A message of a library mostly starts with the object.
        let said = finding.message.strip_prefix(&finding.object);
        let said = said.map_or_else(
            || format!("{}{branch}: {}", finding.object, finding.message),
            |rest| {
                format!(
                    "{}{branch}: {}",
                    finding.object,
                    rest.trim_start_matches([':', ' '])
                )
            },
        );
        lines.push(format!("{}: {said}", finding.code.as_str()));
    }
    if report.findings_omitted > 0 {
        lines.push(format!("and {} more findings", report.findings_omitted));
    }
    let word = graph::stamp::shell_word(&report.location);
    match (report.outcome, report.deep) {
        (Outcome::Ok, true) => {}
        (Outcome::Ok, false) => lines.push(format!(
            "Table data was not read. To read it too, run: omnigraph verify {word} --deep"
        )),
        (Outcome::Damaged, _) if only_interrupted_creations(report) => lines.push(format!(
            "Nothing else is wrong. If no branch is missing from the list of omnigraph branch list {word}, a creation was \
             interrupted there: omnigraph cleanup {word} --keep N --confirm removes such a tree once it is seven days old. \
             If one is missing, restore the whole root from a backup to the same path"
        )),
        (Outcome::Damaged, _) => lines.push(format!(
            "Keep the graph offline and copy the whole root aside. Restore the whole root from a backup to \
             the same path, then run: omnigraph verify {word}"
        )),
    }
    lines.push(String::new());
    lines.join("\n")
}
