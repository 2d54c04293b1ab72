//! `omnigraph init`: genesis of a graph.

use std::process::ExitCode;

use anyhow::Context as _;
use graph::stamp::{CURRENT, shell_word};
use serde::Serialize;
use write::genesis::init;

use crate::args::InitArgs;
use crate::{output, target};

#[derive(Serialize)]
struct Document<'a> {
    uri: &'a str,
    graph_commit_id: &'a str,
    manifest_version: u64,
    internal_schema_version: u32,
    schema_ir_hash: &'a str,
    schema_identity_domain: &'a str,
    tables: Vec<&'a str>,
}

/// Create a graph.
pub async fn run(args: &InitArgs, store: Option<&str>) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let source = std::fs::read_to_string(&args.schema)
        .with_context(|| format!("cannot read the schema {}", args.schema.display()))?;
    let root = target::open_new(uri).await?;
    target::refuse_cluster(&root).await?;
    let born = init(&root, &source, args.force)
        .await
        .with_context(|| format!("{}", args.schema.display()))?;
    let mut tables: Vec<&str> = born
        .state
        .tables
        .iter()
        .map(|t| t.table_key.as_str())
        .collect();
    tables.sort_unstable();
    let document = Document {
        uri: root.uri(),
        graph_commit_id: &born.state.head.graph_commit_id,
        manifest_version: born.state.version,
        internal_schema_version: CURRENT,
        schema_ir_hash: &born.state.contract.schema_ir_hash,
        schema_identity_domain: &born.state.contract.schema_identity_domain,
        tables,
    };
    let printed = if args.json {
        output::json(&document)
    } else {
        output::result(&format!(
            "created {}: {} tables, genesis commit {}\nnext: omnigraph load --data graph.jsonl --mode overwrite {}\n",
            root.uri(),
            document.tables.len(),
            document.graph_commit_id,
            shell_word(root.uri()),
        ))
    };
    output::done(printed, "the graph was created")?;
    Ok(ExitCode::SUCCESS)
}
