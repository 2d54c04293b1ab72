//! One thing of a root contradicts another: each is noticed, and names the object.

use std::path::Path;

use bytes::Bytes;
use graph::history::extent::decode_records;
use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_branch};
use graph::model::{HistoryRecord, Pin, TableState};
use graph::stamp::STAMP_KEY;
use verify::{Code, Outcome, Report};

use crate::support::publish::{head, overwrite, publish, rewrite};
use crate::support::{Case, codes, open, published, run, verify};

/// Assert a finding of `code` whose object and message hold `words`.
pub fn finds(report: &Report, code: Code, words: &[&str]) {
    assert_eq!(report.outcome, Outcome::Damaged);
    let fits = |f: &&verify::Finding| {
        let text = format!("{} {} {:?}", f.object, f.message, f.branch);
        f.code == code && words.iter().all(|w| text.contains(w))
    };
    assert!(
        report.findings.iter().any(|f| fits(&f)),
        "no {} with {words:?}: {:#?}",
        code.as_str(),
        report.findings
    );
}

pub async fn damaged(damage: impl AsyncFnOnce(&Case)) -> Report {
    let case = published().await.copy();
    damage(&case).await;
    verify(&case.path(), false).await
}

/// The first block extent and its records.
pub async fn block(case: &Case) -> (String, Vec<HistoryRecord>) {
    let key = case.keys(|k| k.starts_with("__history/blocks/")).remove(0);
    let records = decode_records(&key, Bytes::from(case.read(&key)))
        .await
        .unwrap();
    (key, records)
}

/// Change main's head state, as a version of its own.
async fn in_head(change: impl FnOnce(&mut BranchState)) -> Report {
    damaged(async |case| rewrite(&case.root().await, None, change).await).await
}

pub fn first_pin(tables: &mut [graph::model::TableRow]) -> &mut Pin {
    tables
        .iter_mut()
        .find_map(|t| match &mut t.state {
            TableState::Pinned(pin) if pin.row_count > 0 => Some(pin),
            _ => None,
        })
        .unwrap()
}

#[test]
fn an_object_that_is_gone() {
    run(|| async {
        let report = damaged(async |case| case.remove(&block(case).await.0)).await;
        finds(&report, Code::CommitMissing, &["first parent", "main"]);
        let report =
            damaged(async |case| case.remove("__history/legacy/data/00000001.lance")).await;
        finds(
            &report,
            Code::LegacyAreaDamaged,
            &["00000001.lance", "missing"],
        );
        for (shard, code) in [
            ("ids/00000000.oglx", Code::LegacyAreaDamaged),
            ("writers/00000000.oglx", Code::LegacyAreaDamaged),
            ("directory.oglx", Code::ReceiptInconsistent),
        ] {
            let key = format!("__history/legacy/locator/{shard}");
            let report = damaged(async |case| case.remove(&key)).await;
            finds(&report, code, &[]);
        }
        let report = damaged(async |case| {
            case.remove(&case.keys(|k| k.ends_with(".schema"))[0]);
        })
        .await;
        finds(&report, Code::SchemaArchiveMissing, &["schemas/"]);
        let report = damaged(async |case| {
            case.remove(&case.keys(|k| k.contains("_refs/branches/feature."))[0]);
        })
        .await;
        finds(&report, Code::TreeUnclaimed, &["tree/feature."]);
        let report = damaged(async |case| {
            case.remove(&format!(
                "__manifest/tree/{}/_omnigraph_retired_branch.json",
                case.gone
            ));
        })
        .await;
        finds(&report, Code::TreeUnclaimed, &["tree/gone."]);
    });
}

#[test]
fn a_table_ref_that_a_head_pins_by_is_gone() {
    run(|| async {
        let case = published().await.copy();
        let root = case.root().await;
        let mut used = std::collections::BTreeSet::new();
        for branch in [None, Some("feature"), Some("fresh"), Some("child")] {
            let read = read_branch(&root, branch, ReadMode::State).await;
            for table in read.unwrap().1.visible_tables() {
                used.extend(table.state.pin().and_then(|pin| pin.table_branch.clone()));
            }
        }
        let mut found = 0;
        for key in case.keys(|k| k.starts_with("nodes/") && k.contains("/_refs/")) {
            let report = damaged(async |case| case.remove(&key)).await;
            if used
                .iter()
                .any(|native| key.ends_with(&format!("/{native}.json")))
            {
                finds(&report, Code::RefDamaged, &["does not exist"]);
                found += 1;
            } else {
                assert_eq!(codes(&report), [""; 0], "{key}");
            }
        }
        assert!(found > 0);
    });
}

#[test]
fn a_branch_that_never_published_and_lost_its_ref() {
    run(|| async {
        // The branch `fresh` never published: its tree is what an interrupted creation leaves too.
        let report = damaged(async |case| {
            case.remove(&case.keys(|k| k.contains("_refs/branches/fresh."))[0]);
        })
        .await;
        finds(&report, Code::TreeUnclaimed, &["tree/fresh."]);
    });
}

