//! One flipped bit. What is protected by a digest, a name, a copy or a link must be noticed; what no reader can
//! tell from good bytes is listed in `docs/verify.md`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use graph::history::extent::{check_address, decode_lineage, decode_records};
use graph::history::legacy::{Directory, record_digest};
use graph::history::path::{ExtentKey, ObjectKey};
use graph::history::schema_archive::read_contract;
use graph::model::{HistoryRecord, TableState};
use graph::store::Tail;

use crate::support::{Case, Template, open, published, run, verify};

/// Verifications of a small root never take longer, whatever the bytes are.
const PATIENCE: Duration = Duration::from_secs(20);

fn flipped(whole: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[at] ^= 1 << (at % 8);
    bytes
}

fn extent_of(key: &str) -> ExtentKey {
    match ObjectKey::parse(key.strip_prefix("__history/").unwrap()).unwrap() {
        ObjectKey::Extent(extent) => extent,
        other => panic!("{other} is no extent"),
    }
}

/// The canonical records of an extent's bytes, with the checks every reader makes.
async fn records(key: &str, bytes: Vec<u8>) -> graph::Result<Vec<HistoryRecord>> {
    let records = decode_records(key, Bytes::from(bytes)).await?;
    let commits: Vec<_> = records.iter().map(|r| &r.commit).collect();
    check_address(&extent_of(key), &commits)?;
    records
        .into_iter()
        .map(HistoryRecord::canonicalize)
        .collect()
}

/// Run `work` on the items of a list, two at a time, each worker on a copy of its own.
async fn in_pairs<F: Future<Output = ()> + Send>(
    template: Arc<Template>,
    items: Vec<(String, usize)>,
    work: impl Fn(Arc<Case>, String, usize) -> F + Clone + Send + 'static,
) {
    let queue = Arc::new(Mutex::new(items));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (template, queue, work) = (template.clone(), queue.clone(), work.clone());
            tokio::spawn(async move {
                let case = Arc::new(template.copy());
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some((key, at)) = next else {
                        return;
                    };
                    work(case.clone(), key, at).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

fn every(case: &Case, step: usize, fits: impl Fn(&str) -> bool) -> Vec<(String, usize)> {
    case.keys(fits)
        .into_iter()
        .flat_map(|key| {
            let length = case.read(&key).len();
            (0..length).step_by(step).map(move |at| (key.clone(), at))
        })
        .collect()
}

fn data_file(key: &str) -> bool {
    key.starts_with("__history/legacy/data/")
}

/// All bytes of the locator and of the schema archives, each bit.
#[test]
fn every_bit_of_the_locator_and_the_archives() {
    run(|| async {
        let case = published().await.copy();
        let root = open(&case.path()).await;
        let directory_key = ObjectKey::Directory.key();
        let whole = case.read(&directory_key);
        let directory = Directory::decode(&whole).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                assert!(Directory::decode(&bytes).is_err(), "byte {at}, bit {bit}");
            }
        }
        let shards = directory
            .id_shards
            .iter()
            .enumerate()
            .map(|(n, s)| (ObjectKey::IdShard(n as u32).key(), s.sha256))
            .chain(
                directory
                    .writer_shards
                    .iter()
                    .enumerate()
                    .map(|(n, s)| (ObjectKey::WriterShard(n as u32).key(), s.sha256)),
            );
        for (key, digest) in shards {
            let whole = case.read(&key);
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1 << bit;
                    assert_ne!(graph::digest::sha256(&bytes), digest, "{key}: byte {at}");
                }
            }
        }
        for key in case.keys(|k| k.ends_with(".schema")) {
            let name = key.rsplit('/').next().unwrap();
            let hash = name.strip_suffix(".schema").unwrap();
            let whole = case.read(&key);
            assert!(read_contract(&root, hash).await.is_ok());
            for at in 0..whole.len() {
                case.write(&key, &flipped(&whole, at));
                assert!(
                    read_contract(&root, hash).await.is_err(),
                    "{key}: byte {at}"
                );
            }
            case.write(&key, &whole);
        }
    });
}

/// All bytes of the legacy data files. A flip is noticed, or the byte is provably unused: both ways of reading
/// the file give the very same records, which the directory's digest proves for the whole read.
#[test]
fn every_byte_of_the_legacy_data_files() {
    run(|| async {
        let template = published().await;
        let case = template.copy();
        let directory = Directory::decode(&case.read(&ObjectKey::Directory.key())).unwrap();
        let items = every(&case, 1, data_file);
        let all = items.len();
        let unused = Arc::new(Mutex::new(0usize));
        let counted = unused.clone();
        in_pairs(template, items, move |case, key, at| {
            let (directory, counted) = (directory.clone(), counted.clone());
            async move {
                let ExtentKey::LegacyData(n) = extent_of(&key) else {
                    panic!("{key}");
                };
                let listed = &directory.files[n as usize];
                let whole = case.read(&key);
                let bytes = flipped(&whole, at);
                let Ok(found) = records(&key, bytes.clone()).await else {
                    return;
                };
                if found.len() != listed.rows as usize
                    || record_digest(&found).unwrap() != listed.digest
                {
                    return;
                }
                // A lineage read of these bytes may fail; it never answers other commits.
                let tail = Tail {
                    size: bytes.len() as u64,
                    bytes: Bytes::from(bytes),
                };
                let root = case.root().await;
                if let Ok(lineage) = decode_lineage(&root, &key, tail).await {
                    let commits: Vec<_> = found.into_iter().map(|r| r.commit).collect();
                    assert_eq!(lineage.commits, commits, "{key}: byte {at}");
                }
                *counted.lock().unwrap() += 1;
            }
        })
        .await;
        let unused = *unused.lock().unwrap();
        eprintln!("{unused} of {all} bytes of the legacy data files are unused");
        // Padding between buffers, unused bits, names of fields in the metadata.
        assert!(unused * 10 < all * 4, "{unused} of {all}");
    });
}

