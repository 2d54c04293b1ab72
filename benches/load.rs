//! What a load costs.
//!
//! `overwrite:ROWS` loads a JSONL file of ROWS nodes and, in the same run, writes the same batches with plain Lance: the
//! rows are read from JSON in both, so `ratio` compares what the load adds (ids, constraints, one publish) and not the
//! parser; `parse_seconds` is the parser alone. `append:DEPTH` makes DEPTH commits of one row each and measures the next
//! ones: commits per second of fifty, of the next whole block of commits (what one costs depends on how full the buffer
//! of the branch is), and of a few through a store that takes its time for every request, as one across a network does;
//! and, at the store seam, the requests of each of a few. `keyed` appends rows of a type with a key, whose ids have to
//! be looked up; `free` rows of a type without one.
//!
//! `cargo bench --bench load -- overwrite:1000000 append:10 append:5000`

mod support;

use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchIterator};
use fixtures::fault_store::{Counts, FaultStore, seen_uri};
use graph::history::commit_id::BlockAddress;
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::store::{Root, RootOptions};
use lance::dataset::{InsertBuilder, WriteParams};
use lance_file::version::LanceFileVersion;
use records::{BatchBuilder, RecordReader, Types};
use serde_json::{Value, json};
use support::{Failure, bytes, emit, peak_rss_bytes, requests, seconds, spawn, spawn_with, wanted};
use write::capture::Capture;
use write::load::{Input, LoadOptions, Mode, load};

const DEFAULT: [&str; 3] = ["overwrite:1000000", "append:10", "append:5000"];
const SCHEMA: &str = "\
node Reading {
    sensor: String
    value: F64
    at: DateTime
    tag: String?
    vec: Vector(8)?
}
node Keyed { code: String @key }
";
/// Appends that are timed.
const TIMED: u32 = 50;
/// Appends whose requests are counted, and that go through the distant store: of them every fourth folds fragments.
const COUNTED: u32 = 16;
/// Number of the first row that goes through the distant store.
const DISTANT_ROWS: u32 = 1_000_000;
/// What a request to the distant store takes beside its work.
const LATENCY: Duration = Duration::from_millis(20);
const DOMAIN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// Rows of a batch, as a load cuts them.
const BATCH_ROWS: usize = 8_192;

fn main() -> Result<(), Failure> {
    support::run(parent, |role| async move { child(&role).await })
}

fn parent() -> Result<(), Failure> {
    for what in wanted(&DEFAULT) {
        let folder = tempfile::tempdir()?;
        let line = match what.split_once(':') {
            Some(("overwrite", _)) => overwrite(&what, folder.path())?,
            Some(("append", _)) => {
                let mut line = json!({ "bench": "load", "what": what });
                for kind in ["free", "keyed"] {
                    let graph = folder.path().join(kind);
                    // Lance's hint is of local disks only: an object store is asked for less.
                    let hints = [("LANCE_USE_VERSION_HINT", "0")];
                    let local = spawn(&format!("{kind} {what}"), &graph)?;
                    let distant = spawn_with(&format!("{kind} distant"), &graph, &hints)?;
                    line[kind] = json!({ "local": local, "distant": distant });
                }
                line
            }
            _ => return Err(format!("no such load: {what}").into()),
        };
        emit(&line);
    }
    Ok(())
}

fn overwrite(what: &str, folder: &Path) -> Result<Value, Failure> {
    spawn(&format!("write {what}"), folder)?;
    // Each from a fresh process; the order is that of the words.
    let parse = spawn("parse", folder)?;
    let plain = spawn("plain", folder)?;
    let loaded = spawn("load", folder)?;
    let wall = |v: &Value| v["wall_seconds"].as_f64().unwrap_or(f64::NAN);
    Ok(json!({
        "bench": "load",
        "what": what,
        "input_bytes": std::fs::metadata(folder.join("rows.jsonl"))?.len(),
        "load": loaded,
        "plain": plain,
        "parse_seconds": parse["wall_seconds"],
        "ratio": (wall(&loaded) / wall(&plain) * 100.0).round() / 100.0,
    }))
}

