//! Behaviour of a killed optimize: stopped before and after every request that changes the store. Retained snapshots
//! read in full, and a rerun ends in the state of an uninterrupted run.

use fixtures::fault_store::{Effect, Fault, FaultStore, seen_uri};
use graph::store::{Root, RootOptions};
use graph::view::At;
use maintain::indexes::{IndexOptions, build_missing};
use maintain::optimize::{OptimizeOptions, OptimizeReport, optimize};

use crate::bed::*;

async fn run_with(bed: &Bed, fault: Option<Fault>) -> (write::Result<OptimizeReport>, FaultStore) {
    let faults = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(faults.wrapper()),
    };
    let root = Root::open(&seen_uri(&bed.path()), options).await.unwrap();
    faults.reset();
    if let Some(fault) = fault {
        faults.arm(fault);
    }
    let options = OptimizeOptions {
        // One table after the other: the n-th mutation is the same one in every run.
        concurrency: 1,
        ..OptimizeOptions::default()
    };
    (optimize(&root, &options).await, faults)
}

/// A graph whose places need every link: fragments to compact, indexes that lag, a vector index to build.
async fn three_links() -> Bed {
    let bed = Bed::empty(SCHEMA).await;
    bed.append("{\"type\":\"Place\",\"data\":{\"code\":\"first\",\"kind\":\"b\"}}\n")
        .await;
    build_missing(&bed.root().await, &IndexOptions::default())
        .await
        .unwrap();
    bed.append(&records(0, 3)).await;
    bed.append(&records(3, 6)).await;
    bed
}

async fn every_mutation(effect: Effect) {
    let bed = three_links().await;
    let links_from = bed.shape().await["node:Place"].version;
    let (export, commits) = (bed.export(&At::Head).await, bed.state().await);
    let ids = bed.row_ids("node:Place").await;
    let whole = bed.copy();
    let (done, faults) = run_with(&whole, None).await;
    done.unwrap();
    let (expected, count) = (whole.shape().await, faults.counts().mutations());
    assert!(count > 20, "{count}");
    assert_eq!(expected["node:Place"].version, links_from + 3);
    assert!(expected["node:Place"].indexes.contains_key("at_idx"));
    for n in 1..=count {
        let bed = bed.copy();
        let (result, faults) = run_with(&bed, Some(Fault::mutation(n, effect))).await;
        assert_eq!(faults.injected(), 1, "{n} of {count}");
        let before = bed.state().await;
        let published = before.version > commits.version;
        assert!(
            published || before.head == commits.head,
            "{n}: the head is another one"
        );
        if !published {
            assert!(result.is_err(), "{n}: {result:?}");
        }
        assert_eq!(bed.export(&At::Head).await, export, "{n}");
        let old = At::Commit(commits.head.graph_commit_id.clone());
        assert_eq!(bed.export(&old).await, export, "{n}");
        let again = optimize(&bed.root().await, &OptimizeOptions::default())
            .await
            .unwrap();
        assert_eq!(again.graph_commit_id.is_some(), !published, "{n}");
        assert_eq!(bed.shape().await, expected, "{n}");
        assert_eq!(bed.export(&At::Head).await, export, "{n}");
        assert_eq!(bed.row_ids("node:Place").await, ids, "{n}");
        if n % 8 == 0 || n + 4 > count {
            bed.is_sound().await;
        }
    }
}

#[test]
fn every_effect_without_an_answer() {
    run(|| every_mutation(Effect::LoseAnswer));
}

#[test]
fn killed_before_every_effect() {
    run(|| every_mutation(Effect::StopBefore));
}

#[test]
fn killed_after_every_effect() {
    run(|| every_mutation(Effect::StopAfter));
}
