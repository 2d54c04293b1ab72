//! What only a deep verification reads: older catalog versions, the pins that history names, table data.
//!
//! A cleanup removes table versions that only history names (`docs/format/maintenance.md` 5.4, 5.7 and 7.3), so
//! a version that is gone is damage only where no cleanup may have removed it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use graph::Result;
use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_state};
use graph::model::{Pin, TableRow};
use graph::stamp::{GuardInput, guard};
use graph::store::MANIFEST_DIR;

use crate::finding::Code;
use crate::ledger::{Ledger, NamedPin, Origin, PinKey};
use crate::pins::{HeadPins, open, pin_object, place};
use crate::refs::{Branch, Refs};
use crate::report::DeepChecked;
use crate::run::{Run, code_of, manifest_object};
use crate::scan::{Scanned, scan};
use crate::transactions::difference;

/// Tables scanned at once: each holds decoded batches.
const TABLES_AT_ONCE: usize = 4;

/// Read the retained versions below each head that this stamp wrote: each holds one more copy of the record
/// of its commit.
pub(crate) async fn manifest_versions(
    run: &Run<'_>,
    refs: &Refs,
    ledger: &mut Ledger,
    checked: &mut DeepChecked,
) {
    for branch in &refs.branches {
        let native = branch.native.as_deref();
        let versions = match run.root.linear_versions(MANIFEST_DIR, native).await {
            Ok(versions) => versions,
            Err(e) => {
                let object = manifest_object(native, None);
                run.findings.error(
                    Code::ManifestVersionDamaged,
                    Some(&branch.name),
                    &object,
                    &e,
                );
                continue;
            }
        };
        let older = versions.split_last().map_or(&[][..], |(_, older)| older);
        let reads: Vec<_> = older
            .iter()
            .map(|v| async move { Box::pin(retained(run, branch, *v)).await })
            .collect();
        let mut reads = futures::stream::iter(reads).buffered(TABLES_AT_ONCE);
        let mut done = 0;
        while let Some((version, read)) = reads.next().await {
            done += 1;
            run.progress("reading catalog versions", done, older.len() as u64);
            let object = manifest_object(native, Some(version));
            match read {
                Ok(None) => {}
                Ok(Some(state)) => {
                    checked.manifest_versions += 1;
                    let origin = Origin::Manifest(Arc::from(object));
                    if let Some(record) = state.held_record(&state.head.graph_commit_id) {
                        ledger.take(&run.findings, Some(&branch.name), &origin, &[record]);
                    }
                }
                Err(e) => run.findings.error(
                    Code::ManifestVersionDamaged,
                    Some(&branch.name),
                    &object,
                    &e,
                ),
            }
        }
    }
}

/// `None` for a version from before the conversion, or of it.
async fn retained(
    run: &Run<'_>,
    branch: &Branch,
    version: u64,
) -> (u64, Result<Option<BranchState>>) {
    let read = async {
        let opened = run
            .root
            .open_manifest(branch.native.as_deref(), Some(version))
            .await?;
        if guard(&GuardInput::of(&opened, run.root.uri())).is_err() {
            return Ok(None);
        }
        let tree = manifest_object(branch.native.as_deref(), None);
        if let Some(why) = difference(run.root, &opened.dataset, &tree).await? {
            let object = manifest_object(branch.native.as_deref(), Some(version));
            run.findings
                .add(Code::TransactionDiffers, Some(&branch.name), object, why);
        }
        read_state(&opened, ReadMode::State).await.map(Some)
    };
    (version, read.await)
}

