//! `omnigraph branch`: list, create, delete.

use std::process::ExitCode;

use graph::model::names::{MAIN, logical_name};
use serde::Serialize;
use write::branches::{self, Listed};

use super::{logical, time};
use crate::args::{BranchCreateArgs, BranchDeleteArgs, BranchListArgs};
use crate::{consent, output, target};

#[derive(Serialize)]
struct Listing<'a> {
    branches: Vec<Branch<'a>>,
}

#[derive(Serialize)]
struct Branch<'a> {
    branch: &'a str,
    native_branch: Option<&'a str>,
    manifest_version: u64,
    head_commit: &'a str,
    published: bool,
    parent_branch: Option<&'a str>,
    parent_version: Option<u64>,
    created_at: Option<u64>,
}

/// List branches.
pub async fn list(args: &BranchListArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    let listed = branches::list(&root).await?;
    if args.json {
        output::json(&Listing {
            branches: listed.iter().map(shown).collect(),
        })?;
    } else {
        output::result(&listed.iter().map(line).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(listed: &Listed) -> Branch<'_> {
    Branch {
        branch: &listed.branch,
        native_branch: listed.native.as_deref(),
        manifest_version: listed.version,
        head_commit: &listed.head,
        published: listed.published,
        parent_branch: listed.parent.as_deref(),
        parent_version: listed.forked_at,
        created_at: listed.created_at,
    }
}

fn line(listed: &Listed) -> String {
    let mut line = format!(
        "{}  version {}  head {}",
        listed.branch, listed.version, listed.head
    );
    if let Some(at) = listed.forked_at {
        let parent = listed.parent.as_deref().map_or(MAIN, logical_name);
        line.push_str(&format!("  from {parent} version {at}"));
    }
    if let Some(seconds) = listed.created_at.and_then(|s| i64::try_from(s).ok()) {
        line.push_str(&format!(
            "  created {}",
            time(seconds.saturating_mul(1_000_000))
        ));
    }
    if !listed.published {
        line.push_str("  no commit of its own");
    }
    line.push('\n');
    line
}

#[derive(Serialize)]
struct Created<'a> {
    branch: &'a str,
    native_branch: &'a str,
    parent_branch: Option<&'a str>,
    manifest_version: u64,
    head_commit: &'a str,
}

/// Create a branch.
pub async fn create(args: &BranchCreateArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let root = target::open(target::given(args.uri.as_deref(), store)).await?;
    let created = branches::create(&root, &args.name, logical(&args.from)).await?;
    let printed = if args.json {
        output::json(&Created {
            branch: &created.branch,
            native_branch: &created.native,
            parent_branch: created.parent.as_deref(),
            manifest_version: created.version,
            head_commit: &created.head,
        })
    } else {
        output::result(&format!(
            "created branch {} from {} at version {}, head {}\n",
            created.branch, args.from, created.version, created.head
        ))
    };
    output::done(printed, "the branch was created")?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Deleted<'a> {
    branch: &'a str,
    native_branch: &'a str,
    head_commit: Option<&'a str>,
}

/// Delete a branch.
pub async fn delete(args: &BranchDeleteArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let root = target::open(uri).await?;
    let what = format!("deleting branch '{}' of", args.name);
    consent::require(uri, &what, args.yes, args.json)?;
    let deleted = branches::delete(&root, &args.name).await?;
    let printed = if args.json {
        output::json(&Deleted {
            branch: &deleted.branch,
            native_branch: &deleted.native,
            head_commit: deleted.head.as_deref(),
        })
    } else {
        let head = match &deleted.head {
            Some(head) => format!("its head {head} stays in the history"),
            None => "an interrupted deletion was finished".to_string(),
        };
        output::result(&format!("deleted branch {}: {head}\n", deleted.branch))
    };
    output::done(printed, "the branch was deleted")?;
    Ok(ExitCode::SUCCESS)
}
