//! Arguments. Help texts are for a person at 3 a.m.: what it does, what it changes, the next command.

use clap::{Args, Parser, Subcommand};

/// Offline maintenance and storage-upgrade toolkit for OmniGraph graphs.
#[derive(Debug, Parser)]
#[command(
    name = "omnigraph",
    version,
    disable_help_subcommand = true,
    after_help = "Not built yet: branch merge.\n\
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
    /// Compact the tables of main and bring their indexes up to date. Deletes nothing.
    ///
    /// All tables go into one graph commit; when nothing is to do there is none. Run it with --check to see the plan. A
    /// write that lands meanwhile makes it fail with the graph unchanged: run it again. It can be killed at any
    /// moment; what it had staged is removed by cleanup.
    Optimize(OptimizeArgs),
    /// Build the indexes that the schema declares and the tables of a branch lack.
    BuildIndexes(IndexArgs),
    /// Rebuild every full-text index of a branch with the default English analyzer.
    ///
    /// Full-text indexes are not brought up to date by optimize: it names those that lag.
    RebuildFullTextIndexes(IndexArgs),
    /// Report table versions that no write of the graph made, and what they are.
    ///
    /// On a graph of stamp 14 it changes nothing: they harm no reader and no writer and are kept; only an export and a load
    /// into a new graph leaves them behind. On a graph of stamp 6, 8 or 9, --confirm publishes those that are verified
    /// maintenance, and --force --confirm the rest, before an upgrade makes them foreign for ever.
    Repair(RepairArgs),
    /// Remove table versions, staging and trees that nothing retained needs.
    ///
    /// Without --confirm it reads everything, says what would go and what stays and why, and changes nothing. With
    /// --confirm it makes the same plan, checks that the graph did not change meanwhile, and executes it. Heads,
    /// merge bases and what tags name always stay, and so does what cannot be decided. No commit and nothing under
    /// __history is removed; a commit outside of the policy stays listed, but its rows may be gone. It can be killed
    /// at any moment and run again.
    Cleanup(CleanupArgs),
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
    /// Show one commit, wherever in the graph it was written, the tables of its state and what it did to those of its
    /// parent. Changes nothing.
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
    /// Accept blobs that are URIs of objects outside of the graph: append and merge copy their bytes (at most 32 MiB a
    /// load), overwrite keeps the references.
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

/// Arguments of `optimize`.
#[derive(Debug, Args)]
pub struct OptimizeArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Only read: print fragments, bytes to rewrite and indexes to build.
    #[arg(long)]
    pub check: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `build-indexes` and `rebuild-full-text-indexes`.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Branch whose tables get the indexes.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub branch: String,
    /// Author of the commit.
    #[arg(long = "as", value_name = "ACTOR")]
    pub actor: Option<String>,
    /// Only read: print the indexes to build.
    #[arg(long)]
    pub check: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `repair`.
#[derive(Debug, Args)]
pub struct RepairArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Stamps 6, 8 and 9: publish the versions that are verified maintenance.
    #[arg(long)]
    pub confirm: bool,
    /// With --confirm: publish the others too.
    #[arg(long, requires = "confirm")]
    pub force: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cleanup`.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    /// Root of the graph: a folder, or s3://, gs://, az://.
    pub uri: Option<String>,
    /// Keep the newest N versions that each branch published itself, and the one it was created at; 0 counts as 1.
    #[arg(long, value_name = "N")]
    pub keep: Option<u32>,
    /// Keep what is younger: a whole number and one of s, m, h, d, w (90, 24h, 7d). With --keep, both are kept.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub older_than: Option<String>,
    /// Execute the plan.
    #[arg(long)]
    pub confirm: bool,
    /// Exit 1 when any table or tree could not be cleaned.
    #[arg(long)]
    pub strict: bool,
    /// Delete on a remote store without asking.
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON document.
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
