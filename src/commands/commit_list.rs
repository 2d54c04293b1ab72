//! `omnigraph commit list`: the first-parent lineage of a branch, newest first.

use std::process::ExitCode;

use graph::model::Commit;
use graph::view::commit_list;
use serde::Serialize;

use super::{logical, time};
use crate::args::CommitListArgs;
use crate::{output, target};

#[derive(Serialize)]
struct Document<'a> {
    branch: &'a str,
    commits: &'a [Commit],
}

/// List commits.
pub async fn run(args: &CommitListArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let root = target::open(uri).await?;
    let commits = commit_list(&root, logical(&args.branch)).await?;
    if args.json {
        output::json(&Document {
            branch: &args.branch,
            commits: &commits,
        })?;
    } else {
        let lines: String = commits.iter().map(human).collect();
        output::result(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn human(commit: &Commit) -> String {
    let mut line = format!(
        "{}  version {}  {}  branch {}",
        commit.graph_commit_id,
        commit.graph_manifest_version,
        time(commit.created_at),
        commit.graph_branch.as_deref().unwrap_or("main"),
    );
    if let Some(merged) = &commit.merged_parent_commit_id {
        line.push_str(&format!("  merges {merged}"));
    }
    if let Some(actor) = &commit.actor_id {
        line.push_str(&format!("  actor {actor}"));
    }
    line.push('\n');
    line
}