async fn child(role: &str) -> Result<(), Failure> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("no path")?);
    let words: Vec<&str> = role.split([' ', ':']).collect();
    match words.as_slice() {
        ["write", "overwrite", count] => {
            write_rows(&path.join("rows.jsonl"), count.parse()?)?;
            emit(&Value::Null);
            Ok(())
        }
        ["parse"] => timed(parse(&path)?),
        ["plain"] => {
            let started = Instant::now();
            let rows = plain(&path).await?;
            timed((started, rows))
        }
        ["load"] => {
            let root = graph(&path.join("g"), None).await?;
            let started = Instant::now();
            let loaded = load(
                &root,
                &Input::File(path.join("rows.jsonl")),
                &options(Mode::Overwrite),
            )
            .await?;
            timed((started, loaded.tables[0].row_count))
        }
        [kind, "append", depth] => append(&path, kind, depth.parse()?).await,
        [kind, "distant"] => distant(&path, kind).await,
        _ => Err(format!("no such role: {role}").into()),
    }
}

fn timed((started, rows): (Instant, u64)) -> Result<(), Failure> {
    emit(&json!({
        "wall_seconds": seconds(started),
        "rows": rows,
        "peak_rss_bytes": peak_rss_bytes()?,
    }));
    Ok(())
}

fn options(mode: Mode) -> LoadOptions {
    LoadOptions {
        branch: None,
        mode,
        actor: None,
        budget: HISTORY_RELEASE_BYTES,
        external_blobs: false,
        on_rows: Arc::new(|_| {}),
    }
}

async fn graph(path: &Path, store: Option<&FaultStore>) -> Result<Root, Failure> {
    if !path.exists() {
        std::fs::create_dir_all(path)?;
        let root = Root::open(&path.to_string_lossy(), RootOptions::default()).await?;
        write::genesis::init(&root, SCHEMA, false).await?;
    }
    let options = RootOptions {
        wrapper: store.map(FaultStore::wrapper),
    };
    let uri = match store {
        Some(_) => seen_uri(path),
        None => path.to_string_lossy().into_owned(),
    };
    Ok(Root::open(&uri, options).await?)
}

fn write_rows(path: &Path, count: u64) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    for n in 0..count {
        let v = n as f64 / 7.0;
        writeln!(
            out,
            "{{\"type\":\"Reading\",\"id\":\"r{n:09}\",\"data\":{{\"sensor\":\"s{}\",\"value\":{v},\"at\":{},\"tag\":\"t{}\",\"vec\":[{n},1,2,3,4,5,6,0.5]}}}}",
            n % 977,
            1_700_000_000_000_u64 + n,
            n % 13,
        )?;
    }
    Ok(out.flush()?)
}

fn types() -> Result<Types, Failure> {
    use graph::schema::source::{ParseMode, compile};
    use graph::schema::vintage::Vintage;
    let compiled = compile(SCHEMA, ParseMode::Admission, Some(Vintage::Current))?;
    let ir = graph::schema::ir::resolve(&compiled, None, DOMAIN, Vintage::Current)?;
    Ok(Types::of(&ir)?)
}

/// The batches of the input, as a load cuts them.
fn batches(path: &Path, mut each: impl FnMut(RecordBatch)) -> Result<u64, Failure> {
    let types = types()?;
    let table = &types.tables()[types.node("Reading").ok_or("no type")?];
    let mut builder = BatchBuilder::new(table);
    let input = BufReader::with_capacity(1 << 20, std::fs::File::open(path.join("rows.jsonl"))?);
    let mut rows = 0;
    for record in RecordReader::new(input, &types) {
        builder.push(record?)?;
        rows += 1;
        if builder.rows() == BATCH_ROWS {
            each(builder.finish()?.0);
        }
    }
    if builder.rows() > 0 {
        each(builder.finish()?.0);
    }
    Ok(rows)
}

fn parse(path: &Path) -> Result<(Instant, u64), Failure> {
    let started = Instant::now();
    let rows = batches(path, drop)?;
    Ok((started, rows))
}

/// Read the input and write it to a new dataset, with a writer beside the reader as a load has it.
async fn plain(path: &Path) -> Result<u64, Failure> {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<RecordBatch>(2);
    let source = path.to_path_buf();
    let reading =
        tokio::task::spawn_blocking(move || batches(&source, |batch| drop(sender.send(batch))));
    let types = types()?;
    let table = &types.tables()[types.node("Reading").ok_or("no type")?];
    let reader = RecordBatchIterator::new(receiver.into_iter().map(Ok), table.schema.clone());
    let uri = path.join("plain").to_string_lossy().into_owned();
    let params = WriteParams {
        data_storage_version: Some(LanceFileVersion::V2_2),
        enable_stable_row_ids: true,
        ..WriteParams::default()
    };
    InsertBuilder::new(uri.as_str())
        .with_params(&params)
        .execute_stream(reader)
        .await?;
    reading.await?
}

