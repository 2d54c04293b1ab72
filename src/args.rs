//! Arguments. Help texts are for a person at 3 a.m.: what it does, what it changes, the next command.

use clap::{Args, Parser, Subcommand};

/// Offline maintenance and storage-upgrade toolkit for OmniGraph graphs.
#[derive(Debug, Parser)]
#[command(
    name = "omnigraph",
    version,
    disable_help_subcommand = true,
    after_help = "Not built yet: init, load, export, branch, optimize, repair, cleanup, recover.\n\
                  Exit codes: 0 success, 1 refused or failed, 2 usage."
)]
pub struct Cli {
    /// The graph, in place of the URI argument.
    #[arg(long, global = true, value_name = "URI")]
    pub store: Option<String>,
    /// No progress and no echo on stderr.
    #[arg(long, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert a graph of stamp 8 or 9 (OmniGraph 0.11.x) or 13 to stamp 14, in place.
    ///
    /// Run it with --check first: that reads everything, changes nothing and says what will happen. Take the
    /// graph offline and back up the whole root before running it without --check. It can be killed at
    /// any moment and run again.
    Upgrade(UpgradeArgs),
    /// Show the tables of a branch, at its head or at a commit or version. Changes nothing.
    Snapshot(SnapshotArgs),
    /// Read everything a graph of stamp 14 holds and report what is damaged. Changes nothing.
    ///
    /// Without --deep it reads the catalog, the history and the manifests of the tables that branch heads use. With
    /// --deep it also opens every table version that history names and reads all table data once. Exit code 1
    /// when anything is found.
    Verify(VerifyArgs),
    /// Commits of a graph.
    #[command(subcommand)]
    Commit(CommitCommand),
    /// Print the version of this binary and the stamp it serves.
    Version,
}

/// Commands about commits.
#[derive(Debug, Subcommand)]
pub enum CommitCommand {
    /// List the commits of a branch, newest first, down to genesis. Changes nothing.
    List(CommitListArgs),
}

/// Arguments of `upgrade`.
#[derive(Debug, Args)]
pub struct UpgradeArgs {
    /// Root of the graph: a folder, or s3://, gs://, az:// (direct storage only).
    pub uri: Option<String>,
    /// Only read: report what an upgrade would do.
    #[arg(long)]
    pub check: bool,
    /// Stamp to convert to; 14 is the only one.
    #[arg(long, value_name = "N")]
    pub to_format: Option<u32>,
    /// Print the report as one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Branch to read.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub branch: String,
    /// A commit id, or a version number of the branch.
    #[arg(long, value_name = "COMMIT|VERSION")]
    pub at: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Also open every table version that history names, and read all table data once.
    #[arg(long)]
    pub deep: bool,
    /// Print the report as one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `commit list`.
#[derive(Debug, Args)]
pub struct CommitListArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Branch to read.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub branch: String,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}
