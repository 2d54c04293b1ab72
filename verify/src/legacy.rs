//! The legacy area against its directory: `docs/format/history.md` 7.12, and what that section says it leaves
//! unchecked.

use std::collections::{BTreeMap, BTreeSet};

use graph::history::legacy::{
    ChainKind, Directory, IdShard, Inspector, WriterEntry, WriterShard, inspect,
};
use graph::history::path::{ExtentKey, ObjectKey};
use graph::model::HistoryRecord;
use graph::{Error, Result};

use crate::finding::Code;
use crate::ledger::{Ledger, Origin};
use crate::run::Run;

/// What is kept of a data file.
struct File {
    first_version: u64,
    last_version: u64,
    native: Option<String>,
}

struct Reading<'a, 'b> {
    run: &'a Run<'b>,
    directory: &'a Directory,
    ledger: &'a mut Ledger,
    files: BTreeMap<u32, File>,
    writers: Vec<WriterEntry>,
    broken_writers: bool,
}

impl Reading<'_, '_> {
    fn wrong(&self, object: String, message: String) {
        self.run
            .findings
            .add(Code::LegacyAreaDamaged, None, object, message);
    }
}

impl Inspector for Reading<'_, '_> {
    fn data_file(&mut self, number: u32, records: Vec<HistoryRecord>) -> Result<()> {
        let total = self.directory.files.len() as u64;
        self.run
            .progress("reading legacy objects", u64::from(number) + 1, total);
        let extent = ExtentKey::LegacyData(number);
        self.ledger
            .take(&self.run.findings, None, &Origin::Extent(extent), &records);
        if let (Some(first), Some(last)) = (records.first(), records.last()) {
            let file = File {
                first_version: first.commit.graph_manifest_version,
                last_version: last.commit.graph_manifest_version,
                native: first.commit.native_branch.clone(),
            };
            let listed = self.directory.files.get(number as usize);
            let versions = (file.first_version, file.last_version);
            if listed.map(|l| (l.first_version, l.last_version)) != Some(versions) {
                self.wrong(
                    extent.key(),
                    format!(
                        "its versions run from {} to {}, the directory lists others",
                        versions.0, versions.1
                    ),
                );
            }
            self.files.insert(number, file);
        }
        Ok(())
    }

    fn id_shard(&mut self, number: u32, shard: &IdShard) -> Result<()> {
        let entries = shard.entries();
        let held = (
            entries.first().map(|e| e.id),
            entries.last().map(|e| e.id),
            entries.len() as u64,
        );
        let listed = self.directory.id_shards.get(number as usize);
        if listed.map(|l| (Some(l.first), Some(l.last), u64::from(l.entries))) != Some(held) {
            self.wrong(
                ObjectKey::IdShard(number).key(),
                "its first id, last id or number of entries is not the listed one".into(),
            );
        }
        Ok(())
    }

    fn writer_shard(&mut self, number: u32, shard: &WriterShard) -> Result<()> {
        let entries = shard.entries();
        let held = (
            entries.first().map(WriterEntry::digest),
            entries.last().map(WriterEntry::digest),
            entries.len() as u64,
        );
        let listed = self.directory.writer_shards.get(number as usize);
        if listed.map(|l| (Some(l.first), Some(l.last), u64::from(l.entries))) != Some(held) {
            self.wrong(
                ObjectKey::WriterShard(number).key(),
                "its first digest, last digest or number of entries is not the listed one".into(),
            );
        }
        self.writers.extend(entries.iter().cloned());
        Ok(())
    }

    fn violation(&mut self, object: &str, error: Error) -> Result<()> {
        self.broken_writers |= object.contains("/writers/");
        self.run
            .findings
            .error(Code::LegacyAreaDamaged, None, object, &error);
        Ok(())
    }
}

/// Check the area; the writers are handed back.
pub(crate) async fn check(
    run: &Run<'_>,
    directory: &Directory,
    data_files: &BTreeSet<u32>,
    locator: &BTreeSet<ObjectKey>,
    ledger: &mut Ledger,
) -> Vec<WriterEntry> {
    for object in locator {
        let listed = match object {
            ObjectKey::IdShard(n) => (*n as usize) < directory.id_shards.len(),
            ObjectKey::WriterShard(n) => (*n as usize) < directory.writer_shards.len(),
            _ => true,
        };
        if !listed {
            run.findings.add(
                Code::LegacyAreaDamaged,
                None,
                object.key(),
                "it exists, and the directory does not list it",
            );
        }
    }
    if !graph::stamp::UPGRADE_SOURCES.contains(&directory.source_stamp) {
        run.findings.add(
            Code::LegacyAreaDamaged,
            None,
            ObjectKey::Directory.key(),
            format!(
                "source stamp {} is none that is converted",
                directory.source_stamp
            ),
        );
    }
    let mut reading = Reading {
        run,
        directory,
        ledger,
        files: BTreeMap::new(),
        writers: Vec::new(),
        broken_writers: false,
    };
    // This inspector answers no error.
    if let Err(e) = inspect(run.root, directory, data_files, &mut reading).await {
        run.findings.error(
            Code::LegacyAreaDamaged,
            None,
            &ObjectKey::Directory.key(),
            &e,
        );
    }
    if !reading.broken_writers {
        writers(&reading);
    }
    reading.writers
}

/// The writers own all data files, each one writer's, in chain order.
fn writers(reading: &Reading<'_, '_>) {
    let mut owned: Vec<&WriterEntry> = reading.writers.iter().collect();
    owned.sort_by_key(|w| w.first_file);
    let name = |w: &WriterEntry| w.native.clone().unwrap_or_else(|| "main".into());
    let object = ObjectKey::Directory.key();
    let mut next = 0u32;
    let mut kind = ChainKind::Main;
    for writer in owned {
        if writer.first_file != next || writer.kind < kind {
            reading.wrong(
                object.clone(),
                format!(
                    "the data files of writer '{}' start at {}, expected {next}",
                    name(writer),
                    writer.first_file
                ),
            );
        }
        kind = writer.kind;
        next = writer.first_file.saturating_add(writer.files);
        let mut before = 0;
        for n in writer.first_file..next {
            let Some(file) = reading.files.get(&n) else {
                continue;
            };
            let key = ExtentKey::LegacyData(n).key();
            if file.native != writer.native {
                reading.wrong(
                    key.clone(),
                    format!(
                        "it holds commits of '{}', the locator gives it to '{}'",
                        file.native.as_deref().unwrap_or("main"),
                        name(writer)
                    ),
                );
            }
            // Numeric reads search a writer's files by version.
            if file.first_version < before || file.last_version > writer.head_version {
                reading.wrong(
                    key,
                    format!(
                        "its versions {} to {} do not fit writer '{}'",
                        file.first_version,
                        file.last_version,
                        name(writer)
                    ),
                );
            }
            before = file.last_version;
        }
    }
    let files = reading.directory.files.len();
    if next as usize != files {
        reading.wrong(
            object.clone(),
            format!("the writers own {next} data files, the directory lists {files}"),
        );
    }
    let mains = |w: &&WriterEntry| w.kind == ChainKind::Main;
    if reading.writers.iter().filter(mains).count() != 1 {
        reading.wrong(object, "main is not listed once among the writers".into());
    }
}