/// A graph and the rows that are appended to it, one a load.
struct Appender {
    root: Root,
    kind: String,
    file: tempfile::NamedTempFile,
    rows: u32,
}

impl Appender {
    fn new(root: Root, kind: &str, rows: u32) -> Result<Self, Failure> {
        Ok(Self {
            root,
            kind: kind.to_string(),
            file: tempfile::NamedTempFile::new()?,
            rows,
        })
    }

    /// The slot of the commit it made.
    async fn one(&mut self) -> Result<u16, Failure> {
        let n = self.rows;
        let line = match self.kind.as_str() {
            "keyed" => format!("{{\"type\":\"Keyed\",\"data\":{{\"code\":\"k{n}\"}}}}"),
            _ => format!(
                "{{\"type\":\"Reading\",\"data\":{{\"sensor\":\"s{n}\",\"value\":1,\"at\":{n}}}}}"
            ),
        };
        std::fs::write(self.file.path(), line)?;
        let input = Input::File(self.file.path().to_path_buf());
        let loaded = load(&self.root, &input, &options(Mode::Append)).await?;
        self.rows += 1;
        let commit = loaded.graph_commit_id.ok_or("nothing was loaded")?;
        Ok(BlockAddress::parse(&commit)?.ok_or("no block")?.slot)
    }

    async fn many(&mut self, count: u32) -> Result<(), Failure> {
        for _ in 0..count {
            self.one().await?;
        }
        Ok(())
    }

    /// Up to the first commit of the next block; how many that took.
    async fn until_next_block(&mut self) -> Result<u32, Failure> {
        let mut count = 1;
        while self.one().await? != 0 {
            count += 1;
        }
        Ok(count)
    }
}

fn per_second(count: u32, started: Instant) -> f64 {
    (f64::from(count) / started.elapsed().as_secs_f64() * 10.0).round() / 10.0
}

async fn append(path: &Path, kind: &str, depth: u32) -> Result<(), Failure> {
    let mut appender = Appender::new(graph(path, None).await?, kind, 0)?;
    let started = Instant::now();
    appender.many(depth).await?;
    let built = seconds(started);
    let started = Instant::now();
    appender.many(TIMED).await?;
    let near = per_second(TIMED, started);
    appender.until_next_block().await?;
    let started = Instant::now();
    let block = appender.until_next_block().await?;
    emit(&json!({
        "depth": depth,
        "built_seconds": built,
        "commits_per_second": near,
        "block_commits_per_second": per_second(block, started),
        "block_commits": block,
    }));
    Ok(())
}

async fn distant(path: &Path, kind: &str) -> Result<(), Failure> {
    let store = FaultStore::new();
    let root = graph(path, Some(&store)).await?;
    let mut appender = Appender::new(root, kind, DISTANT_ROWS)?;
    let mut counted = Vec::new();
    for _ in 0..COUNTED {
        store.reset();
        appender.one().await?;
        counted.push(store.counts());
    }
    let fragments = fragments(&appender.root, kind).await?;
    let all = |c: &Counts| {
        c.by_kind
            .values()
            .map(|(requests, _)| *requests)
            .sum::<u64>()
    };
    let totals: Vec<u64> = counted.iter().map(all).collect();
    store.slow_down(LATENCY);
    let started = Instant::now();
    appender.many(COUNTED).await?;
    emit(&json!({
        "commits_per_second": per_second(COUNTED, started),
        "fragments": fragments,
        "requests_mean": totals.iter().sum::<u64>() as f64 / totals.len() as f64,
        "requests_most": totals.iter().max(),
        "requests": counted.last().map(requests),
        "bytes": counted.last().map(bytes),
    }));
    Ok(())
}

/// Fragments of the table that the appends go to.
async fn fragments(root: &Root, kind: &str) -> Result<usize, Failure> {
    let capture = Capture::of(root, None).await?;
    let (row, pin) = capture.table(match kind {
        "keyed" => "node:Keyed",
        _ => "node:Reading",
    })?;
    let opened = graph::table::open_pin(root, row, pin).await?;
    Ok(opened.dataset.manifest().fragments.len())
}
