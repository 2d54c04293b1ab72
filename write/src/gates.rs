//! Gates that writers of one process pass in one order: schema, branch, sorted tables.
//!
//! They only spare writers of one process the conflicts they would lose to each other. What decides is the exact
//! version of the publish, which holds between processes too.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use graph::store::Root;
use tokio::sync::{Mutex as Gate, OwnedMutexGuard, OwnedRwLockReadGuard, RwLock};

#[derive(Debug, Default)]
struct RootGates {
    schema: Arc<RwLock<()>>,
    named: Mutex<HashMap<String, Arc<Gate<()>>>>,
}

static ROOTS: LazyLock<Mutex<HashMap<String, Arc<RootGates>>>> = LazyLock::new(Mutex::default);

/// The gates a writer holds; dropping them opens them.
#[derive(Debug)]
pub struct Held {
    _schema: OwnedRwLockReadGuard<()>,
    _named: Vec<OwnedMutexGuard<()>>,
}

/// Pass the gates of a write to `branch` (`None` = main) and `tables` (paths, in any order).
pub async fn pass(root: &Root, branch: Option<&str>, tables: &[&str]) -> Held {
    let gates = ROOTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(root.uri().to_string())
        .or_default()
        .clone();
    let schema = gates.schema.clone().read_owned().await;
    let mut sorted = tables.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let names = std::iter::once(format!("branch {}", branch.unwrap_or_default()))
        .chain(sorted.into_iter().map(|t| format!("table {t}")));
    let mut named = Vec::new();
    for name in names {
        let gate = gates
            .named
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(name)
            .or_default()
            .clone();
        named.push(gate.lock_owned().await);
    }
    Held {
        _schema: schema,
        _named: named,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use graph::store::RootOptions;
    use std::time::Duration;

    #[tokio::test]
    async fn writers_of_one_branch_wait_and_of_two_do_not() {
        let root = Root::open("/gates/a", RootOptions::default())
            .await
            .unwrap();
        let held = pass(&root, None, &["t2", "t1"]).await;
        let waits = |branch: Option<&'static str>, table: &'static str| {
            let root = root.clone();
            async move {
                let passing = pass(&root, branch, std::slice::from_ref(&table));
                tokio::time::timeout(Duration::from_millis(50), passing)
                    .await
                    .is_err()
            }
        };
        assert!(waits(None, "t3").await);
        assert!(waits(Some("b"), "t1").await);
        assert!(!waits(Some("b"), "t3").await);
        drop(held);
        assert!(!waits(None, "t1").await);
    }
}
