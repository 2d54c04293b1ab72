//! Everything under `__history/`: which objects stand there, and what their rows say
//! (`docs/format/history.md` 2, 3 and 9.4).

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::Error;
use graph::history::legacy::{Directory, WriterEntry, read_directory};
use graph::history::path::{
    ExtentKey, HISTORY_DIR, Listed, Listing, ObjectKey, is_schema_archive_or_temporary,
};

use crate::finding::Code;
use crate::ledger::{Ledger, Origin};
use crate::legacy;
use crate::report::Checked;
use crate::run::Run;
use crate::succession::read_extent;

/// Extents decoded at once: each may take 64 MiB and more.
const EXTENTS_AT_ONCE: usize = 2;

/// What stands under `__history/`.
#[derive(Debug, Default)]
pub(crate) struct Area {
    /// Names of the schema archives.
    pub(crate) archives: BTreeSet<[u8; 32]>,
    /// The legacy directory, when it can be read.
    pub(crate) directory: Option<Directory>,
    /// Whether a directory object exists, readable or not.
    pub(crate) has_directory: bool,
    /// The legacy writers.
    pub(crate) writers: Vec<WriterEntry>,
    pub(crate) extents: BTreeSet<ExtentKey>,
    pub(crate) locator: BTreeSet<ObjectKey>,
}

/// Read every object under `__history/` but the schema archives.
pub(crate) async fn check(run: &Run<'_>, ledger: &mut Ledger, checked: &mut Checked) -> Area {
    let mut area = list(run).await;
    let counts = &mut checked.history;
    for extent in &area.extents {
        match extent {
            ExtentKey::Whole(_) | ExtentKey::Range { .. } => counts.block_extents += 1,
            ExtentKey::Singleton(_) => counts.singletons += 1,
            ExtentKey::LegacyData(_) => counts.legacy_data_files += 1,
        }
    }
    for object in &area.locator {
        match object {
            ObjectKey::IdShard(_) => counts.id_shards += 1,
            ObjectKey::WriterShard(_) => counts.writer_shards += 1,
            _ => counts.directories += 1,
        }
    }
    counts.schema_archives = area.archives.len() as u64;
    let object = ObjectKey::Directory.key();
    match read_directory(run.root).await {
        Ok(Some((directory, _))) => area.directory = Some(directory),
        Ok(None) => {}
        Err(e) => run
            .findings
            .error(Code::LegacyAreaDamaged, None, &object, &e),
    }
    area.has_directory |= area.directory.is_some();
    let numbers: BTreeSet<u32> = area
        .extents
        .iter()
        .filter_map(|e| match e {
            ExtentKey::LegacyData(n) => Some(*n),
            _ => None,
        })
        .collect();
    if let Some(directory) = area.directory.take() {
        area.writers = legacy::check(run, &directory, &numbers, &area.locator, ledger).await;
        area.extents
            .retain(|e| !matches!(e, ExtentKey::LegacyData(_)));
        area.directory = Some(directory);
    } else if !area.has_directory && (!numbers.is_empty() || !area.locator.is_empty()) {
        run.findings.add(
            Code::LegacyAreaDamaged,
            None,
            object,
            "legacy objects exist, but the directory that lists them does not",
        );
    }
    extents(run, &area, ledger).await;
    area
}

async fn extents(run: &Run<'_>, area: &Area, ledger: &mut Ledger) {
    let total = area.extents.len() as u64;
    let reads: Vec<_> = area
        .extents
        .iter()
        .map(|key| async move { (*key, Box::pin(read_extent(run.root, key)).await) })
        .collect();
    let mut reads = futures::stream::iter(reads).buffered(EXTENTS_AT_ONCE);
    let mut done = 0;
    while let Some((key, read)) = reads.next().await {
        let object = key.key();
        match read {
            Ok(Some(records)) => {
                ledger.take(&run.findings, None, &Origin::Extent(key), &records);
            }
            Ok(None) => {
                let error = Error::internal(format!("{object} was listed and is gone"));
                run.findings
                    .error(Code::HistoryObjectDamaged, None, &object, &error);
            }
            Err(e) => run
                .findings
                .error(Code::HistoryObjectDamaged, None, &object, &e),
        }
        done += 1;
        run.progress("reading history", done, total);
    }
}

async fn list(run: &Run<'_>) -> Area {
    let mut area = Area::default();
    let mut listing = Listing::default();
    let mut keys = match run.root.list(HISTORY_DIR) {
        Ok(keys) => keys,
        Err(e) => {
            run.findings
                .error(Code::HistoryObjectDamaged, None, HISTORY_DIR, &e);
            return area;
        }
    };
    loop {
        let key = match keys.try_next().await {
            Ok(Some((key, _))) => key,
            Ok(None) => return area,
            Err(e) => {
                run.findings
                    .error(Code::HistoryObjectDamaged, None, HISTORY_DIR, &e);
                return area;
            }
        };
        match listing.classify(&key) {
            Ok(Listed::Extent(extent)) => {
                area.extents.insert(extent);
            }
            Ok(Listed::Temporary) => {}
            Ok(Listed::Skipped) => place(run, &mut area, &key),
            Err(e) => run.findings.error(Code::HistoryKeyForeign, None, &key, &e),
        }
    }
}

/// A key below `schemas/` or `legacy/locator/`, which readers skip without parsing.
fn place(run: &Run<'_>, area: &mut Area, key: &str) {
    let relative = key
        .strip_prefix(HISTORY_DIR)
        .and_then(|k| k.strip_prefix('/'))
        .unwrap_or(key);
    match ObjectKey::parse(relative) {
        Ok(ObjectKey::Schema(name)) => {
            area.archives.insert(name);
        }
        Ok(ObjectKey::Directory) => {
            area.has_directory = true;
            area.locator.insert(ObjectKey::Directory);
        }
        Ok(object) => {
            area.locator.insert(object);
        }
        Err(_) if is_schema_archive_or_temporary(relative) || is_locator_temporary(relative) => {}
        Err(e) => run.findings.error(Code::HistoryKeyForeign, None, key, &e),
    }
}

/// The create-temporary of a locator object: `….oglx.tmp.` and 32 hex digits at the end.
fn is_locator_temporary(key: &str) -> bool {
    key.rsplit_once(".oglx.tmp.")
        .is_some_and(|(_, tail)| tail.len() == 32 && tail.bytes().all(|b| b.is_ascii_hexdigit()))
}