#[test]
fn an_object_that_does_not_belong() {
    run(|| async {
        let report = damaged(async |case| case.write("__history/blocks/x.lance", b"x")).await;
        finds(&report, Code::HistoryKeyForeign, &["blocks/x.lance"]);
        let report = damaged(async |case| {
            case.write("__history/legacy/locator/ids/00000009.oglx", b"x");
        })
        .await;
        finds(&report, Code::LegacyAreaDamaged, &["00000009.oglx"]);
        let report = damaged(async |case| {
            let file = case.read("__history/legacy/data/00000001.lance");
            case.write("__history/legacy/data/00000007.lance", &file);
        })
        .await;
        finds(&report, Code::LegacyAreaDamaged, &["00000007.lance"]);
        // What a kill leaves is no damage.
        let hex = "0".repeat(32);
        let report = damaged(async |case| {
            let name = case.keys(|k| k.ends_with(".schema")).remove(0);
            case.write(&format!("{name}.tmp.{hex}"), b"x");
            case.write(
                &format!("__history/legacy/locator/ids/00000000.oglx.tmp.{hex}"),
                b"x",
            );
            case.write(&format!("__history/singletons/a.lance.tmp.{hex}"), b"x");
        })
        .await;
        assert_eq!(report.findings, []);
    });
}

