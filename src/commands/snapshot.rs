//! `omnigraph snapshot`: the tables of one state.

use std::process::ExitCode;

use graph::manifest::state::visible;
use graph::view::{At, Snapshot, snapshot};
use serde::Serialize;

use super::branch;
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

#[derive(Serialize)]
struct Table<'a> {
    table_key: &'a str,
    table_version: u64,
    row_count: u64,
}

/// Show a snapshot.
pub async fn run(args: &SnapshotArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let at = args.at.as_deref().map_or(Ok(At::Head), At::parse)?;
    let root = target::open(uri).await?;
    let shown = snapshot(&root, branch(&args.branch), &at).await?;
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
        tables: visible(&shown.tables)
            .into_iter()
            .filter_map(|t| {
                t.state.pin().map(|pin| Table {
                    table_key: &t.table_key,
                    table_version: pin.table_version,
                    row_count: pin.row_count,
                })
            })
            .collect(),
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
    let width = document
        .tables
        .iter()
        .map(|t| t.table_key.chars().count())
        .max()
        .unwrap_or(0);
    for table in &document.tables {
        lines.push(format!(
            "{:width$}  version {}  rows {}",
            table.table_key, table.table_version, table.row_count
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}
