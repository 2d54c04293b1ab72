//! Doing what a plan says (`docs/format/maintenance.md` 5.2 steps 6 to 8 and 5.9).
//!
//! Files go before the manifests that name them, links before the tip that makes them recognizable, the archive of a
//! retired tree last; a step begins once the one before is done, and within a step objects go in no order, a thousand at
//! once. A stop between any two deletes leaves what the next run lists, judges and finishes; nothing that
//! is removed is needed by what stays.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use graph::refs::retire;
use graph::store::Root;
use graph::{Error, Result};

use super::facts::place;
use super::listing::manifest_name;
use super::location_plan::File;
use super::plan::{Plan, validate};
use super::trace::{TablePlan, Traced};
use super::uproot;
use crate::Stop;

/// Objects deleted between two looks at whether a stop was asked for: what one request of an object store takes.
pub const DELETES_AT_ONCE: usize = 1_000;

/// What was removed of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Manifests deleted.
    pub manifests: u64,
    /// Files deleted, those of indexes too.
    pub files: u64,
    /// Bytes of both, those of indexes aside.
    pub bytes: u64,
    /// Bytes of index files.
    pub index_bytes: u64,
    /// Why it ended early.
    pub error: Option<String>,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// By table path.
    pub tables: BTreeMap<String, Swept>,
    /// Merge-input tags that were released.
    pub tags_released: Vec<String>,
    /// Retirements that were finished.
    pub retirements_finished: Vec<String>,
    /// Trees that are gone, as `dataset/tree/name`, or why one is not.
    pub trees: BTreeMap<String, std::result::Result<(), String>>,
    /// Failures outside of tables and trees.
    pub errors: Vec<String>,
    /// Objects deleted in all.
    pub deletes: u64,
    /// Whether it was asked to stop before the end.
    pub stopped: bool,
}

/// Effects of a run: each is counted, and none begins after a stop was asked for.
#[derive(Debug)]
pub struct Effects<'a> {
    root: &'a Root,
    stop: &'a Stop,
    deletes: AtomicU64,
}

impl Effects<'_> {
    /// The root.
    pub fn root(&self) -> &Root {
        self.root
    }

    /// Fails once a stop was asked for.
    pub fn check(&self) -> Result<()> {
        self.stop
            .check(|| "the rest is left for the next run".into())
    }

    /// Delete one object; an absent one is success.
    pub async fn delete(&self, key: &str) -> Result<()> {
        self.check()?;
        self.root.delete(key).await?;
        self.deletes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Delete several, in no order. `gone` is told the index of each one that was there; after a failure no further
    /// [`DELETES_AT_ONCE`] begin.
    pub async fn delete_each(&self, keys: &[String], mut gone: impl FnMut(usize)) -> Result<()> {
        for (chunk, first) in keys
            .chunks(DELETES_AT_ONCE)
            .zip((0..).step_by(DELETES_AT_ONCE))
        {
            self.check()?;
            let each = |at: usize| {
                self.deletes.fetch_add(1, Ordering::Relaxed);
                gone(first + at);
            };
            self.root.delete_many(chunk, each).await?;
        }
        Ok(())
    }

    /// Delete several, in no order.
    pub async fn delete_all(&self, keys: &[String]) -> Result<()> {
        self.delete_each(keys, |_| {}).await
    }
}

/// Validate a plan again and execute it. A graph that changed since is [`Error::Conflict`] with nothing deleted;
/// failures after that are collected in what is returned.
pub async fn execute(root: &Root, plan: &Plan, concurrency: usize, stop: &Stop) -> Result<Done> {
    stop.check(|| "nothing was deleted".into())?;
    validate(root, plan).await?;
    let effects = Effects {
        root,
        stop,
        deletes: AtomicU64::new(0),
    };
    let mut done = Done::default();
    finish_retirements(&effects, plan, &mut done).await;
    let swept: Vec<(String, Swept)> = futures::stream::iter(&plan.tables)
        .map(|table| async {
            let mut swept = Swept::default();
            if let Err(e) = sweep_table(&effects, table, &mut swept).await {
                swept.error = Some(format!("{} ({}): {e}", table.type_key, table.table_path));
            }
            (table.table_path.clone(), swept)
        })
        .buffer_unordered(concurrency.max(1))
        .collect()
        .await;
    done.tables = swept.into_iter().collect();
    for tag in &plan.dead_tags {
        match effects.delete(&tag.key).await {
            Ok(()) => done.tags_released.push(tag.name.clone()),
            Err(e) => done.errors.push(format!("tag '{}': {e}", tag.name)),
        }
    }
    let failed = done.tables.values().any(|s| s.error.is_some());
    uproot::trees(&effects, plan, failed, &mut done).await;
    done.deletes = effects.deletes.load(Ordering::Relaxed);
    done.stopped = stop.requested().is_some();
    Ok(done)
}

