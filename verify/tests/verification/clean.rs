//! Whole roots.

use fixtures::tree::tree_digest;
use verify::{HistoryObjects, Outcome};

use crate::support::{converted, published, run, verify};

#[test]
fn converted_fixtures_are_whole_and_not_one_byte_changes() {
    run(|| async {
        for stamp in [8, 9, 13] {
            let case = converted(stamp).await.copy();
            let before = tree_digest(case.path()).unwrap();
            let report = verify(&case.path(), false).await;
            assert_eq!(report.findings, [], "{report:#?}");
            assert_eq!(report.outcome, Outcome::Ok);
            assert_eq!(report.checked.branches, 4);
            assert_eq!(report.checked.deep, None);
            let deep = verify(&case.path(), true).await;
            assert_eq!(deep.findings, [], "{deep:#?}");
            let read = deep.checked.deep.unwrap();
            assert_eq!(read.history_pins_removed_by_retention, 0);
            assert!(read.rows > 0 && read.bytes > 0, "{read:#?}");
            assert_eq!(tree_digest(case.path()).unwrap(), before);
        }
    });
}

#[test]
fn a_graph_that_published_after_its_conversion_is_whole() {
    run(|| async {
        let case = published().await.copy();
        let deep = verify(&case.path(), true).await;
        assert_eq!(deep.findings, [], "{deep:#?}");
        let HistoryObjects {
            block_extents,
            singletons,
            ..
        } = deep.checked.history;
        assert!(block_extents >= 1 && singletons >= 1, "{deep:#?}");
        assert!(deep.checked.deep.unwrap().manifest_versions >= 10);
    });
}
