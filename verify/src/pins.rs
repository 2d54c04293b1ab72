//! Pins: the table version opens, has as many rows as recorded, and is the recorded image
//! (`docs/format/manifest-v14.md` 4.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use graph::model::{Pin, TableRow};
use graph::store::{Root, guarded};
use graph::table::{open_pin, table_location, transaction_uuid};
use graph::{Error, Result};
use lance::Dataset;

use crate::branches::Head;
use crate::finding::Code;
use crate::ledger::{PinKey, pin_key};
use crate::report::Checked;
use crate::run::{Run, code_of};
use crate::transactions::difference;

/// A pin of one or more heads.
#[derive(Debug)]
pub(crate) struct HeadPin {
    pub(crate) table: TableRow,
    pub(crate) pin: Pin,
    branches: Vec<String>,
}

/// The pins of all heads, by what tells them apart.
pub(crate) type HeadPins = BTreeMap<PinKey, HeadPin>;

/// What opening a pin showed.
pub(crate) struct Opened {
    pub(crate) dataset: Arc<Dataset>,
    other_etag: bool,
    /// What is wrong with it.
    pub(crate) wrong: Vec<(Code, String)>,
}

/// The dataset folder of a pin, relative to the root.
pub(crate) fn place(table: &TableRow, pin: &Pin) -> String {
    match table_location(table, pin) {
        (location, None) => location,
        (location, Some(branch)) => format!("{location}/tree/{branch}"),
    }
}

/// The object a finding about a pin names.
pub(crate) fn pin_object(table: &TableRow, pin: &Pin) -> String {
    let version = pin.metadata.staged_version.unwrap_or(pin.table_version);
    format!("{} at version {version}", place(table, pin))
}

/// Open a pin and compare what it recorded.
pub(crate) async fn open(root: &Root, table: &TableRow, pin: &Pin) -> Result<Opened> {
    let opened = open_pin(root, table, pin).await?;
    let dataset = opened.dataset.clone();
    let object = pin_object(table, pin);
    let rows = guarded(&object, async move {
        dataset
            .count_rows(None)
            .await
            .map_err(|e| Error::lance("cannot count its rows", e))
    })
    .await?;
    let mut wrong = Vec::new();
    if rows as u64 != pin.row_count {
        wrong.push((
            Code::PinRowCountDiffers,
            format!(
                "{} holds {rows} rows, the pin recorded {}",
                table.table_key, pin.row_count
            ),
        ));
    }
    let stored = transaction_uuid(&opened.dataset);
    if let Some(recorded) = &pin.metadata.transaction_uuid
        && stored.as_ref() != Some(recorded)
    {
        wrong.push((
            Code::PinWitnessDiffers,
            format!(
                "{} was written by transaction {}, the pin recorded {recorded}",
                table.table_key,
                stored.as_deref().unwrap_or("none")
            ),
        ));
    }
    if let Some(recorded) = pin.metadata.manifest_size {
        let location = opened.dataset.manifest_location();
        let file = |path: &str| path.rsplit('/').next().map(str::to_string);
        // A pin of the twin rule may have recorded the other of its two manifests.
        let same = file(location.path.as_ref()) == file(&pin.metadata.manifest_path);
        let size = match location.size {
            Some(size) => Some(size),
            None => Some(size_of(root, &object, opened.dataset.clone()).await?),
        };
        if same && size.is_some_and(|size| size != recorded) {
            wrong.push((
                Code::PinWitnessDiffers,
                format!(
                    "the manifest of {} has {} bytes, the pin recorded {recorded}",
                    table.table_key,
                    size.unwrap_or_default()
                ),
            ));
        }
    }
    if let Some(why) = difference(root, &opened.dataset, &place(table, pin)).await? {
        wrong.push((Code::TransactionDiffers, why));
    }
    Ok(Opened {
        other_etag: opened.note.is_some(),
        dataset: opened.dataset,
        wrong,
    })
}

/// The size of a dataset's manifest, for a version that was opened without a listing.
async fn size_of(root: &Root, object: &str, dataset: Arc<Dataset>) -> Result<u64> {
    let store = root.store().clone();
    guarded(object, async move {
        store
            .size(&dataset.manifest_location().path)
            .await
            .map_err(|e| Error::lance("cannot look for its manifest", e))
    })
    .await
}

/// Check the pins of all heads; each distinct one is opened once.
pub(crate) async fn check_heads(run: &Run<'_>, heads: &[Head], checked: &mut Checked) -> HeadPins {
    let mut pins = HeadPins::new();
    for head in heads {
        for table in &head.tables {
            if let Some(pin) = table.state.pin() {
                checked.head_pins += 1;
                checked.head_rows = checked.head_rows.saturating_add(pin.row_count);
                pins.entry(pin_key(table, pin))
                    .or_insert_with(|| HeadPin {
                        table: table.clone(),
                        pin: pin.clone(),
                        branches: Vec::new(),
                    })
                    .branches
                    .push(head.name.clone());
            }
        }
    }
    let total = pins.len() as u64;
    let opens: Vec<_> = pins
        .values()
        .map(|p| async move { (p, Box::pin(open(run.root, &p.table, &p.pin)).await) })
        .collect();
    let mut opens = futures::stream::iter(opens).buffered(run.concurrency());
    let mut done = 0;
    while let Some((pin, opened)) = opens.next().await {
        done += 1;
        run.progress("opening tables", done, total);
        let object = pin_object(&pin.table, &pin.pin);
        for branch in &pin.branches {
            match &opened {
                Ok(opened) => {
                    checked.head_pins_with_other_etag += u64::from(opened.other_etag);
                    for (code, message) in &opened.wrong {
                        run.findings
                            .add(*code, Some(branch), &object, message.as_str());
                    }
                }
                Err(e) => {
                    let code = code_of(e, Code::PinMissing, Code::PinUnreadable);
                    run.findings.error(code, Some(branch), &object, e);
                }
            }
        }
    }
    drop(opens);
    pins
}
