//! `omnigraph load`: JSONL into one graph commit.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use write::load::{Input, LoadOptions, Loaded, Mode, load};
use write::publish::{RELEASE_VARIABLE, budget};

use super::logical;
use crate::args::{LoadArgs, LoadMode};
use crate::progress::Rows;
use crate::{consent, output, target};

/// Load a file.
pub async fn run(args: &LoadArgs, store: Option<&str>, quiet: bool) -> anyhow::Result<ExitCode> {
    let uri = target::given(args.uri.as_deref(), store);
    let input = match args.data.as_str() {
        "-" => Input::Stdin,
        path => Input::File(path.into()),
    };
    let setting = std::env::var(RELEASE_VARIABLE).ok();
    let budget = budget(setting.as_deref())?;
    let root = target::open(uri).await?;
    if args.mode == LoadMode::Overwrite {
        consent::require(uri, "replacing rows of", args.yes, args.json)?;
    }
    let rows = Arc::new(Rows::new(quiet || args.json, "loading"));
    let shown = rows.clone();
    let options = LoadOptions {
        branch: logical(&args.branch).map(str::to_string),
        mode: match args.mode {
            LoadMode::Overwrite => Mode::Overwrite,
            LoadMode::Append => Mode::Append,
            LoadMode::Merge => Mode::Merge,
        },
        actor: args.actor.clone(),
        budget,
        external_blobs: args.external_blobs,
        on_rows: Arc::new(move |count| shown.show(count)),
    };
    let loaded = load(&root, &input, &options).await;
    rows.finish();
    let loaded = match loaded {
        Err(e) if e.is_of_input() => return Err(e).with_context(|| input.name()),
        loaded => loaded?,
    };
    let printed = if args.json {
        output::json(&loaded)
    } else {
        output::result(&human(&loaded))
    };
    let commit = loaded.graph_commit_id.as_deref().unwrap_or("none");
    output::done(printed, &format!("the load landed (commit {commit})"))?;
    Ok(ExitCode::SUCCESS)
}

fn human(loaded: &Loaded) -> String {
    let Some(commit) = &loaded.graph_commit_id else {
        return format!(
            "nothing to load: the input holds no record; branch {} stays at version {}\n",
            loaded.branch, loaded.manifest_version
        );
    };
    let width = loaded
        .tables
        .iter()
        .map(|t| t.table_key.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = format!(
        "loaded into {}: commit {commit}, version {}\n",
        loaded.branch, loaded.manifest_version
    );
    for table in &loaded.tables {
        text.push_str(&format!(
            "{:width$}  loaded {}  replaced {}  rows now {}\n",
            table.table_key, table.rows_loaded, table.rows_replaced, table.row_count
        ));
    }
    text
}
