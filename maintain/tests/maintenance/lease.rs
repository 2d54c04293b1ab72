//! The maintenance lease: one holder, takeover of a stale one by one taker.

use std::time::Duration;

use graph::store::Root;
use maintain::lease::{Holder, LEASE_DIR, Timing, hold, hold_with};

use crate::bed::*;

fn quick() -> Timing {
    Timing {
        renew: Duration::from_millis(40),
        stale_after: Duration::from_millis(400),
        watch: Duration::from_millis(120),
    }
}

async fn root() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder.path().join("graph")).await;
    (folder, root)
}

async fn newest(root: &Root) -> (String, Holder) {
    let name = root.list_names(LEASE_DIR).await.unwrap().pop().unwrap();
    let bytes = root
        .get(&format!("{LEASE_DIR}/{name}"), 1 << 16)
        .await
        .unwrap()
        .unwrap();
    (name, serde_json::from_slice(&bytes).unwrap())
}

/// A holder that died `ago`.
async fn leave(root: &Root, epoch: u64, ago: chrono::Duration) {
    let at = chrono::Utc::now() - ago;
    let dead = Holder {
        verb: "cleanup".into(),
        host: "elsewhere".into(),
        pid: 41,
        run: "dead".into(),
        started_at: at,
        renewed_at: at,
        released_at: None,
    };
    let key = format!("{LEASE_DIR}/{epoch:020}.json");
    root.overwrite(&key, serde_json::to_vec(&dead).unwrap().into())
        .await
        .unwrap();
}

#[test]
fn a_second_run_is_refused_and_told_who_holds() {
    run(|| async {
        let bed = Bed::empty("node A { n: I64 }\n").await;
        let root = bed.root().await;
        let lease = hold(&root, "optimize").await.unwrap();
        let error = hold(&root, "cleanup").await.unwrap_err().to_string();
        let process = format!("optimize (process {} on host ", std::process::id());
        assert!(error.contains(&process), "{error}");
        assert!(error.contains("silent for 120 seconds"), "{error}");
        lease.release().await.unwrap();
        let (name, holder) = newest(&root).await;
        assert!(holder.released_at.is_some());
        let again = hold(&root, "cleanup").await.unwrap();
        let (next, holder) = newest(&root).await;
        assert!(next > name && holder.verb == "cleanup");
        // What ended is swept; the newest stays for ever.
        assert_eq!(root.list_names(LEASE_DIR).await.unwrap().len(), 1);
        again.release().await.unwrap();
        assert_eq!(root.list_names(LEASE_DIR).await.unwrap().len(), 1);
    });
}

#[test]
fn a_dropped_lease_is_let_go() {
    run(|| async {
        let (_folder, root) = root().await;
        drop(hold_with(&root, "optimize", quick()).await.unwrap());
        for _ in 0..100 {
            if newest(&root).await.1.released_at.is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the lease is still held");
    });
}

#[test]
fn a_living_holder_renews_and_is_never_taken_over() {
    run(|| async {
        let (_folder, root) = root().await;
        let lease = hold_with(&root, "optimize", quick()).await.unwrap();
        let first = newest(&root).await.1.renewed_at;
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert!(newest(&root).await.1.renewed_at > first);
        assert!(hold_with(&root, "cleanup", quick()).await.is_err());
        assert_eq!(lease.stop().requested(), None);
    });
}

#[test]
fn a_stale_holder_is_taken_over_by_one_of_many() {
    run(|| async {
        let (_folder, root) = root().await;
        leave(&root, 7, chrono::Duration::seconds(1)).await;
        let takers = (0..6).map(|_| {
            let root = root.clone();
            tokio::spawn(async move { hold_with(&root, "optimize", quick()).await })
        });
        let mut won = Vec::new();
        for taker in takers.collect::<Vec<_>>() {
            won.extend(taker.await.unwrap());
        }
        assert_eq!(won.len(), 1);
        assert_eq!(newest(&root).await.0, format!("{:020}.json", 8));
    });
}

#[test]
fn clocks_that_differ_do_not_make_a_living_holder_stale() {
    run(|| async {
        let (_folder, root) = root().await;
        // Its clock is an hour behind, and it goes on renewing.
        leave(&root, 1, chrono::Duration::hours(1)).await;
        let behind = root.clone();
        let alive = tokio::spawn(async move {
            for n in 0..200 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                leave(&behind, 1, chrono::Duration::milliseconds(3_600_000 - n)).await;
            }
        });
        let error = hold_with(&root, "optimize", quick()).await.unwrap_err();
        assert!(
            matches!(error, graph::Error::Conflict(_) | graph::Error::Refused(_)),
            "{error}"
        );
        assert_eq!(newest(&root).await.0, format!("{:020}.json", 1));
        alive.abort();
    });
}

#[test]
fn a_holder_that_was_taken_over_is_asked_to_stop() {
    run(|| async {
        let (_folder, root) = root().await;
        let lease = hold_with(&root, "optimize", quick()).await.unwrap();
        leave(&root, 2, chrono::Duration::zero()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let why = lease.stop().requested().unwrap().to_string();
        assert!(why.contains("taken over (epoch 2) by cleanup"), "{why}");
        // Letting go touches its own epoch only.
        lease.release().await.unwrap();
        assert!(newest(&root).await.1.released_at.is_none());
    });
}

#[test]
fn bytes_that_are_no_lease_refuse_and_name_the_object() {
    run(|| async {
        let (_folder, root) = root().await;
        let key = format!("{LEASE_DIR}/{:020}.json", 3);
        root.overwrite(&key, bytes::Bytes::from_static(b"{"))
            .await
            .unwrap();
        // A create that was killed leaves a temporary; it is no tenure.
        let temporary = format!("{LEASE_DIR}/{:020}.json.tmp.00", 9);
        root.overwrite(&temporary, bytes::Bytes::from_static(b""))
            .await
            .unwrap();
        let error = hold_with(&root, "optimize", quick())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(&key), "{error}");
    });
}

#[test]
fn a_folder_that_is_no_graph_stays_untouched() {
    run(|| async {
        let (folder, root) = root().await;
        assert!(hold(&root, "optimize").await.is_err());
        let files = fixtures::tree::tree_digest(folder.path()).unwrap();
        assert!(files.is_empty(), "{files:?}");
    });
}
