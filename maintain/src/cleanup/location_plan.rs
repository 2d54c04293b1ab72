//! The plan of one location, and what it is made from, as plain data (`docs/format/maintenance.md` 5.5 to 5.7).

use std::collections::{BTreeMap, BTreeSet};

use super::listing::{Object, Total};
use super::reason::Reason;
use super::staging::Verdict;

/// Everything live branches ever registered at a location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registered {
    /// Published dataset versions of all rows.
    pub published: BTreeSet<u64>,
    /// Staged versions of all rows.
    pub staged: BTreeSet<u64>,
    /// The greatest recorded last linear version.
    pub last_linear: Option<u64>,
    /// Published dataset versions that commits from before an upgrade pin. Linear versions among them are never removed
    /// (`docs/format/upgrade-protocol.md` 11, behaviour 29).
    pub legacy: BTreeSet<u64>,
}

/// What a root names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A pin: its staged version, its published version, its last linear version.
    Pin(Option<u64>, u64, Option<u64>),
    /// Exactly this Lance version.
    Version(u64),
}

/// Why a target must stay: the reason, and who names it.
pub type Wanted = BTreeMap<Target, BTreeMap<Reason, String>>;

/// A kept part of a location.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Table versions.
    pub versions: u64,
    /// Files, manifests not counted.
    pub files: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// A file to remove: an object and whether its bytes count (those of an index do not).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The object.
    pub object: Object,
    /// What keeps it when its table's files are spared after all.
    pub counted: bool,
}

/// The plan of one location.
#[derive(Debug, Clone, Default)]
pub struct LocationPlan {
    /// Roots by Lance version. A location without any is not touched.
    pub roots: BTreeMap<u64, BTreeSet<Reason>>,
    /// Published detached versions to remove: chains, links before tips.
    pub chains: Vec<Vec<u64>>,
    /// Linear versions to remove.
    pub linear: Vec<u64>,
    /// Dead staging to remove.
    pub dead: Vec<u64>,
    /// Unpublished staging by verdict: number and manifest bytes.
    pub staging: BTreeMap<Verdict, Total>,
    /// Linear versions above the last one.
    pub foreign: Vec<u64>,
    /// Linear versions that stay because commits from before an upgrade pin them.
    pub legacy: Vec<u64>,
    /// Files only swept manifests use.
    pub sweep: Vec<File>,
    /// Files only dead staging uses.
    pub dead_files: Vec<File>,
    /// Files that nothing names.
    pub orphans: Vec<File>,
    /// What stays, by reason.
    pub kept: BTreeMap<Reason, Kept>,
    /// Base paths that what stays reads through.
    pub origins: BTreeSet<String>,
    /// Roots that are not there or cannot be read; any makes the table untouchable.
    pub errors: Vec<String>,
    /// Why no file of the location goes although no root is missing.
    pub frozen: Option<String>,
}

impl LocationPlan {
    /// Whether anything of the location goes.
    pub fn removes_something(&self) -> bool {
        !(self.chains.is_empty()
            && self.linear.is_empty()
            && self.dead.is_empty()
            && self.sweep.is_empty()
            && self.dead_files.is_empty()
            && self.orphans.is_empty())
    }

    /// Keep every file after all, for `reason`.
    pub fn spare_files(&mut self, reason: Reason, mut spared: impl FnMut(&str) -> bool) {
        for set in [&mut self.sweep, &mut self.dead_files, &mut self.orphans] {
            let kept: &mut BTreeMap<Reason, Kept> = &mut self.kept;
            set.retain(|file| {
                let keep = spared(&file.object.path);
                if keep {
                    let kept = kept.entry(reason).or_default();
                    kept.files += 1;
                    kept.bytes = kept.bytes.saturating_add(file.object.size);
                }
                !keep
            });
        }
    }

    /// Keep everything after all, manifests too.
    pub fn spare_all(&mut self, sizes: &BTreeMap<u64, u64>, reason: Reason) {
        self.spare_files(reason, |_| true);
        let versions: Vec<u64> = std::mem::take(&mut self.chains)
            .into_iter()
            .flatten()
            .chain(std::mem::take(&mut self.linear))
            .chain(std::mem::take(&mut self.dead))
            .collect();
        for version in versions {
            let kept = self.kept.entry(reason).or_default();
            kept.versions += 1;
            let size = sizes.get(&version).copied().unwrap_or_default();
            kept.bytes = kept.bytes.saturating_add(size);
        }
    }

    /// Whether a tree that holds the location must stay.
    pub fn holds_something(&self) -> bool {
        !self.roots.is_empty()
            || !self.foreign.is_empty()
            || !self.legacy.is_empty()
            || self.staging.keys().any(|v| *v != Verdict::Dead)
            || !self.errors.is_empty()
            || self.frozen.is_some()
    }
}
