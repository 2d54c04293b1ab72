//! What a load costs.
//!
//! `overwrite:ROWS` loads a JSONL file of ROWS nodes and, in the same run, writes the same batches with plain Lance: the
//! rows are read from JSON in both, so `ratio` compares what the load adds (ids, constraints, one publish) and not the
//! parser; `parse_seconds` is the parser alone. `append:DEPTH` makes DEPTH commits of one row each and measures the
//! commits per second of a few more, and the requests of one, at the store seam. `keyed` appends rows of a type with a
//! key, whose ids have to be looked up; `free` rows of a type without one.
//!
//! `cargo bench --bench load -- overwrite:1000000 append:10 append:5000`

mod support;

use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchIterator};
use fixtures::fault_store::{FaultStore, seen_uri};
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::store::{Root, RootOptions};
use lance::dataset::{InsertBuilder, WriteParams};
use lance_file::version::LanceFileVersion;
use records::{BatchBuilder, RecordReader, Types};
use serde_json::{Value, json};
use support::{Failure, bytes, emit, peak_rss_bytes, requests, seconds, spawn, wanted};
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
                let keyed = spawn(&format!("keyed {what}"), &folder.path().join("keyed"))?;
                let free = spawn(&format!("free {what}"), &folder.path().join("free"))?;
                json!({ "bench": "load", "what": what, "keyed": keyed, "free": free })
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

async fn append(path: &Path, kind: &str, depth: u32) -> Result<(), Failure> {
    let root = graph(path, None).await?;
    let line = |n: u32| match kind {
        "keyed" => format!("{{\"type\":\"Keyed\",\"data\":{{\"code\":\"k{n}\"}}}}"),
        _ => format!(
            "{{\"type\":\"Reading\",\"data\":{{\"sensor\":\"s{n}\",\"value\":1,\"at\":{n}}}}}"
        ),
    };
    let file = tempfile::NamedTempFile::new()?;
    let input = Input::File(file.path().to_path_buf());
    let chosen = options(Mode::Append);
    let mut n = 0;
    let started = Instant::now();
    while n < depth {
        std::fs::write(file.path(), line(n))?;
        load(&root, &input, &chosen).await?;
        n += 1;
    }
    let built = seconds(started);
    let started = Instant::now();
    for _ in 0..TIMED {
        std::fs::write(file.path(), line(n))?;
        load(&root, &input, &chosen).await?;
        n += 1;
    }
    let wall = started.elapsed().as_secs_f64();
    let store = FaultStore::new();
    let counted = graph(path, Some(&store)).await?;
    std::fs::write(file.path(), line(n))?;
    store.reset();
    load(&counted, &input, &chosen).await?;
    let counts = store.counts();
    let fragments = {
        let capture = Capture::of(&root, None).await?;
        let key = if kind == "keyed" {
            "node:Keyed"
        } else {
            "node:Reading"
        };
        let (row, pin) = capture.table(key)?;
        let opened = graph::table::open_pin(&root, row, pin).await?;
        opened.dataset.manifest().fragments.len()
    };
    emit(&json!({
        "depth": depth,
        "built_seconds": built,
        "commits_per_second": (f64::from(TIMED) / wall * 10.0).round() / 10.0,
        "fragments": fragments,
        "requests": requests(&counts),
        "bytes": bytes(&counts),
    }));
    Ok(())
}
