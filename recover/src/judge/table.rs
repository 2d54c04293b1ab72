//! One table as the decision sees it: numbers and names, no storage. Pure.

use serde::Serialize;

use super::Class;
use super::class::{Mode, classify};
use crate::observe::chain::prove;
use crate::observe::ownership::{Ownership, of_transaction, operation_of};
use crate::observe::{Entry, Head, TableReading};
use crate::sidecar::{EffectKind, Sidecar, TablePin, TransactionId, WriterKind};

/// What is known of one pinned table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Alias as the sidecar spells it.
    pub table_key: String,
    /// Folder below the root.
    pub location: String,
    /// Lance ref the write goes to.
    pub table_branch: Option<String>,
    /// The version the branch shows now; 0 when it shows none.
    pub pinned_version: u64,
    /// The newest version of the ref; the pin's when the ref is not there yet.
    pub head_version: u64,
    /// The version the write expected.
    pub expected_version: u64,
    /// The version it was to make (a lower bound for Optimize).
    pub post_commit_pin: u64,
    /// The version it confirmed.
    pub confirmed_version: Option<u64>,
    /// The transactions it planned.
    pub planned_transactions: Vec<String>,
    /// Whose the versions above the pin are.
    pub ownership: Ownership,
    /// Class.
    pub class: Class,
    /// Lance operations of the versions above the pin, ascending; `?` where no record is.
    pub operations: Vec<String>,
    /// The ref is made by this write and the branch does not show it yet.
    pub is_first_touch: bool,
    /// The ref, or the root lineage, is there.
    pub exists: bool,
    /// The catalog knows the identity.
    #[serde(skip)]
    pub is_registered: bool,
    /// The dataset is made by this write.
    #[serde(skip)]
    pub is_new_dataset: bool,
    /// The effect is a ref without a commit.
    #[serde(skip)]
    pub is_ref_only: bool,
    /// Every planned transaction is there, and the newest version is the confirmed one.
    #[serde(skip)]
    pub is_complete: bool,
    /// The version a first touch forks at.
    #[serde(skip)]
    pub fork_version: u64,
    /// Why the table, its ref or its binding is not as the write left it.
    #[serde(skip)]
    pub problem: Option<String>,
    /// Live refs below the ref's name.
    #[serde(skip)]
    pub children: Vec<String>,
    /// The newest version is a restore of the pin.
    #[serde(skip)]
    pub is_restored: bool,
}

/// Judge what was read of one pinned table.
pub fn table(sidecar: &Sidecar, pin: &TablePin, reading: &TableReading) -> Table {
    let live = reading.live.as_ref();
    let pinned = live.map_or(0, |p| p.table_version);
    let effect = sidecar.effect(pin.identity);
    let kind = effect.and_then(|e| e.kind.as_ref());
    let shown = live.and_then(|p| p.table_branch.clone());
    let is_first_touch = reading.branch.is_some()
        && shown != reading.branch
        && match sidecar.writer_kind {
            // These kinds do not record the fork: a branch that still inherits the table is one.
            WriterKind::Mutation | WriterKind::Load => sidecar.payload().is_some(),
            _ => sidecar.is_planned_first_touch(pin),
        };
    let is_new_dataset = matches!(kind, Some(EffectKind::FirstTouchDataset { .. }));
    let exists = matches!(reading.head, Head::At(_));
    let head = match reading.head {
        Head::At(version) => version,
        Head::NoRef | Head::NoDataset => pinned,
    };
    let entries = &reading.entries;
    let planned = effect.and_then(|e| e.planned());
    let chain = effect.and_then(|e| e.chain());
    let proved = chain.map(|chain| {
        let base = chain.first().map_or(0, |t| t.read_version);
        // A ref that is not there yet stands where it will fork.
        prove(chain, if exists { head } else { base }, pinned, entries)
    });
    let ownership = match (planned, &proved) {
        _ if !exists => Ownership::None,
        (Some(planned), _) => {
            of_transaction(&planned.uuid, head, pin.post_commit_pin, pinned, entries)
        }
        (None, Some(chain)) => chain.ownership,
        (None, None) => Ownership::None,
    };
    let confirmed_phase = sidecar.payload().is_some_and(|p| p.is_confirmed());
    let head_transaction = entries.iter().find(|e| e.version == head);
    let confirmed_at_head = effect
        .and_then(|e| e.confirmed())
        .is_some_and(|c| head_is(head_transaction, c));
    let is_ref_only = matches!(kind, Some(EffectKind::RefOnlyFork { .. }));
    let identifier_fits =
        reading.fork.as_ref().map(|f| &f.identifier) == sidecar.confirmed_ref(pin);
    let is_complete = confirmed_phase
        && exists
        && pin.confirmed_version == Some(head)
        && match kind {
            Some(EffectKind::RefOnlyFork { .. }) => identifier_fits,
            Some(EffectKind::MultiCommitHead {
                source_fork_version,
                ..
            }) => {
                proved.is_some_and(|c| c.full && c.ownership == Ownership::OwnAtHead)
                    && (source_fork_version.is_none() || identifier_fits)
            }
            _ => confirmed_at_head,
        };
    let mode = Mode::of(sidecar.writer_kind, sidecar.schema_version);
    let class = match sidecar.writer_kind {
        WriterKind::BranchMerge if sidecar.payload().is_some() => {
            let moved = head > pinned || (is_ref_only && exists);
            match (is_complete, moved) {
                (true, _) => Class::RolledPastExpected,
                (false, true) => Class::IncompletePhaseB,
                (false, false) => Class::NoMovement,
            }
        }
        _ => classify(mode, pinned, head, pin, confirmed_phase, confirmed_at_head),
    };
    Table {
        table_key: pin.table_key.clone(),
        location: reading.location.clone(),
        table_branch: reading.branch.clone(),
        pinned_version: pinned,
        head_version: head,
        expected_version: pin.expected_version,
        post_commit_pin: pin.post_commit_pin,
        confirmed_version: pin.confirmed_version,
        planned_transactions: planned
            .into_iter()
            .chain(chain.unwrap_or_default())
            .map(|t| format!("{}-{}", t.read_version, t.uuid))
            .collect(),
        ownership,
        class,
        operations: operations(entries, pinned),
        is_first_touch,
        exists,
        is_registered: reading.registered,
        is_new_dataset,
        is_ref_only,
        is_complete,
        fork_version: sidecar.fork_version(pin),
        problem: problem(sidecar, pin, reading, is_first_touch, is_new_dataset),
        children: reading.children.clone(),
        is_restored: head_transaction
            .and_then(|e| e.transaction.as_ref())
            .is_some_and(|t| head > pinned && t.restores == Some(pinned)),
    }
}

