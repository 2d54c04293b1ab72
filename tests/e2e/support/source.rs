//! What a legacy root holds, read from its `__manifest` by plain Lance scans: the independent answer
//! to what an upgraded root must serve. Shares no code with the libraries under test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{
    Array, ArrayRef, RecordBatch, StringArray, StructArray, UInt8Array, UInt64Array,
};
use lance::Dataset;
use serde_json::{Value, json};

use super::roots::block_on;

const COLUMNS: [&str; 9] = [
    "object_id",
    "object_type",
    "metadata",
    "table_key",
    "stable_table_id",
    "table_incarnation_id",
    "table_version",
    "table_branch",
    "row_count",
];

/// A commit and the tables its version shows.
#[derive(Debug, Clone)]
pub struct Commit {
    pub id: String,
    /// Logical branch that wrote it.
    pub branch: String,
    pub version: u64,
    pub parent: Option<String>,
    pub merged: Option<String>,
    pub actor: Option<String>,
    pub created_at: i64,
    /// As `snapshot --json` prints them: tables that are pinned and not dropped.
    pub tables: Value,
}

/// A ref of `__manifest`.
#[derive(Debug)]
pub struct Ref {
    pub native: Option<String>,
    /// The name a user gives.
    pub logical: String,
    /// Neither retired nor a schema-apply lock.
    pub live: bool,
    /// The latest version.
    pub head: u64,
    /// The versions in its own tree.
    pub retained: BTreeSet<u64>,
    /// The commits of its head, inherited ones included: (version, created_at, id).
    commits: BTreeSet<(u64, i64, String)>,
}

/// Everything a root's readers can ask for.
#[derive(Debug)]
pub struct Source {
    /// Main first.
    pub refs: Vec<Ref>,
    /// Every commit that any ref holds.
    pub commits: BTreeMap<String, Commit>,
    /// Merged parents that no ref holds.
    pub absent: BTreeSet<String>,
}

struct Row {
    id: String,
    kind: String,
    metadata: Option<String>,
    key: Option<String>,
    identity: (u64, u64),
    version: u64,
    branch: Option<String>,
    rows: u64,
}

impl Source {
    /// Read the legacy root `root`.
    pub fn read(root: &Path) -> Self {
        block_on(read(root))
    }

    /// The live refs.
    pub fn live(&self) -> impl Iterator<Item = &Ref> {
        self.refs.iter().filter(|r| r.live)
    }

    /// The commit a reader of `r` sees at `version`.
    pub fn at(&self, r: &Ref, version: u64) -> Option<&Commit> {
        let upto = r.commits.iter().rev().find(|(v, ..)| *v <= version)?;
        Some(&self.commits[&upto.2])
    }

    /// The head commit of `r`.
    pub fn head(&self, r: &Ref) -> &Commit {
        self.at(r, u64::MAX).unwrap()
    }

    /// The first-parent chain of `r`, newest first.
    pub fn lineage(&self, r: &Ref) -> Vec<&Commit> {
        let mut chain = vec![self.head(r)];
        while let Some(parent) = &chain[chain.len() - 1].parent {
            chain.push(&self.commits[parent]);
        }
        chain
    }
}

async fn read(root: &Path) -> Source {
    let manifest = root.join("__manifest");
    let mut refs = vec![(None, 0, true)];
    refs.extend(live_refs(&manifest));
    refs.extend(retired_refs(&manifest, &manifest.join("tree")));
    let mut source = Source {
        refs: Vec::new(),
        commits: BTreeMap::new(),
        absent: BTreeSet::new(),
    };
    let mut seen: BTreeMap<String, Commit> = BTreeMap::new();
    for (native, parent_version, live) in refs {
        let place = match &native {
            None => manifest.clone(),
            Some(native) => manifest.join("tree").join(native),
        };
        let dataset = Dataset::open(place.to_str().unwrap()).await.unwrap();
        let retained: BTreeSet<u64> = dataset
            .versions()
            .await
            .unwrap()
            .iter()
            .map(|v| v.version)
            .collect();
        let mut commits = BTreeSet::new();
        for row in scan(&dataset).await {
            if row.kind == "graph_commit" {
                let commit = row.commit();
                commits.insert((commit.version, commit.created_at, commit.id.clone()));
                if commit.version > parent_version {
                    let at = dataset.checkout_version(commit.version).await.unwrap();
                    let tables = tables(&scan(&at).await);
                    let own = Commit {
                        tables,
                        ..commit.clone()
                    };
                    assert!(source.commits.insert(own.id.clone(), own).is_none());
                }
                seen.insert(commit.id.clone(), commit);
            }
        }
        let logical = native.as_deref().map_or("main", logical).to_string();
        source.refs.push(Ref {
            live: live && logical != "__schema_apply_lock__",
            head: dataset.version().version,
            native,
            logical,
            retained,
            commits,
        });
    }
    for (id, commit) in &seen {
        assert!(
            source.commits.contains_key(id),
            "commit {id} has no writing ref"
        );
        source
            .absent
            .extend(commit.merged.clone().filter(|m| !seen.contains_key(m)));
    }
    source
}

fn logical(native: &str) -> &str {
    match native.rsplit_once('.') {
        Some((name, suffix)) if suffix.len() == 26 => name,
        _ => native,
    }
}

