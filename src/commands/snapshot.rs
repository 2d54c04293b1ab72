//! `omnigraph snapshot`: the tables of one state.

use std::process::ExitCode;

use graph::manifest::state::visible;
use graph::view::{At, Snapshot, snapshot};
use serde::Serialize;

use super::logical;
use crate::args::SnapshotArgs;
use crate::{output, target};

#[derive(Serialize)]
struct Document<'a> {
    branch: &'a str,
    manifest_version: u64,
    internal_schema_version: u32,
    head_commit: &'a str,
    tables: Vec<Table<'a>>,
}

/// One visible table.
#[derive(Serialize)]
pub struct Table<'a> {
    table_key: &'a str,
    table_version: u64,
    row_count: u64,
}

/// The visible tables of a state.
pub fn tables(shown: &Snapshot) -> Vec<Table<'_>> {
    visible(&shown.tables)
        .into_iter()
        .filter_map(|t| {
            t.state.pin().map(|pin| Table {
                table_key: &t.table_key,
                table_version: pin.table_version,
                row_count: pin.row_count,
            })
        })
        .collect()
}

/// One line a table, aligned.
pub fn table_lines(tables: &[Table<'_>]) -> Vec<String> {
    let width = tables
        .iter()
        .map(|t| t.table_key.chars().count())
        .max()
        .unwrap_or(0);
    tables
        .iter()
        .map(|table| {
            format!(
                "{:width$}  version {}  rows {}",
                table.table_key, table.table_version, table.row_count
            )
        })
        .collect()
}

/// Show a snapshot.
pub async fn run(args: &SnapshotArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let at = args.at.as_deref().map_or(Ok(At::Head), At::parse)?;
    let root = target::open(uri).await?;
    let shown = snapshot(&root, logical(&args.branch), &at).await?;
    let document = document(&shown);
    if args.json {
        output::json(&document)?;
    } else {
        output::result(&human(&document))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn document(shown: &Snapshot) -> Document<'_> {
    Document {
        branch: shown.branch.as_deref().unwrap_or(graph::model::names::MAIN),
        manifest_version: shown.manifest_version,
        internal_schema_version: shown.internal_schema_version,
        head_commit: &shown.head.graph_commit_id,
        tables: tables(shown),
    }
}

fn human(document: &Document<'_>) -> String {
    let mut lines = vec![
        format!("branch: {}", document.branch),
        format!("manifest_version: {}", document.manifest_version),
        format!(
            "internal_schema_version: {}",
            document.internal_schema_version
        ),
        format!("head commit: {}", document.head_commit),
    ];
    lines.extend(table_lines(&document.tables));
    lines.push(String::new());
    lines.join("\n")
}