/// Whole verifications agree with the checks above.
#[test]
fn a_verification_notices_what_its_checks_notice() {
    run(|| async {
        let template = published().await;
        let case = template.copy();
        let directory = Directory::decode(&case.read(&ObjectKey::Directory.key())).unwrap();
        let mut items = every(&case, 397, data_file);
        items.extend(every(&case, 61, |k| {
            k.starts_with("__history/legacy/locator/") || k.ends_with(".schema")
        }));
        assert!(items.len() > 80, "{}", items.len());
        in_pairs(template, items, move |case, key, at| {
            let directory = directory.clone();
            async move {
                let whole = case.read(&key);
                let bytes = flipped(&whole, at);
                let expected = if data_file(&key) {
                    let ExtentKey::LegacyData(n) = extent_of(&key) else {
                        panic!("{key}");
                    };
                    let digest = records(&key, bytes.clone())
                        .await
                        .and_then(|r| record_digest(&r));
                    digest.ok() != Some(directory.files[n as usize].digest)
                } else {
                    true
                };
                case.write(&key, &bytes);
                let report = verify(&case.path(), false).await;
                case.write(&key, &whole);
                assert_eq!(!report.findings.is_empty(), expected, "{key}: byte {at}");
                if expected {
                    let named = report.findings.iter().any(|f| f.object.contains(&*key));
                    assert!(named, "{key}: byte {at}: {report:#?}");
                }
            }
        })
        .await;
    });
}

/// The fields in which two lists of records differ.
fn fields(a: &[HistoryRecord], b: &[HistoryRecord]) -> BTreeSet<&'static str> {
    let mut out = BTreeSet::new();
    for (x, y) in a.iter().zip(b) {
        let (c, d) = (&x.commit, &y.commit);
        if c.actor_id != d.actor_id {
            out.insert("actor_id");
        }
        if c.created_at != d.created_at {
            out.insert("created_at");
        }
        let mut same = d.clone();
        same.actor_id.clone_from(&c.actor_id);
        same.created_at = c.created_at;
        if *c != same || x.tables.len() != y.tables.len() {
            out.insert("commit");
        }
        for (t, u) in x.tables.iter().zip(&y.tables) {
            match (&t.state, &u.state) {
                _ if t == u => {}
                // A pin that this very commit wrote has no copy in its parent.
                (TableState::Pinned(p), TableState::Pinned(_))
                    if p.manifest_version == c.graph_manifest_version =>
                {
                    out.insert("own pin");
                }
                _ => {
                    out.insert("table");
                }
            }
        }
    }
    out
}

/// Blocks and singletons carry no digest: a flip that decodes into other values is noticed by a copy, a count,
/// a key or a parent link. Only what a commit says of itself alone is not.
#[test]
fn bytes_of_block_extents() {
    run(|| async {
        let template = published().await;
        let case = template.copy();
        let items = every(&case, 43, |k| {
            k.starts_with("__history/blocks/") || k.starts_with("__history/singletons/")
        });
        in_pairs(template, items, |case, key, at| async move {
            let whole = case.read(&key);
            let truth = records(&key, whole.clone()).await.unwrap();
            let bytes = flipped(&whole, at);
            let Ok(found) = records(&key, bytes.clone()).await else {
                return;
            };
            if found == truth {
                return;
            }
            case.write(&key, &bytes);
            let report = verify(&case.path(), false).await;
            let changed = fields(&truth, &found);
            let alone: BTreeSet<&str> = ["actor_id", "created_at", "own pin"].into();
            if report.findings.is_empty() {
                assert!(changed.is_subset(&alone), "{key}: byte {at}: {changed:?}");
                // The version of the catalog that wrote the commit is a copy.
                let deep = verify(&case.path(), true).await;
                assert!(!deep.findings.is_empty(), "{key}: byte {at}");
            }
            case.write(&key, &whole);
        })
        .await;
    });
}

/// Whatever a byte of a Lance file becomes, a verification ends, without a panic, in its time.
#[test]
fn bytes_of_lance_files() {
    run(|| async {
        let template = published().await;
        let case = template.copy();
        let lance = |k: &str| {
            let folder = k.rsplit('/').nth(1).unwrap_or_default();
            !k.starts_with("__history/")
                && !k.ends_with(".json")
                && matches!(folder, "_versions" | "data" | "_deletions")
        };
        let keys = case.keys(lance);
        let mut items = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            let length = case.read(key).len();
            // One place a file, each file another.
            items.push((key.clone(), (n * 131 + length / 3) % length));
        }
        in_pairs(template, items, |case, key, at| async move {
            let whole = case.read(&key);
            case.write(&key, &flipped(&whole, at));
            let started = Instant::now();
            let root = case.root().await;
            let options = verify::VerifyOptions {
                deep: true,
                ..verify::VerifyOptions::default()
            };
            // A refusal of the guard is an answer too.
            let _ = verify::verify(&root, &options).await;
            assert!(started.elapsed() < PATIENCE, "{key}: byte {at}");
            case.write(&key, &whole);
        })
        .await;
    });
}
