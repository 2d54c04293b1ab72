//! Random histories: every commit of the source is found after the upgrade with exactly its tables, parents,
//! actor and time, and nothing else is.

use std::collections::BTreeSet;

use fixtures::legacy_writer::Layout;
use fixtures::random_history::{Model, ModelState, Op, build};
use graph::history::lookup::HistoryReader;
use graph::model::{HistoryRecord, TableState};
use graph::view::{At, commit_list, snapshot};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use upgrade::{Outcome, UpgradeOptions, upgrade};

fn op() -> impl Strategy<Value = Op> {
    let n = any::<u8>;
    prop_oneof![
        6 => (n(), n(), proptest::option::weighted(0.3, n()), any::<bool>())
            .prop_map(|(on, tables, merge, actor)| Op::Load { on, tables, merge, actor }),
        1 => n().prop_map(|on| Op::Bookkeeping { on }),
        1 => n().prop_map(|on| Op::Compact { on }),
        4 => n().prop_map(|from| Op::Fork { from }),
        1 => (n(), any::<bool>()).prop_map(|(on, marked)| Op::Retire { on, marked }),
        1 => n().prop_map(|on| Op::Orphan { on }),
        1 => n().prop_map(|which| Op::Rename { which }),
        1 => n().prop_map(|which| Op::Drop { which }),
        1 => Just(Op::Add),
    ]
}

fn differs(model: &fixtures::random_history::ModelCommit, found: &HistoryRecord) -> Option<String> {
    let (want, c) = (&model.fields, &found.commit);
    let row = (
        c.parent_commit_id.as_ref() == want.parent.as_ref(),
        c.merged_parent_commit_id.as_ref() == want.merged_parent.as_ref(),
        c.actor_id.as_ref() == want.actor.as_ref(),
        c.created_at == want.created_at,
        c.graph_branch.as_ref() == want.branch.as_ref(),
        c.graph_manifest_version == want.version,
        c.schema_contract.as_ref() == Some(&model.contract),
    );
    if row != (true, true, true, true, true, true, true) {
        return Some(format!("{row:?}: {c:?} instead of {want:?}"));
    }
    let shown: Vec<_> = found
        .tables
        .iter()
        .map(|t| {
            let state = match &t.state {
                TableState::Pinned(pin) => ModelState::Pinned(pin.table_version, pin.row_count),
                TableState::Dropped { dropped_at, .. } => ModelState::Dropped(*dropped_at),
                TableState::Registered => ModelState::Dropped(0),
            };
            (t.identity, (t.table_key.clone(), state))
        })
        .collect();
    let wanted: Vec<_> = model.tables.clone().into_iter().collect();
    (shown != wanted).then(|| format!("{shown:?} instead of {wanted:?}"))
}

/// What is not as the model says.
async fn wrong(stamp: u32, layout: Layout, ops: &[Op]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("g");
    let (legacy, model) = build(&dir, stamp, layout, ops).await.unwrap();
    let root = legacy.root().clone();
    let report = upgrade(&root, &UpgradeOptions::default()).await;
    if report.outcome != Outcome::Completed {
        return Err(format!("{report:#?}"));
    }
    let work = report.work;
    let counts = [
        ("live refs", work.live_refs, model.heads.len() as u64),
        ("retired refs", work.retired_refs, model.retired),
        ("commits", work.legacy_commits, model.commits.len() as u64),
        ("absent parents", work.absent_parents, model.absent),
    ];
    for (what, found, want) in counts {
        if found != want {
            return Err(format!("{found} {what} instead of {want}"));
        }
    }
    let verified = verify::verify(&root, &verify::VerifyOptions::default())
        .await
        .map_err(|e| e.to_string())?;
    if !verified.findings.is_empty() {
        return Err(format!("{:#?}", verified.findings));
    }
    lineages(&root, &model).await?;
    numbers(&root, &model).await?;
    let reader = HistoryReader::new(root);
    let ids: BTreeSet<String> = model.commits.keys().cloned().collect();
    let found = reader.records(&ids).await.map_err(|e| e.to_string())?;
    for (id, commit) in &model.commits {
        let record = found.get(id).ok_or_else(|| format!("{id} is gone"))?;
        if let Some(difference) = differs(commit, record) {
            return Err(format!("{id}: {difference}"));
        }
    }
    Ok(())
}

/// The first-parent chain of every live branch.
async fn lineages(root: &graph::store::Root, model: &Model) -> Result<(), String> {
    for (logical, head) in &model.heads {
        let branch = Some(logical.as_str()).filter(|name| *name != "main");
        let listed = commit_list(root, branch).await.map_err(|e| e.to_string())?;
        let mut next = Some(head);
        for commit in &listed {
            if Some(&commit.graph_commit_id) != next {
                return Err(format!("{logical}: {next:?} is followed by {commit:?}"));
            }
            next = model.commits[&commit.graph_commit_id]
                .fields
                .parent
                .as_ref();
        }
        if let Some(rest) = next {
            return Err(format!("{logical} ends before {rest}"));
        }
    }
    Ok(())
}

/// Every pre-upgrade version of every live branch that can be asked for by number.
async fn numbers(root: &graph::store::Root, model: &Model) -> Result<(), String> {
    for (logical, native, versions) in &model.versions {
        let branch = Some(logical.as_str()).filter(|name| *name != "main");
        for (version, head) in versions {
            let shown = snapshot(root, branch, &At::Version(*version))
                .await
                .map_err(|e| format!("{native} at {version}: {e}"))?;
            if shown.head.graph_commit_id != *head {
                return Err(format!(
                    "{native} at {version}: {shown:?} instead of {head}"
                ));
            }
        }
    }
    Ok(())
}

/// Cases at one stamp; CI runs 510 in all.
fn cases(stamp: u32, layout: Layout, cases: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let ops = proptest::collection::vec(op(), 0..9);
    TestRunner::new(config)
        .run(&ops, |ops| {
            runtime
                .block_on(wrong(stamp, layout, &ops))
                .map_err(TestCaseError::fail)
        })
        .unwrap();
}

#[test]
fn random_histories_at_stamp_8() {
    cases(8, Layout::MergeInsert, 130);
}

#[test]
fn random_histories_at_stamp_9() {
    cases(9, Layout::MergeInsert, 130);
}

#[test]
fn random_histories_at_stamp_9_overwritten() {
    cases(9, Layout::Overwrite, 120);
}

#[test]
fn random_histories_at_stamp_13() {
    cases(13, Layout::Overwrite, 130);
}
