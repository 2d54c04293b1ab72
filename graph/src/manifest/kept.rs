//! States that this process read or published last, so that a writer that publishes again and again does not read its
//! own versions back. Reads and writes nothing.
//!
//! A state is known by the data files of its version. Their names are drawn by chance and nothing is ever written twice
//! under one, so another graph, a branch made anew or a version of another writer never passes for what is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::BranchState;
use crate::store::ManifestVersion;

/// States kept of a root, whatever their branches. Each is a few hundred kilobytes as a rule, a few megabytes at most.
const MOST: usize = 4;

/// What a version holds, by the files that hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    version: u64,
    native: Option<String>,
    files: Vec<String>,
}

impl Key {
    /// `None` when the rows are not those of the data files alone.
    fn of(version: &ManifestVersion) -> Option<Self> {
        let mut files = Vec::new();
        for fragment in version.dataset.manifest().fragments.iter() {
            if fragment.deletion_file.is_some() || !fragment.overlays.is_empty() {
                return None;
            }
            for file in &fragment.files {
                if file.base_id.is_some() {
                    return None;
                }
                files.push(file.path.clone());
            }
        }
        Some(Self {
            version: version.version,
            native: version.native.clone(),
            files,
        })
    }
}

/// The states of one root, the latest first. All of them hold their contract texts.
#[derive(Debug, Default)]
pub struct KeptStates {
    kept: Mutex<VecDeque<(Key, Arc<BranchState>)>>,
}

impl KeptStates {
    /// The state of `version`, when it is kept.
    pub fn find(&self, version: &ManifestVersion) -> Option<Arc<BranchState>> {
        let key = Key::of(version)?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(held, _)| *held == key);
        found.map(|(_, state)| state.clone())
    }

    /// Keep `state`, which is all that `version` holds, in place of the older states of its branch.
    pub fn keep(&self, version: &ManifestVersion, state: &Arc<BranchState>) {
        let Some(key) = Key::of(version).filter(|_| state.contract_texts.is_some()) else {
            return;
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(held, _)| held.native != key.native);
        kept.push_front((key, state.clone()));
        kept.truncate(MOST);
    }
}
