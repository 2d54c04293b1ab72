//! Graphs to clean, and what every test asks of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fixtures::template::Template;
use fixtures::tree::{TreeDigest, tree_digest};
use graph::model::PinMetadata;
use graph::model::table::canonical_path;
use graph::schema::columns::tables;
use graph::schema::contract::Contract;
use graph::schema::ir::resolve;
use graph::schema::source::{ParseMode, compile};
use graph::schema::vintage::Vintage;
use graph::store::{Root, RootOptions};
use graph::table::manifest_metadata;
use graph::view::{At, commit_list};
use maintain::Stop;
use maintain::cleanup::report::Row;
use maintain::cleanup::{Plan, Policy, Report, execute, plan};
use tempfile::TempDir;
use write::capture::Capture;
use write::load::{Input, LoadOptions, Mode, load};
use write::publish::{Binding, Changes, Lineage, Merged, NewPin, Request, Update, publish};

pub const SCHEMA: &str = "node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
";
const WITHOUT_CITY: &str = "node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
";

pub fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    fixtures::on_deep_stack(test).unwrap();
}

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("cleanup-")
        .rand_bytes(12)
        .tempdir()
        .unwrap()
}

pub fn keep(n: u32) -> Policy {
    Policy::new(Some(n), None).unwrap()
}

pub fn older(text: &str) -> Policy {
    Policy::new(None, Some(text)).unwrap()
}

/// A graph of one test; its files go with it.
pub struct Graph {
    folder: TempDir,
    name: &'static str,
}

impl Graph {
    pub async fn new() -> Self {
        let graph = Self {
            folder: folder(),
            name: "g",
        };
        std::fs::create_dir(graph.path()).unwrap();
        write::genesis::init(&graph.root().await, SCHEMA, false)
            .await
            .unwrap();
        graph
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(self.name)
    }

    pub async fn root(&self) -> Root {
        open(&self.path()).await
    }

    /// A copy of the graph under a path of the same length.
    pub fn copy(&self) -> Self {
        let folder = folder();
        Template::of(self.folder.path())
            .unwrap()
            .lay_out(folder.path())
            .unwrap();
        Self {
            folder,
            name: self.name,
        }
    }

    pub fn digest(&self) -> TreeDigest {
        tree_digest(self.path()).unwrap()
    }

