use bytes::Bytes;
use graph::history::extent::{check_address, decode_records};
use graph::history::legacy::record_digest;
use graph::history::path::{ExtentKey, ObjectKey};
use graph::model::HistoryRecord;

use crate::support::{published, run, verify};

async fn decode(key: &str, bytes: Vec<u8>) -> graph::Result<[u8; 32]> {
    let relative = key.strip_prefix("__history/").unwrap();
    let ObjectKey::Extent(extent) = ObjectKey::parse(relative)? else {
        panic!()
    };
    let records = decode_records(key, Bytes::from(bytes)).await?;
    check_address(
        &extent,
        &records.iter().map(|r| &r.commit).collect::<Vec<_>>(),
    )?;
    let records = records
        .into_iter()
        .map(HistoryRecord::canonicalize)
        .collect::<graph::Result<Vec<_>>>()?;
    record_digest(&records)
}

#[test]
#[ignore = "measurement"]
fn measure_extents() {
    run(|| async {
        let case = published().await.copy();
        for key in case.keys(|k| k.starts_with("__history/") && k.ends_with(".lance")) {
            let whole = case.read(&key);
            let truth = decode(&key, whole.clone()).await.unwrap();
            let n = whole.len();
            let long = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
            eprintln!(
                "{key}: {n} bytes; meta {} cmo {} gbo {}",
                long(n - 40),
                long(n - 32),
                long(n - 24)
            );
            let (mut err, mut same, mut other) = (0, Vec::new(), Vec::new());
            let start = std::time::Instant::now();
            for at in 0..n {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                match decode(&key, bytes).await {
                    Err(_) => err += 1,
                    Ok(d) if d == truth => same.push(at),
                    Ok(_) => other.push(at),
                }
            }
            let ranges = |v: &[usize]| {
                let mut out: Vec<(usize, usize)> = Vec::new();
                for at in v {
                    match out.last_mut() {
                        Some((_, end)) if *end + 1 == *at => *end = *at,
                        _ => out.push((*at, *at)),
                    }
                }
                out
            };
            let zero = same.iter().filter(|a| whole[**a] == 0).count();
            eprintln!(
                "  err {err} same {} (zero {zero}) other {} in {:?}",
                same.len(),
                other.len(),
                start.elapsed()
            );
            eprintln!("  same: {:?}", ranges(&same));
            let _ = ExtentKey::LegacyData(0);
        }
        verify(&case.path(), false).await;
    });
}

async fn records(key: &str, bytes: Vec<u8>) -> graph::Result<Vec<HistoryRecord>> {
    decode_records(key, Bytes::from(bytes)).await
}

fn differ(a: &[HistoryRecord], b: &[HistoryRecord]) -> String {
    let mut out = std::collections::BTreeSet::new();
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (
            serde_json::to_value(x).unwrap(),
            serde_json::to_value(y).unwrap(),
        );
        for (k, v) in x["commit"].as_object().unwrap() {
            if y["commit"][k] != *v {
                out.insert(format!("commit.{k}"));
            }
        }
        for (t, u) in x["tables"]
            .as_array()
            .unwrap()
            .iter()
            .zip(y["tables"].as_array().unwrap())
        {
            if t == u {
                continue;
            }
            for k in ["identity", "table_key", "table_path"] {
                if t[k] != u[k] {
                    out.insert(format!("table.{k}"));
                }
            }
            match (
                t["state"]["Pinned"].as_object(),
                u["state"]["Pinned"].as_object(),
            ) {
                (Some(p), Some(q)) => {
                    for (k, v) in p {
                        if q[k] == *v {
                            continue;
                        }
                        if k == "metadata" {
                            let (m, n): (serde_json::Value, serde_json::Value) = (
                                serde_json::from_str(v.as_str().unwrap()).unwrap(),
                                serde_json::from_str(q[k].as_str().unwrap()).unwrap(),
                            );
                            let keys: std::collections::BTreeSet<&String> = m
                                .as_object()
                                .unwrap()
                                .keys()
                                .chain(n.as_object().unwrap().keys())
                                .collect();
                            for k in keys {
                                if m[k] != n[k] {
                                    out.insert(format!("pin.metadata.{k}"));
                                }
                            }
                        } else {
                            out.insert(format!("pin.{k}"));
                        }
                    }
                }
                _ => {
                    out.insert("table.state".into());
                }
            }
        }
    }
    out.into_iter().collect::<Vec<_>>().join("+")
}

#[test]
#[ignore = "measurement"]
fn measure_changed_extents() {
    let step: usize = std::env::var("STEP").unwrap().parse().unwrap();
    run(move || async move {
        let template = published().await;
        let keys = template.copy().keys(|k| {
            (k.starts_with("__history/blocks") || k.starts_with("__history/single"))
                && k.ends_with(".lance")
        });
        let work: Vec<_> = keys
            .into_iter()
            .map(|key| {
                let template = template.clone();
                tokio::spawn(async move {
                    let case = template.copy();
                    let whole = case.read(&key);
                    let truth = records(&key, whole.clone()).await.unwrap();
                    let mut silent: std::collections::BTreeMap<String, usize> = Default::default();
                    let mut loud: std::collections::BTreeMap<String, usize> = Default::default();
                    let mut seen = 0;
                    for at in 0..whole.len() {
                        let mut bytes = whole.clone();
                        bytes[at] ^= 1 << (at % 8);
                        let Ok(found) = records(&key, bytes.clone()).await else {
                            continue;
                        };
                        if found == truth {
                            continue;
                        }
                        seen += 1;
                        if seen % step != 0 {
                            continue;
                        }
                        case.write(&key, &bytes);
                        let report = verify(&case.path(), std::env::var("DEEP").is_ok()).await;
                        let what = differ(&truth, &found);
                        if report.findings.is_empty() {
                            *silent.entry(what).or_default() += 1;
                        } else {
                            *loud
                                .entry(format!("{what} -> {:?}", crate::support::codes(&report)))
                                .or_default() += 1;
                        }
                    }
                    eprintln!("{key} of {seen}\n  SILENT {silent:#?}\n  LOUD {loud:#?}");
                })
            })
            .collect();
        for w in work {
            w.await.unwrap();
        }
    });
}