/// Write the missing archives of marked refs and unlink the refs, by name.
async fn finish_retirements(effects: &Effects<'_>, plan: &Plan, done: &mut Done) {
    for (native, identifier) in &plan.finish {
        let before = |_| async { effects.check() };
        match Box::pin(retire(effects.root, native, identifier, before)).await {
            Ok(()) => done.retirements_finished.push(native.clone()),
            Err(e) => done
                .errors
                .push(format!("finishing the deletion of branch '{native}': {e}")),
        }
    }
}

async fn sweep_table(effects: &Effects<'_>, table: &TablePlan, swept: &mut Swept) -> Result<()> {
    if table.error.is_some() {
        return Ok(());
    }
    for traced in &table.locations {
        let place = place(&table.table_path, traced.native.as_deref());
        if !traced.plan.removes_something() {
            continue;
        }
        first_root_opens(effects, &place, traced).await?;
        sweep_location(effects, &place, traced, swept).await?;
    }
    Ok(())
}

async fn first_root_opens(effects: &Effects<'_>, place: &str, traced: &Traced) -> Result<()> {
    let Some(version) = traced.plan.roots.keys().next() else {
        return Err(Error::internal(format!(
            "{place} has no version that stays; nothing of it may be removed"
        )));
    };
    let key = format!("{place}/_versions/{}", manifest_name(*version));
    let native = traced.native.as_deref();
    effects
        .root
        .read_manifest_parts(place, &key, native, *version)
        .await
        .map(|_| ())
        .map_err(|e| e.within("a version that stays does not open; nothing was removed there"))
}

async fn sweep_location(
    effects: &Effects<'_>,
    place: &str,
    traced: &Traced,
    swept: &mut Swept,
) -> Result<()> {
    let plan = &traced.plan;
    files(effects, place, &plan.sweep, swept).await?;
    let longest = plan.chains.iter().map(Vec::len).max().unwrap_or(0);
    for at in 0..longest {
        let links = plan.chains.iter().filter_map(|chain| chain.get(at));
        let links: Vec<u64> = links.copied().collect();
        manifests(effects, place, &links, traced, swept).await?;
    }
    manifests(effects, place, &plan.linear, traced, swept).await?;
    files(effects, place, &plan.dead_files, swept).await?;
    manifests(effects, place, &plan.dead, traced, swept).await?;
    files(effects, place, &plan.orphans, swept).await
}

async fn files(
    effects: &Effects<'_>,
    place: &str,
    files: &[File],
    swept: &mut Swept,
) -> Result<()> {
    let key = |file: &File| format!("{place}/{}", file.object.path);
    let keys: Vec<String> = files.iter().map(key).collect();
    let gone = |at: usize| {
        let Some(file) = files.get(at) else { return };
        swept.files += 1;
        *match file.counted {
            true => &mut swept.bytes,
            false => &mut swept.index_bytes,
        } += file.object.size;
    };
    effects.delete_each(&keys, gone).await
}

async fn manifests(
    effects: &Effects<'_>,
    place: &str,
    versions: &[u64],
    traced: &Traced,
    swept: &mut Swept,
) -> Result<()> {
    let key = |version: &u64| format!("{place}/_versions/{}", manifest_name(*version));
    let keys: Vec<String> = versions.iter().map(key).collect();
    let gone = |at: usize| {
        let Some(version) = versions.get(at) else {
            return;
        };
        swept.manifests += 1;
        swept.bytes += traced.sizes.get(version).copied().unwrap_or_default();
    };
    effects.delete_each(&keys, gone).await
}
