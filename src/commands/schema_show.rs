//! `omnigraph schema show`: the accepted schema source of one state.

use std::process::ExitCode;

use graph::history::schema_archive::read_commit_contract;
use graph::view::{At, snapshot};

use super::logical;
use crate::args::SchemaShowArgs;
use crate::{output, target};

/// Print a schema source.
pub async fn run(args: &SchemaShowArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let at = args.at.as_deref().map_or(Ok(At::Head), At::parse)?;
    let root = target::open(uri).await?;
    let shown = snapshot(&root, logical(&args.branch), &at).await?;
    let id = &shown.head.graph_commit_id;
    let contract = read_commit_contract(&root, &shown.head)
        .await?
        .ok_or_else(|| anyhow::anyhow!("commit {id} names no schema contract"))?;
    output::result(&contract.source)?;
    Ok(ExitCode::SUCCESS)
}
