//! One graph commit for the tables of a maintenance run (`docs/format/maintenance.md` 2.1 step 7).

use std::time::{SystemTime, UNIX_EPOCH};

use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::store::Root;
use ulid::Ulid;
use write::Result;
use write::capture::Capture;
use write::publish::{
    Changes, ExpectedTable, Lineage, Published, Request, Update, publish_captured,
};

/// Publish `updates` over exactly what `capture` read: a branch that moved meanwhile is a read-set conflict, never
/// prepared again. The budget is the production one, whatever the session's setting
/// (`docs/format/manifest-v14.md` 9).
pub(crate) async fn publish_tables(
    root: &Root,
    capture: &Capture,
    updates: Vec<Update>,
    actor: Option<&str>,
) -> Result<Published> {
    let now = SystemTime::now();
    let micros = now
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros();
    let expected = capture
        .state
        .tables
        .iter()
        .filter(|row| {
            updates
                .iter()
                .any(|u| matches!(u, Update::Pin { identity, .. } if *identity == row.identity))
        })
        .map(ExpectedTable::of)
        .collect();
    let request = Request {
        changes: Changes {
            updates,
            ..Changes::default()
        },
        expected,
        lineage: Lineage {
            nonce: Ulid::from_datetime(now),
            branch: capture.branch.clone(),
            actor: actor.map(str::to_string),
            created_at: i64::try_from(micros).unwrap_or(i64::MAX),
            merged: None,
            budget: HISTORY_RELEASE_BYTES,
        },
        precondition: capture.precondition(),
    };
    publish_captured(root, capture, &request).await
}