/// Open the pins that only history names, and read all table data.
pub(crate) async fn tables(
    run: &Run<'_>,
    heads: HeadPins,
    ledger: &mut Ledger,
    checked: &mut DeepChecked,
) {
    let mut named: BTreeMap<PinKey, NamedPin> =
        ledger.pins.take().unwrap_or_default().into_iter().collect();
    named.retain(|key, _| !heads.contains_key(key));
    checked.history_pins = named.len() as u64;
    let retention = Retention::of(&heads, &named);
    let scanned = Scanned::default();
    let wanted: Vec<(&TableRow, &Pin, Option<&str>)> = heads
        .values()
        .map(|h| (&h.table, &h.pin, None))
        .chain(named.values().map(|n| (&n.table, &n.pin, Some(&*n.commit))))
        .collect();
    let total = wanted.len() as u64;
    let reads: Vec<_> = wanted
        .into_iter()
        // Boxed when it starts: there may be as many as commits.
        .map(|(table, pin, commit)| {
            let (retention, scanned) = (&retention, &scanned);
            async move { Box::pin(one(run, table, pin, commit, retention, scanned)).await }
        })
        .collect();
    let mut reads =
        futures::stream::iter(reads).buffer_unordered(TABLES_AT_ONCE.min(run.concurrency()));
    let mut done = 0;
    let mut versions = BTreeSet::new();
    while let Some(read) = reads.next().await {
        done += 1;
        run.progress("reading table data", done, total);
        match read {
            Read::Version(object) => {
                versions.insert(object);
            }
            Read::Removed => checked.history_pins_removed_by_retention += 1,
            Read::Wrong => {}
        }
    }
    checked.table_versions = versions.len() as u64;
    scanned.count_into(checked);
}

enum Read {
    Version(String),
    Removed,
    Wrong,
}

async fn one(
    run: &Run<'_>,
    table: &TableRow,
    pin: &Pin,
    commit: Option<&str>,
    retention: &Retention,
    scanned: &Scanned,
) -> Read {
    let object = pin_object(table, pin);
    let by = commit.map_or_else(String::new, |id| format!(" (pinned by commit {id})"));
    let opened = match open(run.root, table, pin).await {
        Ok(opened) => opened,
        // A pin of a head was reported under its branches.
        Err(_) if commit.is_none() => return Read::Wrong,
        Err(e) if e.is_not_found() && retention.may_be_removed(table, pin) => return Read::Removed,
        Err(e) => {
            let code = code_of(&e, Code::PinMissing, Code::PinUnreadable);
            run.findings
                .error(code, None, &object, &e.within(format!("table version{by}")));
            return Read::Wrong;
        }
    };
    if commit.is_some() {
        for (code, message) in &opened.wrong {
            run.findings
                .add(*code, None, &object, format!("{message}{by}"));
        }
    }
    for error in scan(&opened.dataset, &place(table, pin), scanned).await {
        run.findings
            .error(Code::TableDataDamaged, None, &object, &error);
    }
    Read::Version(object)
}

/// Which table versions a cleanup may have removed.
#[derive(Debug, Default)]
struct Retention {
    /// By location that a head pins: the greatest linear version any of its pins reached.
    last_linear: BTreeMap<String, u64>,
}

impl Retention {
    fn of(heads: &HeadPins, named: &BTreeMap<PinKey, NamedPin>) -> Self {
        let mut last_linear: BTreeMap<String, u64> = heads
            .values()
            .map(|h| (place(&h.table, &h.pin), 0))
            .collect();
        let all = heads
            .values()
            .map(|h| (&h.table, &h.pin))
            .chain(named.values().map(|n| (&n.table, &n.pin)));
        for (table, pin) in all {
            if let Some(last) = last_linear.get_mut(&place(table, pin)) {
                *last = (*last).max(pin.metadata.last_linear_version.unwrap_or(0));
            }
        }
        Self { last_linear }
    }

    /// Where no head pins a location any more, all of it may be gone. Elsewhere published staging may be, and
    /// linear versions below the last linear one, which is always retained.
    fn may_be_removed(&self, table: &TableRow, pin: &Pin) -> bool {
        match self.last_linear.get(&place(table, pin)) {
            None => true,
            Some(last) => pin.metadata.staged_version.is_some() || pin.table_version < *last,
        }
    }
}
