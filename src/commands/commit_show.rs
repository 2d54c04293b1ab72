//! `omnigraph commit show`: one commit and the tables of its state.

use std::process::ExitCode;

use graph::model::Commit;
use graph::model::names::MAIN;
use graph::view::{At, snapshot};
use serde::Serialize;

use super::snapshot::{Table, tables};
use super::time;
use crate::args::CommitShowArgs;
use crate::{output, target};

#[derive(Serialize)]
struct Document<'a> {
    commit: &'a Commit,
    tables: Vec<Table<'a>>,
}

/// Show a commit.
pub async fn run(args: &CommitShowArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let at = match At::parse(&args.commit)? {
        commit @ At::Commit(_) => commit,
        At::Head | At::Version(_) => anyhow::bail!(
            "'{}' is a version number, not a commit id; look at it with: omnigraph snapshot --at {}",
            args.commit,
            args.commit
        ),
    };
    let root = target::open(uri).await?;
    let shown = snapshot(&root, None, &at).await?;
    let document = Document {
        commit: &shown.head,
        tables: tables(&shown),
    };
    if args.json {
        output::json(&document)?;
    } else {
        output::result(&human(&document))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn human(document: &Document<'_>) -> String {
    let commit = document.commit;
    let or_none = |text: Option<&String>| text.map_or("none", String::as_str).to_string();
    let mut lines = vec![
        format!("commit: {}", commit.graph_commit_id),
        format!("branch: {}", commit.graph_branch.as_deref().unwrap_or(MAIN)),
        format!("manifest_version: {}", commit.graph_manifest_version),
        format!("generation: {}", commit.generation),
        format!("created: {}", time(commit.created_at)),
        format!("actor: {}", or_none(commit.actor_id.as_ref())),
        format!("parent: {}", or_none(commit.parent_commit_id.as_ref())),
        format!(
            "merged parent: {}",
            or_none(commit.merged_parent_commit_id.as_ref())
        ),
    ];
    lines.extend(super::snapshot::table_lines(&document.tables));
    lines.push(String::new());
    lines.join("\n")
}
