//! What a cleanup would do or did, as a value that is rendered twice (`docs/format/maintenance.md` 5.11 and 5.12).

use graph::model::TableKind;
use graph::store::MANIFEST_DIR;
use serde::Serialize;

use super::listing::Total;
use super::plan::{Plan, TreePlan};
use super::reason::Reason;
use super::rows::row;
use super::sweep::Done;

/// What a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing was changed; counts are what a run would remove.
    Preview,
    /// Counts are what was removed.
    Confirm,
}

/// The report of a cleanup. The members up to `datasets` are the documented ones; the rest are additions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Location of the graph.
    pub uri: String,
    /// `--keep`.
    pub keep_versions: Option<u32>,
    /// `--older-than` in seconds.
    pub older_than_secs: Option<u64>,
    /// One row a table path, by type key, then path.
    pub datasets: Vec<Row>,
    /// Preview or run.
    pub mode: Mode,
    /// Versions of each branch's own `__manifest`. None of them is ever removed.
    pub branches: Vec<BranchRow>,
    /// Objects and bytes of `__manifest`, its trees included.
    pub manifest: Area,
    /// Objects and bytes of `__history`. None of it is ever removed.
    pub history: Area,
    /// Every native tree: those that stay, with why, and those that go.
    pub native_trees: Vec<TreeRow>,
    /// Datasets whose trees cannot be told, so that none of them goes.
    pub undecidable_trees: Vec<Undecidable>,
    /// Interrupted branch deletions that are finished: native refs.
    pub retirements: Vec<String>,
    /// Merge-input tags that protect nothing any more and are released.
    pub released_tags: Vec<String>,
    /// Failures outside of rows.
    pub errors: Vec<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
    /// Whether a signal ended the run early.
    pub stopped: bool,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Alias of the table.
    pub type_key: String,
    /// Bytes of manifests and files; those of index files do not count.
    pub bytes_removed: u64,
    /// The same number as `manifests_removed`.
    pub old_versions_removed: u64,
    /// Why nothing, or not everything, of it was removed.
    pub error: Option<String>,
    /// Table versions, published, linear and dead staging alike.
    pub manifests_removed: u64,
    /// Staged versions that nothing names, all verdicts.
    pub unpublished_manifests: u64,
    /// Bytes of their manifests.
    pub unpublished_bytes: u64,
    /// Linear versions above the last recorded one, of the root location. They are never removed.
    pub foreign_versions: Vec<u64>,
    /// Path relative to the root; two rows can share a type key.
    pub table_path: String,
    /// Files, those of indexes too.
    pub files_removed: u64,
    /// Bytes of index files.
    pub index_bytes_removed: u64,
    /// Staged versions that nothing names, by verdict.
    pub staging: Staging,
    /// What stays, by reason, most bytes first.
    pub kept: Vec<KeptRow>,
    /// Everything below the table path.
    pub total_bytes: u64,
}

/// Unpublished staging by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Staging {
    /// Its head is current: kept.
    pub live: Manifests,
    /// Its branch moved on or is gone: removed.
    pub dead: Manifests,
    /// It cannot be told: kept.
    pub undecidable: Manifests,
}

/// Manifests and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Manifests {
    /// Number.
    pub manifests: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A part that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeptRow {
    /// Why; what stays for several reasons counts under the first.
    pub reason: Reason,
    /// Table versions.
    pub versions: u64,
    /// Files.
    pub files: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// Versions of one branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BranchRow {
    /// Logical name; null is main.
    pub branch: Option<String>,
    /// Versions the policy retains.
    pub retained: u64,
    /// Versions outside of it: still listed, their tables may be gone.
    pub would_prune: u64,
}

/// Objects and bytes of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Area {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes that stay.
    pub bytes_kept: u64,
}

/// One native tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeRow {
    /// `__manifest` or a table path.
    pub dataset: String,
    /// Native name.
    pub tree: String,
    /// Objects in it, trees nested in it aside.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether it goes, or is gone.
    pub removed: bool,
    /// Why it stays.
    pub reason: Option<Reason>,
    /// The same in words.
    pub why: Option<String>,
    /// Why it is not gone although it should.
    pub error: Option<String>,
}

/// A dataset whose trees cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undecidable {
    /// `__manifest` or a table path.
    pub dataset: String,
    /// What is in the way.
    pub why: String,
}

