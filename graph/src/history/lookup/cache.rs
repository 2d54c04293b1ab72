//! The bounded cache of immutable objects behind a reader handle (`docs/format/history.md` 9.2). Absence and
//! listings are never kept.

use std::collections::HashMap;
use std::sync::Arc;

use crate::history::legacy::{IdShard, WriterShard};
use crate::model::measure::{commit_bytes, record_bytes};
use crate::model::{Commit, HistoryRecord};

/// Bytes one handle keeps.
pub const CACHE_BYTES: u64 = 16_777_216;

/// What is kept of one object.
#[derive(Debug, Clone)]
pub(super) enum Held {
    /// The lineage of an extent.
    Lineage(Arc<Vec<Commit>>),
    /// The records of an extent; they serve lineage reads too.
    Records(Arc<Vec<HistoryRecord>>),
    /// An id shard.
    Ids(Arc<IdShard>),
    /// A writer shard.
    Writers(Arc<WriterShard>),
}

impl Held {
    fn weight(&self) -> u64 {
        match self {
            Self::Lineage(commits) => commits.iter().map(commit_bytes).sum(),
            Self::Records(records) => records.iter().map(record_bytes).sum(),
            Self::Ids(shard) => shard.entries().len() as u64 * 24,
            Self::Writers(shard) => shard.entries().len() as u64 * 256,
        }
    }
}

#[derive(Debug)]
struct Entry {
    held: Held,
    weight: u64,
    used: u64,
}

/// Least recently used objects leave first.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: HashMap<String, Entry>,
    weight: u64,
    clock: u64,
}

impl Cache {
    pub(super) fn get(&mut self, key: &str) -> Option<Held> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(entry.held.clone())
    }

    pub(super) fn insert(&mut self, key: String, held: Held) {
        let weight = held.weight();
        if weight > CACHE_BYTES {
            return;
        }
        self.remove(&key);
        while self.weight + weight > CACHE_BYTES {
            let oldest = self.entries.iter().min_by_key(|(_, e)| e.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.weight += weight;
        let used = self.clock;
        self.entries.insert(key, Entry { held, weight, used });
    }

    fn remove(&mut self, key: &str) {
        if let Some(gone) = self.entries.remove(key) {
            self.weight = self.weight.saturating_sub(gone.weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::testing::example_records;

    #[test]
    fn the_cache_stays_in_its_bound() {
        let mut cache = Cache::default();
        let mut record = example_records().remove(0);
        record.commit.actor_id = Some("x".repeat(1 << 20));
        let held = Held::Records(Arc::new(vec![record.clone(); 3]));
        for n in 0..20 {
            cache.insert(format!("k{n}"), held.clone());
            assert!(cache.weight <= CACHE_BYTES);
        }
        assert!(cache.get("k19").is_some() && cache.get("k0").is_none());
        cache.insert("big".into(), Held::Records(Arc::new(vec![record; 17])));
        assert!(cache.get("big").is_none() && cache.get("k19").is_some());
    }
}