    pub async fn load(&self, branch: Option<&str>, mode: Mode, lines: &str) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        let options = LoadOptions {
            branch: branch.map(str::to_string),
            mode,
            actor: None,
            budget: write::publish::budget(None).unwrap(),
            external_blobs: false,
            on_rows: Arc::new(|_| {}),
        };
        let input = Input::File(file.path().to_path_buf());
        let loaded = load(&self.root().await, &input, &options).await.unwrap();
        loaded.graph_commit_id.unwrap()
    }

    /// One commit: person `name` gets `age`.
    pub async fn person(&self, branch: Option<&str>, name: &str, age: i32) -> String {
        let line = format!(r#"{{"type":"Person","data":{{"name":"{name}","age":{age}}}}}"#);
        self.load(branch, Mode::Merge, &line).await
    }

    /// One commit that replaces every person.
    pub async fn people(&self, branch: Option<&str>, names: &[&str]) -> String {
        let lines: Vec<String> = names
            .iter()
            .map(|n| format!(r#"{{"type":"Person","data":{{"name":"{n}","age":1}}}}"#))
            .collect();
        self.load(branch, Mode::Overwrite, &lines.join("\n")).await
    }

    pub async fn branch(&self, name: &str, from: Option<&str>) -> String {
        write::branches::create(&self.root().await, name, from)
            .await
            .unwrap()
            .native
    }

    pub async fn delete_branch(&self, name: &str) -> String {
        write::branches::delete(&self.root().await, name)
            .await
            .unwrap()
            .native
    }

    /// Another schema of main: types it lacks are dropped, new ones are created empty.
    pub async fn evolve(&self, source: &str) {
        let root = self.root().await;
        let capture = Capture::of(&root, None).await.unwrap();
        let compiled = compile(source, ParseMode::Admission, Some(Vintage::Current)).unwrap();
        let domain = &capture.state.contract.schema_identity_domain;
        let ir = resolve(&compiled, Some(&capture.ir), domain, Vintage::Current).unwrap();
        let declared = tables(&ir).unwrap();
        let mut changes = Changes {
            contract: Some(Contract::of(source, &ir)),
            ..Changes::default()
        };
        for row in capture.state.visible_tables() {
            if declared.iter().all(|d| d.identity != row.identity) {
                changes.updates.push(Update::Drop {
                    identity: row.identity,
                    sealed_version: row.state.pin().unwrap().table_version,
                });
            }
        }
        for table in &declared {
            if capture.state.table(table.identity).is_some() {
                continue;
            }
            let path = canonical_path(&table.table_key, table.identity).unwrap();
            let dataset = root
                .create_dataset(&path, Arc::new(table.schema.clone()), Vec::new())
                .await
                .unwrap();
            changes.bindings.push(Binding::Register {
                identity: table.identity,
                table_key: table.table_key.clone(),
            });
            changes.updates.push(Update::Pin {
                identity: table.identity,
                table_key: table.table_key.clone(),
                pin: Box::new(NewPin {
                    table_version: 1,
                    table_branch: None,
                    row_count: 0,
                    metadata: PinMetadata {
                        last_linear_version: Some(1),
                        ..manifest_metadata(&root, &dataset)
                    },
                }),
            });
        }
        let request = Request {
            changes,
            expected: Vec::new(),
            lineage: Lineage {
                nonce: ulid::Ulid::from_datetime(SystemTime::now()),
                branch: None,
                actor: None,
                created_at: 1,
                merged: None,
                budget: write::publish::budget(None).unwrap(),
            },
            precondition: capture.precondition(),
        };
        publish(&root, &request).await.unwrap();
    }

    /// A commit of `into` that merges the head of `from` and changes nothing.
    pub async fn merge(&self, from: &str, into: Option<&str>) {
        let root = self.root().await;
        let source = Capture::of(&root, Some(from)).await.unwrap();
        let target = Capture::of(&root, into).await.unwrap();
        let request = Request {
            changes: Changes::default(),
            expected: Vec::new(),
            lineage: Lineage {
                nonce: ulid::Ulid::from_datetime(SystemTime::now()),
                branch: into.map(str::to_string),
                actor: None,
                created_at: 1,
                merged: Some(Merged {
                    state: source.state,
                    base: None,
                }),
                budget: write::publish::budget(None).unwrap(),
            },
            precondition: target.precondition(),
        };
        publish(&root, &request).await.unwrap();
    }

    /// Drop a node type of main.
    pub async fn drop_city(&self) {
        self.evolve(WITHOUT_CITY).await;
    }

    /// Every row of a state, read in full; `Err` when it cannot be.
    pub async fn rows(&self, branch: Option<&str>, at: &At) -> Result<String, String> {
        rows(&self.root().await, branch, at).await
    }

    pub async fn plan(&self, policy: Policy) -> graph::Result<Plan> {
        plan(&self.root().await, policy, 4, &Stop::default()).await
    }

    pub async fn preview(&self, policy: Policy) -> Report {
        Report::preview(&self.plan(policy).await.unwrap())
    }

    pub async fn clean(&self, policy: Policy) -> Report {
        clean(&self.root().await, policy).await.unwrap()
    }

    /// The path of a table of main, relative to the root.
    pub async fn table(&self, key: &str) -> String {
        let capture = Capture::of(&self.root().await, None).await.unwrap();
        capture.table(key).unwrap().0.table_path.clone()
    }

    /// The newest version of a branch.
    pub async fn version(&self, branch: Option<&str>) -> u64 {
        let capture = Capture::of(&self.root().await, branch).await.unwrap();
        capture.state.version
    }

    /// Every commit id of every live branch.
    pub async fn commits(&self) -> BTreeMap<String, Vec<String>> {
        let root = self.root().await;
        let mut out = BTreeMap::new();
        for listed in write::branches::list(&root).await.unwrap() {
            let name = (listed.branch != "main").then_some(listed.branch.as_str());
            let list = commit_list(&root, name).await.unwrap();
            let ids = list.into_iter().map(|c| c.graph_commit_id).collect();
            out.insert(listed.branch.clone(), ids);
        }
        out
    }

    pub fn write(&self, key: &str, bytes: &[u8]) {
        let path = self.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Set the time of an object back.
    pub fn age(&self, key: &str, days: u64) {
        let then = SystemTime::now() - Duration::from_secs(days * 86_400);
        let file = std::fs::File::options()
            .write(true)
            .open(self.path().join(key))
            .unwrap();
        file.set_modified(then).unwrap();
    }

    /// Set the times of every object below a folder back.
    pub fn age_all(&self, folder: &str, days: u64) {
        for key in self.keys(folder) {
            self.age(&key, days);
        }
    }

    /// Keys below a folder.
    pub fn keys(&self, folder: &str) -> Vec<String> {
        let below = self.path().join(folder);
        if !below.is_dir() {
            return Vec::new();
        }
        tree_digest(below)
            .unwrap()
            .into_keys()
            .map(|k| format!("{folder}/{k}"))
            .collect()
    }

    pub fn bytes(&self) -> u64 {
        self.digest().values().map(|(size, _)| size).sum()
    }

    /// A Lance tag, as Lance writes it.
    pub fn tag(&self, dataset: &str, name: &str, branch: Option<&str>, version: u64) {
        let branch = branch.map_or("null".into(), |b| format!("\"{b}\""));
        let json = format!(
            "{{\"branch\":{branch},\"version\":{version},\"manifestSize\":1,\"createdAt\":null,\"updatedAt\":null,\"metadata\":{{}}}}"
        );
        self.write(
            &format!("{dataset}/_refs/tags/{name}.json"),
            json.as_bytes(),
        );
    }
}

pub async fn open(path: &Path) -> Root {
    Root::open(path.to_str().unwrap(), RootOptions::default())
        .await
        .unwrap()
}

pub async fn clean(root: &Root, policy: Policy) -> graph::Result<Report> {
    let stop = Stop::default();
    let planned = plan(root, policy, 4, &stop).await?;
    let done = execute(root, &planned, 4, &stop).await?;
    Ok(Report::confirm(&planned, &done))
}

pub async fn rows(root: &Root, branch: Option<&str>, at: &At) -> Result<String, String> {
    let mut out = Vec::new();
    write::export::export(root, branch, at, &mut out, &|_| {})
        .await
        .map_err(|e| e.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

pub fn row<'a>(report: &'a Report, key: &str) -> &'a Row {
    report
        .datasets
        .iter()
        .find(|r| r.type_key == key)
        .unwrap_or_else(|| panic!("no row {key}: {report:#?}"))
}

/// Nothing of the report failed.
pub fn fine(report: &Report) {
    assert_eq!(report.failures(), 0, "{report:#?}");
}

/// A report that removed nothing.
pub fn idle(report: &Report) {
    fine(report);
    assert_eq!(report.totals(), (0, 0, 0, 0), "{report:#?}");
    assert!(report.released_tags.is_empty() && report.retirements.is_empty());
}