/// Ref objects without a retirement marker.
fn live_refs(manifest: &Path) -> Vec<(Option<String>, u64, bool)> {
    let Ok(entries) = std::fs::read_dir(manifest.join("_refs/branches")) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let native = name.strip_suffix(".json").unwrap().replace("%2F", "/");
        let contents = json_file(&entry.path());
        if contents["metadata"]
            .get("omnigraph.retired_manifest_branch")
            .is_none()
        {
            out.push((
                Some(native),
                contents["parentVersion"].as_u64().unwrap(),
                true,
            ));
        }
    }
    out.sort();
    out
}

/// Retirement archives anywhere below `tree`.
fn retired_refs(manifest: &Path, folder: &Path) -> Vec<(Option<String>, u64, bool)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(retired_refs(manifest, &path));
        } else if path.ends_with("_omnigraph_retired_branch.json") {
            let native = folder.strip_prefix(manifest.join("tree")).unwrap();
            let parent = json_file(&path)["parentVersion"].as_u64().unwrap();
            out.push((Some(native.to_str().unwrap().to_string()), parent, false));
        }
    }
    out.sort();
    out
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

async fn scan(dataset: &Dataset) -> Vec<Row> {
    let mut scanner = dataset.scan();
    // Stamp 13 packs all but the first two.
    if dataset.schema().field("record").is_some() {
        scanner
            .project(&["object_id", "object_type", "record"])
            .unwrap();
    } else {
        scanner.project(&COLUMNS).unwrap();
    }
    let batch = scanner.try_into_batch().await.unwrap();
    (0..batch.num_rows())
        .map(|at| Row::of(&batch, at))
        .collect()
}

/// The tables one version shows: registered by it, the newest pin not behind a tombstone.
fn tables(rows: &[Row]) -> Value {
    let mut keys = BTreeMap::new();
    let mut pins: BTreeMap<(u64, u64), (u64, &Row)> = BTreeMap::new();
    let mut drops: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for row in rows {
        let clock = || row.id[row.id.len() - 20..].parse::<u64>().unwrap();
        match row.kind.as_str() {
            "table" => {
                keys.insert(row.key.clone().unwrap(), row.identity);
            }
            "table_version" => {
                let newest = pins.entry(row.identity).or_insert((clock(), row));
                if clock() > newest.0 {
                    *newest = (clock(), row);
                }
            }
            "table_tombstone" => {
                let newest = drops.entry(row.identity).or_insert(0);
                *newest = clock().max(*newest);
            }
            _ => {}
        }
    }
    let shown = keys.iter().filter_map(|(key, identity)| {
        let (clock, pin) = pins.get(identity)?;
        let dropped = drops.get(identity).is_some_and(|at| at >= clock);
        (!dropped)
            .then(|| json!({"table_key": key, "table_version": pin.version, "row_count": pin.rows}))
    });
    shown.collect()
}

impl Row {
    fn of(batch: &RecordBatch, at: usize) -> Self {
        let number = |name| number(batch, name, at).unwrap_or(0);
        Self {
            id: text(batch, "object_id", at).unwrap(),
            kind: text(batch, "object_type", at).unwrap(),
            metadata: text(batch, "metadata", at),
            key: text(batch, "table_key", at),
            identity: (number("stable_table_id"), number("table_incarnation_id")),
            version: number("table_version"),
            branch: text(batch, "table_branch", at),
            rows: number("row_count"),
        }
    }

    fn commit(&self) -> Commit {
        let fields: Value = serde_json::from_str(self.metadata.as_ref().unwrap()).unwrap();
        let text = |name: &str| fields[name].as_str().map(str::to_string);
        Commit {
            id: self.id.clone(),
            branch: self.branch.clone().unwrap_or_else(|| "main".into()),
            version: self.version,
            parent: text("parent_commit_id"),
            merged: text("merged_parent_commit_id"),
            actor: text("actor_id"),
            created_at: fields["created_at"].as_i64().unwrap(),
            tables: Value::Null,
        }
    }
}

/// A column, or a child of the packed record, with its bit in the null mask.
fn column<'a>(batch: &'a RecordBatch, name: &str, at: usize) -> Option<&'a ArrayRef> {
    let Some(record) = batch.column_by_name("record") else {
        return batch.column_by_name(name);
    };
    let record = record.as_any().downcast_ref::<StructArray>().unwrap();
    let Some(bit) = record.column_names().iter().position(|n| *n == name) else {
        return batch.column_by_name(name);
    };
    let present = record.column_by_name("present").unwrap();
    let present = present.as_any().downcast_ref::<UInt8Array>().unwrap();
    (present.value(at) & (1 << bit) == 0).then(|| record.column(bit))
}

fn text(batch: &RecordBatch, name: &str, at: usize) -> Option<String> {
    let column = column(batch, name, at)?;
    let column = column.as_any().downcast_ref::<StringArray>().unwrap();
    column.is_valid(at).then(|| column.value(at).to_string())
}

fn number(batch: &RecordBatch, name: &str, at: usize) -> Option<u64> {
    let column = column(batch, name, at)?;
    let column = column.as_any().downcast_ref::<UInt64Array>().unwrap();
    column.is_valid(at).then(|| column.value(at))
}
