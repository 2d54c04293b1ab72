//! The record a live ref is converted to (`docs/format/legacy-manifest.md` 7.6). Pure.

use std::sync::Arc;

use ::graph::Error;
use ::graph::model::names::{MAIN, logical_name};
use ::graph::model::{HistoryRecord, TableRow, TableState};
use legacy::fold::head_commit;

use crate::finding::{Finding, FindingCode, Stop};
use crate::heads::Head;

/// The record of the effective head of a live ref, unchanged, after proving that the head version shows
/// exactly that record. `find` finds a record by commit id.
pub(crate) fn record(
    head: &Head,
    head_tables: &[TableRow],
    find: impl Fn(&str) -> Option<Arc<HistoryRecord>>,
) -> Result<Arc<HistoryRecord>, Stop> {
    let of = head.label();
    let effective = head_commit(&head.scan.commits).ok_or_else(|| {
        Finding::incomplete(format!(
            "{of} holds no commit, not even an inherited one, so there is nothing to convert it to"
        ))
    })?;
    let record = find(&effective.id).ok_or_else(|| {
        Error::internal(format!(
            "the census has no record of commit {}",
            effective.id
        ))
    })?;

    let key = head.native().map_or(MAIN, logical_name);
    let pointed = head.scan.heads.get(key).map(String::as_str);
    let wrong = |found: &str| {
        Finding::corrupt(format!(
            "the head commit of {of} is {} (version {}), but its row graph_head:{key} {found}",
            effective.id, effective.version
        ))
    };
    if let Some(other) = pointed.filter(|id| *id != effective.id)
        && head.own().any(|c| c.id == other)
    {
        return Err(wrong(&format!("names its earlier commit {other}")).into());
    }
    if record.commit.native_branch.as_deref() == head.native() {
        match pointed {
            Some(id) if id == effective.id => {}
            Some(other) => return Err(wrong(&format!("names {other}")).into()),
            None => return Err(wrong("is missing").into()),
        }
    }

    if let Some(difference) = tables_difference(&record.tables, head_tables) {
        return Err(mismatch(head, &record, &difference).into());
    }
    if let Some(contract) = &head.scan.contract
        && record.commit.schema_content_hash.as_deref() != Some(contract.content_hash())
    {
        return Err(mismatch(
            head,
            &record,
            &format!(
                "its schema contract is {}, the commit names {}",
                contract.content_hash(),
                record
                    .commit
                    .schema_content_hash
                    .as_deref()
                    .unwrap_or("none")
            ),
        )
        .into());
    }
    Ok(record)
}

fn mismatch(head: &Head, record: &HistoryRecord, difference: &str) -> Finding {
    Finding::new(
        FindingCode::LegacyHeadRecordMismatch,
        format!(
            "the head of {} (version {}) is not what its head commit {} (version {}) recorded: {difference}",
            head.label(),
            head.input.pinned,
            record.commit.graph_commit_id,
            record.commit.graph_manifest_version
        ),
    )
}

/// The first table that differs between a record and a head, in words.
fn tables_difference(recorded: &[TableRow], held: &[TableRow]) -> Option<String> {
    let longest = recorded.len().max(held.len());
    (0..longest).find_map(|at| match (recorded.get(at), held.get(at)) {
        (Some(r), Some(h)) if r == h => None,
        (Some(r), Some(h)) if r.identity == h.identity => Some(format!(
            "table {} ({}) is {} in the head, {} in the commit",
            h.table_key,
            h.identity,
            described(h),
            described(r)
        )),
        (Some(r), h) if h.is_none_or(|h| r.identity < h.identity) => Some(format!(
            "the head lacks table {} ({}), which the commit has",
            r.table_key, r.identity
        )),
        (_, Some(h)) => Some(format!(
            "the head has table {} ({}), which the commit lacks",
            h.table_key, h.identity
        )),
        (Some(_), None) | (None, None) => None,
    })
}

fn described(row: &TableRow) -> String {
    let state = match &row.state {
        TableState::Registered => "registered without a pin".to_string(),
        TableState::Pinned(pin) => format!(
            "pinned at table version {} by version {} ({})",
            pin.table_version,
            pin.manifest_version,
            pin.metadata.to_json()
        ),
        TableState::Dropped {
            dropped_at,
            sealed_version,
        } => format!("dropped at version {dropped_at}, sealed at table version {sealed_version}"),
    };
    format!("{} {state}", row.table_key)
}

#[cfg(test)]
#[path = "live_head_tests.rs"]
mod tests;