#[test]
fn refs_and_tags() {
    run(|| async {
        let report = damaged(async |case| {
            let key = case
                .keys(|k| k.contains("_refs/branches/feature."))
                .remove(0);
            let (before, after) = case.feature.rsplit_once('.').unwrap();
            let twin = key.replace(after, "01M8PHSZ10Y4YKG4NQ89X4HRB0");
            assert_eq!(before, "feature");
            let bytes = case.read(&key);
            case.write(&twin, &bytes);
        })
        .await;
        finds(&report, Code::BranchAmbiguous, &["feature"]);
        let report = damaged(async |case| {
            let key = case
                .keys(|k| k.contains("_refs/branches/feature."))
                .remove(0);
            case.write(&key, b"{");
        })
        .await;
        // Its rows are read all the same.
        finds(&report, Code::RefDamaged, &["feature"]);
        assert_eq!(report.checked.branches, 4);
        assert_eq!(report.findings.len(), 1, "{report:#?}");
        let tag = |body: &str| body.to_string();
        for (name, body, word) in [
            (
                "t",
                tag(r#"{"branch":null,"version":999,"manifestSize":1}"#),
                "999",
            ),
            ("t", tag("{"), "not a valid tag"),
            (
                "__omnigraph_merge_input_v1_x",
                tag(r#"{"branch":null,"version":7,"manifestSize":1}"#),
                "does not parse",
            ),
        ] {
            let key = format!("__manifest/_refs/tags/{name}.json");
            let report = damaged(async |case| case.write(&key, body.as_bytes())).await;
            finds(&report, Code::RefDamaged, &[word]);
        }
    });
}

#[test]
fn rows_of_a_head() {
    run(|| async {
        let report = in_head(|s| first_pin(&mut s.tables).row_count += 1).await;
        finds(&report, Code::PinRowCountDiffers, &["main", "rows"]);
        let report = in_head(|s| {
            let pin = first_pin(&mut s.tables);
            pin.table_version = 77;
            pin.metadata.last_linear_version = Some(77);
        })
        .await;
        finds(&report, Code::PinMissing, &["at version 77", "main"]);
        let report =
            in_head(|s| first_pin(&mut s.tables).metadata.transaction_uuid = Some("other".into()))
                .await;
        finds(&report, Code::PinWitnessDiffers, &["transaction", "other"]);
        let report = in_head(|s| {
            let size = &mut first_pin(&mut s.tables).metadata.manifest_size;
            *size = size.map(|n| n + 1);
        })
        .await;
        finds(&report, Code::PinWitnessDiffers, &["bytes"]);
        let report = in_head(|s| s.head.schema_content_hash = Some("0".repeat(64))).await;
        finds(&report, Code::HeadInconsistent, &["hashes to"]);
        finds(&report, Code::SchemaArchiveMissing, &["0000"]);
        let report = in_head(|s| s.head.parent_commit_id = Some("other".into())).await;
        finds(&report, Code::HeadDamaged, &["not one lineage"]);
        let report = in_head(|s| s.head.generation += 1).await;
        finds(&report, Code::CommitInconsistent, &["generation"]);
        let report = in_head(|s| s.head.graph_branch = Some("other".into())).await;
        finds(&report, Code::CommitInconsistent, &["landed on"]);
        let report = in_head(|s| s.head.merged_parent_commit_id = Some("gone".into())).await;
        finds(&report, Code::CommitMissing, &["merged parent gone"]);
        let report = in_head(|s| {
            let texts = s.contract_texts.as_mut().unwrap();
            texts.source = texts.source.replacen("node", "edge", 1);
        })
        .await;
        finds(&report, Code::SchemaContractInvalid, &["main"]);
        let report = in_head(|s| {
            let at = s.replaced.iter_mut().next().unwrap();
            at.replaced_at = 1;
        })
        .await;
        finds(
            &report,
            Code::HeadInconsistent,
            &["no buffered commit needs"],
        );
        let report = damaged(async |case| {
            let root = case.root().await;
            publish(&root, None, 4).await;
            publish(&root, None, 4).await;
            rewrite(&root, None, |s| {
                let old = s.buffer[1].graph_commit_id.clone();
                let parts: Vec<&str> = old.split('.').collect();
                let new = format!("{}.{}.0.{}", parts[0], parts[1], parts[3]);
                s.buffer[1].graph_commit_id.clone_from(&new);
                match s.buffer.get_mut(2) {
                    Some(child) => child.parent_commit_id = Some(new),
                    None => s.head.parent_commit_id = Some(new),
                }
            })
            .await;
        })
        .await;
        finds(&report, Code::HeadInconsistent, &["slot 0"]);
    });
}

#[test]
fn tables() {
    run(|| async {
        let case = published().await.copy();
        let (_, state) = head(&case.root().await, None).await;
        let table = state
            .visible_tables()
            .into_iter()
            .find(|t| t.state.pin().is_some_and(|p| p.table_version > 1))
            .unwrap()
            .clone();
        let path = table.table_path.clone();
        let version = table.state.pin().unwrap().table_version;
        let manifest = |v: u64| format!("{path}/_versions/{:020}.manifest", u64::MAX - v);
        // A version that only history names, as a cleanup leaves it.
        let older = case.read(&manifest(version - 1));
        case.remove(&manifest(version - 1));
        let report = verify(&case.path(), true).await;
        let read = report.checked.deep.unwrap();
        assert_eq!(report.findings, [], "{report:#?}");
        assert!(read.history_pins_removed_by_retention > 0, "{read:#?}");
        case.write(&manifest(version - 1), &older);
        // The head's own.
        let bytes = case.read(&manifest(version));
        case.remove(&manifest(version));
        finds(
            &verify(&case.path(), false).await,
            Code::PinMissing,
            &[&path, "main"],
        );
        case.write(&manifest(version), &bytes[..bytes.len() / 2]);
        finds(
            &verify(&case.path(), false).await,
            Code::PinUnreadable,
            &[&path],
        );
        case.write(&manifest(version), &bytes);
        let data = case.keys(|k| k.starts_with(&format!("{path}/data/")));
        case.remove(&data[0]);
        assert_eq!(verify(&case.path(), false).await.findings, []);
        finds(
            &verify(&case.path(), true).await,
            Code::TableDataDamaged,
            &[&path],
        );
    });
}

#[test]
fn one_broken_branch_hides_no_other() {
    run(|| async {
        let case = published().await.copy();
        for tree in ["__manifest/tree/child.", "__manifest/tree/fresh."] {
            let data = case.keys(|k| k.starts_with(tree) && k.contains("/data/"));
            case.write(&data[0], b"not a Lance file");
        }
        rewrite(&case.root().await, None, |s| s.head.generation += 1).await;
        let report = verify(&case.path(), false).await;
        finds(&report, Code::HeadDamaged, &["tree/child."]);
        finds(&report, Code::HeadDamaged, &["tree/fresh."]);
        finds(&report, Code::CommitInconsistent, &["main", "generation"]);
        let sorted = {
            let mut all = report.findings.clone();
            all.sort_by(|a, b| (&a.branch, &a.object).cmp(&(&b.branch, &b.object)));
            all
        };
        assert_eq!(report.findings, sorted);
    });
}

#[test]
fn the_guard_decides_first() {
    run(|| async {
        let case = published().await.copy();
        let root = case.root().await;
        restamp(&root, Some(&case.feature), "9").await;
        let report = verify(&case.path(), false).await;
        finds(&report, Code::BranchRefused, &["feature", "stamp 9"]);
        restamp(&root, None, "15").await;
        let refused = verify::verify(&root, &verify::VerifyOptions::default()).await;
        assert!(matches!(refused, Err(graph::Error::Refused(m)) if m.contains("stamp 15")));
        let nothing = open(Path::new(&case.path().join("nodes"))).await;
        let absent = verify::verify(&nothing, &verify::VerifyOptions::default()).await;
        assert!(matches!(absent, Err(graph::Error::NotFound(_))));
    });
}

async fn restamp(root: &graph::store::Root, native: Option<&str>, stamp: &str) {
    let (version, state) = head(root, native).await;
    let rows = state.to_rows().unwrap();
    let mut metadata = version.dataset.schema().metadata.clone();
    metadata.insert(STAMP_KEY.into(), stamp.into());
    overwrite(root, &version, &rows, Some(metadata)).await;
}
