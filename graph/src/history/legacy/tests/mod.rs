//! The worked example of `docs/format/history.md` 7.6 to 7.10, shared by the tests of this folder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod area;
mod codec;
mod planning;

use std::collections::BTreeSet;
use std::sync::Arc;

use ulid::Ulid;

use super::*;
use crate::history::testing::{ABSENT, FEATURE, commit, example_records, ulid};
use crate::model::HistoryRecord;
use crate::store::Root;

fn attempt() -> Ulid {
    Ulid::from_string("01K6R3000000000000000000A7").unwrap()
}

pub(crate) fn example_chains() -> Vec<Chain> {
    let mut records = example_records().into_iter().map(Arc::new);
    let (a1, b2, c3) = (
        records.next().unwrap(),
        records.next().unwrap(),
        records.next().unwrap(),
    );
    vec![
        Chain {
            kind: ChainKind::Live,
            native: Some(FEATURE.into()),
            parent: None,
            parent_version: 2,
            head_version: 3,
            records: vec![c3],
        },
        Chain {
            kind: ChainKind::Main,
            native: None,
            parent: None,
            parent_version: 0,
            head_version: 2,
            records: vec![a1, b2],
        },
    ]
}

fn absent() -> BTreeSet<Ulid> {
    [Ulid::from_string(ABSENT).unwrap()].into()
}

fn example_plan() -> PlannedObjects {
    plan(
        &example_chains(),
        &LegacyLayout::CURRENT,
        attempt(),
        13,
        &absent(),
    )
    .unwrap()
}

/// Main with `n` commits of one version each.
fn long_chain(n: u64) -> Chain {
    let mut parent: Option<String> = None;
    let records = (1..=n)
        .map(|version| {
            let id = ulid(u128::from(version)).to_string();
            let commit = commit(&id, version, parent.as_deref());
            parent = Some(id);
            Arc::new(HistoryRecord {
                commit,
                tables: Vec::new(),
            })
        })
        .collect();
    Chain {
        kind: ChainKind::Main,
        native: None,
        parent: None,
        parent_version: 0,
        head_version: n,
        records,
    }
}

/// Write the legacy area of the worked example.
pub(crate) async fn write_example(root: &Root) {
    write(root, &example_plan(), &mut ()).await.unwrap();
}
