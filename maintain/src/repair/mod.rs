//! `repair` at stamp 14: diagnosis of linear versions that no graph write made (`docs/format/maintenance.md` 6).
//!
//! Reads main's tables and never writes. Nothing resolves a table by its linear HEAD any more, so foreign versions
//! harm no reader and no writer; they are reported and kept, never adopted.

mod classify;
mod foreign;
mod report;

use graph::Error;
use graph::store::Root;
use graph::table::table_location;
use write::Result;

pub use classify::{Classification, Drift, above_pin, drift};
pub use foreign::{ForeignVersion, MOST_VERSIONS, foreign};
pub use report::{RepairReport, RepairedTable};

use crate::entry::admit;
use crate::indexes::declared::declared;
use crate::indexes::{Pinned, pass, pinned};

/// Diagnose every table that main pins, by type key. Publishes nothing.
pub async fn repair(root: &Root) -> Result<RepairReport> {
    let capture = admit(root, None).await?;
    let all = declared(&capture.ir);
    let tables = pinned(&capture, &all);
    // Writers of this process wait: HEAD and pin are compared as of one moment.
    let _held = pass(root, &capture, &tables).await?;
    let mut report = RepairReport::new(root.uri());
    for table in &tables {
        report.datasets.push(diagnose(root, table).await?);
    }
    Ok(report)
}

async fn diagnose(root: &Root, table: &Pinned<'_>) -> Result<RepairedTable> {
    let key = &table.row.table_key;
    // The last linear version of a pin counts in the lineage the pin is on; a merge can leave main's pin on a fork.
    let (path, branch) = table_location(table.row, table.pin);
    let versions = root.linear_versions(&path, branch.as_deref()).await?;
    let head = *versions.last().ok_or_else(|| {
        Error::internal(format!(
            "{key}: {path} has no linear version at all, expected at least its creation; nothing was changed. Look \
             at the root with: omnigraph verify --deep"
        ))
    })?;
    let published = table.pin.table_version;
    let found = drift(key, published, &table.pin.metadata, head)?;
    let place = (path, branch);
    let mut row = RepairedTable::clean(key, published, head);
    match found {
        Drift::None => {}
        Drift::Foreign(last) => {
            row.classification = Classification::ForeignDrift;
            row.operations = vec![format!(
                "{} foreign linear version{} above {last}, up to {head}: not written by this graph, no reader or \
                 writer uses them, kept as they are",
                head - last,
                if head - last == 1 { "" } else { "s" },
            )];
            row.foreign_versions = foreign(root, &place, last, head).await?;
        }
        Drift::AbovePin(pin) => {
            let all = foreign(root, &place, pin, head).await?;
            // Versions that were not looked into could be anything.
            let unseen = (head - pin > MOST_VERSIONS).then_some(None);
            let seen = all.iter().map(|v| v.operation.as_deref());
            row.classification = above_pin(unseen.into_iter().chain(seen));
            row.operations = all.iter().map_while(|v| v.operation.clone()).collect();
            row.error = all
                .iter()
                .find(|v| v.operation.is_none())
                .and_then(|v| v.error.clone());
            row.foreign_versions = all;
        }
    }
    Ok(row)
}