fn head_is(entry: Option<&Entry>, confirmed: &TransactionId) -> bool {
    entry
        .and_then(|e| e.transaction.as_ref())
        .is_some_and(|t| t.is(confirmed))
}

fn operations(entries: &[Entry], pinned: u64) -> Vec<String> {
    let above = entries.iter().filter(|e| e.version > pinned);
    let name = |e: &Entry| {
        e.transaction
            .as_ref()
            .map_or("?".to_string(), |t| t.operation.clone())
    };
    above.map(name).collect()
}

/// What makes a table unsafe whatever its versions say.
fn problem(
    sidecar: &Sidecar,
    pin: &TablePin,
    reading: &TableReading,
    first_touch: bool,
    new_dataset: bool,
) -> Option<String> {
    let key = &pin.table_key;
    if let Some(why) = &reading.contradiction {
        return Some(why.clone());
    }
    let confirmed = sidecar.payload().is_some_and(|p| p.is_confirmed());
    match reading.head {
        Head::NoDataset if new_dataset => return None,
        Head::NoDataset => return Some(format!("the dataset of table {key} is gone")),
        Head::NoRef if !first_touch => {
            return Some(format!(
                "the ref '{}' of table {key} is gone",
                reading.branch.as_deref().unwrap_or("main")
            ));
        }
        Head::NoRef if reading.fork.is_some() => {
            return Some(format!(
                "the ref '{}' of table {key} is there, but its tree is gone",
                reading.branch.as_deref().unwrap_or("main")
            ));
        }
        Head::NoRef if confirmed && sidecar.protocol_v3.is_some() => {
            return Some(format!(
                "the ref '{}' of table {key} was confirmed and is gone",
                reading.branch.as_deref().unwrap_or("main")
            ));
        }
        Head::NoRef | Head::At(_) => {}
    }
    if let (true, Some(fork)) = (first_touch, &reading.fork) {
        let wanted = sidecar.fork_version(pin);
        if fork.parent_version != wanted {
            return Some(format!(
                "the ref of table {key} forks at version {}, the write forked at {wanted}",
                fork.parent_version
            ));
        }
        if let Some(confirmed) = sidecar.confirmed_ref(pin)
            && fork.identifier != *confirmed
        {
            return Some(format!(
                "the ref of table {key} is another incarnation than the confirmed one"
            ));
        }
    }
    if sidecar.writer_kind == WriterKind::EnsureIndices
        && let Some(planned) = sidecar.effect(pin.identity).and_then(|e| e.planned())
        && let Some(operation) = operation_of(&planned.uuid, &reading.entries)
        && operation != "CreateIndex"
    {
        return Some(format!(
            "the version of table {key} that carries the planned transaction is a {operation}, expected CreateIndex"
        ));
    }
    None
}
