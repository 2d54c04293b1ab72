//! Arguments. Help texts are for a person at 3 a.m.: what it does, what it changes, the next command.

use clap::{Args, Parser, Subcommand};

/// Offline maintenance and storage-upgrade toolkit for OmniGraph graphs.
#[derive(Debug, Parser)]
#[command(
    name = "omnigraph",
    version,
    disable_help_subcommand = true,
    after_help = "Not built yet: optimize, repair, cleanup, branch merge.\n\
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
    /// Finish the interrupted writes of a graph of stamp 6, 8 or 9, as the release that wrote it would.
    ///
    /// Without --confirm it only reads and says, for each recovery sidecar, what is there and what would be done. Take
    /// the graph offline and back up the whole root before running it with --confirm. It can be killed at any moment
    /// and run again. Exit code 1 when a sidecar stays.
    Recover(RecoverArgs),
    /// Create a graph from a schema, at an empty root.
    ///
    /// A root that holds anything of a graph is refused. What an interrupted init leaves is named by the next one.
    Init(InitArgs),
    /// Load JSONL into a branch: all of it in one graph commit, or nothing.
    ///
    /// overwrite replaces every row of each type in the input. append adds rows and refuses an id that exists. merge
    /// adds rows and replaces those with the same id. append and merge take at most 8192 rows and 32 MiB of one type.
    /// Every record is checked against the schema, and every edge against its nodes, before anything is written.
    Load(LoadArgs),
    /// Print the rows of a branch as JSONL, in a fixed order. Changes nothing.
    Export(ExportArgs),
    /// Branches of a graph.
    #[command(subcommand)]
    Branch(BranchCommand),
    /// The schema of a graph.
    #[command(subcommand)]
    Schema(SchemaCommand),
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
    /// Show one commit, wherever in the graph it was written, and the tables of its state. Changes nothing.
    Show(CommitShowArgs),
}

/// Commands about branches.
#[derive(Debug, Subcommand)]
pub enum BranchCommand {
    /// List the live branches. Changes nothing.
    List(BranchListArgs),
    /// Create a branch at the newest version of another one.
    Create(BranchCreateArgs),
    /// Delete a branch. Its commits stay in the history; its name becomes free.
    Delete(BranchDeleteArgs),
}

/// Commands about the schema.
#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Print the accepted schema source, byte for byte. Changes nothing.
    Show(SchemaShowArgs),
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Root of the new graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// The schema, a .pg file.
    #[arg(long, value_name = "FILE")]
    pub schema: std::path::PathBuf,
    /// Pass over leftovers of another graph that hold no data (never over data).
    #[arg(long)]
    pub force: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// What `load` does with rows that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LoadMode {
    /// Replace every row of each type in the input.
    Overwrite,
    /// Add rows; an id that exists is refused.
    Append,
    /// Add rows and replace those with the same id.
    Merge,
}

/// Arguments of `load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// The records, a JSONL file, or - for standard input.
    #[arg(long, value_name = "FILE|-")]
    pub data: String,
    /// What happens to rows that exist.
    #[arg(long, value_enum)]
    pub mode: LoadMode,
    /// Branch to load into.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub branch: String,
    /// Author of the commit.
    #[arg(long = "as", value_name = "ACTOR")]
    pub actor: Option<String>,
    /// With --mode overwrite: keep blob URIs as references to objects outside of the graph.
    #[arg(long)]
    pub external_blobs: bool,
    /// Overwrite on a remote store without asking.
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Branch to read.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub branch: String,
    /// A commit id, or a version number of the branch.
    #[arg(long, value_name = "COMMIT|VERSION")]
    pub at: Option<String>,
}

/// Arguments of `branch list`.
#[derive(Debug, Args)]
pub struct BranchListArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `branch create`.
#[derive(Debug, Args)]
pub struct BranchCreateArgs {
    /// Name of the new branch.
    pub name: String,
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Branch to start from.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub from: String,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `branch delete`.
#[derive(Debug, Args)]
pub struct BranchDeleteArgs {
    /// Name of the branch.
    pub name: String,
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Delete on a remote store without asking.
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `schema show`.
#[derive(Debug, Args)]
pub struct SchemaShowArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Branch to read.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub branch: String,
    /// A commit id, or a version number of the branch.
    #[arg(long, value_name = "COMMIT|VERSION")]
    pub at: Option<String>,
}

/// Arguments of `commit show`.
#[derive(Debug, Args)]
pub struct CommitShowArgs {
    /// Id of the commit.
    pub commit: String,
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
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

/// Arguments of `recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// Root of the graph: a folder, or s3://, gs://, az:// (direct storage only).
    pub uri: Option<String>,
    /// Only read: report what would be done. The default.
    #[arg(long, conflicts_with = "confirm")]
    pub check: bool,
    /// Settle every sidecar, oldest first.
    #[arg(long)]
    pub confirm: bool,
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