impl Report {
    /// The report of a plan that was not executed.
    pub fn preview(plan: &Plan) -> Self {
        Self::of(plan, None)
    }

    /// The report of a run.
    pub fn confirm(plan: &Plan, done: &Done) -> Self {
        Self::of(plan, Some(done))
    }

    fn of(plan: &Plan, done: Option<&Done>) -> Self {
        let trees: Vec<TreeRow> = plan.trees.iter().map(|t| tree_row(t, done)).collect();
        let gone: u64 = trees
            .iter()
            .filter(|t| t.removed && t.dataset == MANIFEST_DIR)
            .map(|t| t.bytes)
            .sum();
        Self {
            uri: plan.uri.clone(),
            keep_versions: plan.policy.keep(),
            older_than_secs: plan.policy.older_than_secs(),
            datasets: plan
                .tables
                .iter()
                .map(|t| row(t, done.map(|d| d.tables.get(&t.table_path))))
                .collect(),
            mode: match done {
                None => Mode::Preview,
                Some(_) => Mode::Confirm,
            },
            branches: plan
                .versions
                .iter()
                .map(|v| BranchRow {
                    branch: v.branch.clone(),
                    retained: v.retained.len() as u64,
                    would_prune: v.would_prune.len() as u64,
                })
                .collect(),
            manifest: area(plan.manifest, gone),
            history: area(plan.history, 0),
            native_trees: trees,
            undecidable_trees: plan
                .trees_kept
                .iter()
                .map(|(dataset, why)| Undecidable {
                    dataset: dataset.clone(),
                    why: why.clone(),
                })
                .collect(),
            retirements: match done {
                None => plan
                    .finish
                    .iter()
                    .map(|(native, _)| native.clone())
                    .collect(),
                Some(done) => done.retirements_finished.clone(),
            },
            released_tags: match done {
                None => plan.dead_tags.iter().map(|t| t.name.clone()).collect(),
                Some(done) => done.tags_released.clone(),
            },
            errors: done.map(|d| d.errors.clone()).unwrap_or_default(),
            notes: plan
                .notes
                .iter()
                .chain(plan.tables.iter().flat_map(|t| &t.notes))
                .cloned()
                .collect(),
            stopped: done.is_some_and(|d| d.stopped),
        }
    }

    /// Rows and trees that failed, and other failures: what `--strict` looks at.
    pub fn failures(&self) -> u64 {
        let rows = self.datasets.iter().filter(|r| r.error.is_some()).count();
        let trees = self
            .native_trees
            .iter()
            .filter(|t| t.error.is_some())
            .count();
        (rows + trees + self.errors.len()) as u64
    }

    /// Manifests, files, bytes (index bytes included) and trees removed or to be removed.
    pub fn totals(&self) -> (u64, u64, u64, u64) {
        let sum = |of: fn(&Row) -> u64| self.datasets.iter().map(of).sum();
        (
            sum(|r| r.manifests_removed),
            sum(|r| r.files_removed),
            sum(|r| r.bytes_removed + r.index_bytes_removed),
            self.native_trees.iter().filter(|t| t.removed).count() as u64,
        )
    }
}

fn area(total: Total, gone: u64) -> Area {
    Area {
        objects: total.objects,
        bytes: total.bytes,
        bytes_kept: total.bytes.saturating_sub(gone),
    }
}

fn tree_row(tree: &TreePlan, done: Option<&Done>) -> TreeRow {
    let key = super::facts::place(&tree.dataset, Some(&tree.tree.name));
    let result = done.map(|d| d.trees.get(&key));
    let going = tree.stay.is_none();
    TreeRow {
        dataset: tree.dataset.clone(),
        tree: tree.tree.name.clone(),
        objects: tree.tree.total.objects,
        bytes: tree.tree.total.bytes,
        removed: going && result.is_none_or(|r| matches!(r, Some(Ok(())))),
        reason: tree.stay.as_ref().map(|s| s.reason),
        why: tree.stay.as_ref().map(|s| s.why.clone()),
        error: result.flatten().and_then(|r| r.clone().err()),
    }
}

/// `node type 'X'`, `edge type 'X'` or `dataset '<key>'`.
pub fn subject(type_key: &str) -> String {
    match TableKind::split(type_key) {
        Ok((TableKind::Node, name)) => format!("node type '{name}'"),
        Ok((TableKind::Edge, name)) => format!("edge type '{name}'"),
        Err(_) => format!("dataset '{type_key}'"),
    }
}
