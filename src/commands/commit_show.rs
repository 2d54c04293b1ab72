//! `omnigraph commit show`: one commit, the tables of its state, and what it changed.

use std::process::ExitCode;

use graph::model::Commit;
use graph::model::names::MAIN;
use graph::view::{At, snapshot};
use serde::Serialize;

use super::changes::{Change, between};
use super::snapshot::{Table, tables};
use super::time;
use crate::args::CommitShowArgs;
use crate::{output, target};

#[derive(Serialize)]
struct Document<'a> {
    commit: &'a Commit,
    tables: Vec<Table<'a>>,
    /// Against the first parent; null without one, and when it is held nowhere.
    changes: Option<Vec<Change>>,
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
    let changes = match &shown.head.parent_commit_id {
        None => None,
        Some(parent) => match snapshot(&root, None, &At::Commit(parent.clone())).await {
            Ok(before) => Some(between(&before.tables, &shown.tables)),
            // A commit from before an upgrade may name a parent that its own release had lost.
            Err(e) if e.is_not_found() => None,
            Err(e) => return Err(e.into()),
        },
    };
    let document = Document {
        commit: &shown.head,
        tables: tables(&shown),
        changes,
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
    match (&document.changes, &commit.parent_commit_id) {
        (Some(changes), _) if changes.is_empty() => lines.push("changes: none".into()),
        (Some(changes), _) => {
            lines.push("changes:".into());
            lines.extend(super::changes::lines(changes));
        }
        (None, Some(_)) => lines.push("changes: unknown, its parent is held nowhere".into()),
        (None, None) => lines.push("changes: it has no parent".into()),
    }
    lines.push(String::new());
    lines.join("\n")
}
