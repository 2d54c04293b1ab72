//! Many small publishes: blocks roll, and every commit, snapshot and number stays exact.

use graph::history::commit_id::BlockAddress;
use graph::view::{At, commit_list, snapshot};
use write::load::{LoadOptions, Mode};

use crate::support::*;

/// Loads of the default run; `OMNIGRAPH_LOADS=2000` does what the format promises for years of history.
fn loads() -> usize {
    std::env::var("OMNIGRAPH_LOADS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(240)
}

#[test]
fn small_loads_roll_through_blocks() {
    on_deep_stack(|| async {
        let graph = Graph::new().await;
        let budget = 8_192;
        let count = loads();
        let mut expected = Vec::new();
        for n in 0..count {
            let code = format!("p{n:05}");
            // A city now and then, so that tables move at different times.
            let text = match n % 7 {
                0 => cities(&[&code]) + &people(&[&code]),
                1 => lives(&[(&code, &format!("p{:05}", n - 1), &format!("p{:05}", n - 1))]),
                _ => people(&[&code]),
            };
            let options = LoadOptions {
                budget,
                ..options(Mode::Append)
            };
            let loaded = graph.try_load(&text, &options).await.unwrap();
            assert_eq!(loaded.manifest_version, n as u64 + 2);
            let rows: Vec<u64> = graph
                .state(None)
                .await
                .visible_tables()
                .iter()
                .map(|t| t.state.pin().unwrap().row_count)
                .collect();
            expected.push((loaded.graph_commit_id.unwrap(), rows));
        }
        let listed = commit_list(&graph.root, None).await.unwrap();
        assert_eq!(listed.len(), count + 1);
        for (commit, (id, _)) in listed.iter().zip(expected.iter().rev()) {
            assert_eq!(commit.graph_commit_id, *id);
        }
        check_slots(&expected);
        for (n, (id, rows)) in expected.iter().enumerate().step_by(10) {
            for at in [At::Commit(id.clone()), At::Version(n as u64 + 2)] {
                let shown = snapshot(&graph.root, None, &at).await.unwrap();
                assert_eq!(shown.head.graph_commit_id, *id);
                let found: Vec<u64> = graph::manifest::state::visible(&shown.tables)
                    .iter()
                    .map(|t| t.state.pin().unwrap().row_count)
                    .collect();
                assert_eq!(found, *rows, "{at:?}");
            }
        }
        graph.verify().await;
    })
    .unwrap();
}

/// Slots go up by one inside a block, and a block opens with its first commit's nonce.
fn check_slots(expected: &[(String, Vec<u64>)]) {
    let addresses: Vec<BlockAddress> = expected
        .iter()
        .map(|(id, _)| BlockAddress::parse(id).unwrap().unwrap())
        .collect();
    assert_eq!(addresses[0].slot, 1);
    let mut blocks = 1;
    for pair in addresses.windows(2) {
        if pair[0].block == pair[1].block {
            assert_eq!(pair[1].slot, pair[0].slot + 1);
        } else {
            assert_eq!((pair[1].slot, pair[1].block), (0, pair[1].nonce));
            blocks += 1;
        }
    }
    assert!(blocks > 3, "{blocks} blocks");
}
