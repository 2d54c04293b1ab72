//! Small graphs whose tables hold every kind of column, in many fragments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_branch};
use graph::model::{Pin, TableRow};
use graph::store::{Root, RootOptions};
use graph::table::open_pin;
use graph::view::At;
use lance::Dataset;
use lance::index::DatasetIndexExt as _;
use verify::{VerifyOptions, verify};
use write::export::export;
use write::genesis::init;
use write::load::{Input, LoadOptions, Mode, load};

pub const SCHEMA: &str = "node Place {
    code: String @key
    kind: enum(a, b) @index
    size: I64? @index
    active: Bool? @index
    note: String? @index
    at: Vector(4)? @index
    tags: [String]?
    marks: [I32]?
    picture: Blob?
}
node Empty { name: String @index }
edge Near: Place -> Place { since: Date? @index }
";

pub struct Bed {
    folder: tempfile::TempDir,
}

/// Places `from..to`, each with one edge to the first place.
pub fn records(from: usize, to: usize) -> String {
    let mut text = String::new();
    for n in from..to {
        let picture = match n % 4 {
            0 => "null".to_string(),
            1 => "\"base64:\"".to_string(),
            2 => "\"base64:AAEC/w==\"".to_string(),
            _ => format!("\"base64:{}\"", "QUJD".repeat(30_000)),
        };
        let at = if n % 3 == 0 {
            "null".to_string()
        } else {
            format!("[{n}.5,0,-1,null]").replace("null", "3")
        };
        text.push_str(&format!(
            "{{\"type\":\"Place\",\"data\":{{\"code\":\"p{n}\",\"kind\":\"a\",\"size\":{n},\"active\":true,\
             \"note\":\"a note of {n}\",\"at\":{at},\"tags\":[\"x\",\"y{n}\"],\"marks\":[{n},2],\
             \"picture\":{picture}}}}}\n{{\"edge\":\"Near\",\"from\":\"p{n}\",\"to\":\"p0\",\
             \"data\":{{\"since\":{n}}}}}\n"
        ));
    }
    text
}

impl Bed {
    /// An empty graph.
    pub async fn empty(schema: &str) -> Self {
        let bed = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        init(&bed.root().await, schema, false).await.unwrap();
        bed
    }

    /// A graph of `loads` loads of `rows` places and edges each, a fragment a load and table.
    pub async fn of(loads: usize, rows: usize) -> Self {
        let bed = Self::empty(SCHEMA).await;
        for n in 0..loads {
            bed.append(&records(n * rows, (n + 1) * rows)).await;
        }
        bed
    }

    /// A copy with the same bytes.
    pub fn copy(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fixtures::tree::copy_tree(&self.path(), &folder.path().join("graph")).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("graph")
    }

    pub async fn root(&self) -> Root {
        open(&self.path()).await
    }

    /// Overwrite with references to objects outside of the graph.
    pub async fn overwrite_external(&self, records: &str) {
        let root = self.root().await;
        load_with(&root, None, Mode::Overwrite, records, true)
            .await
            .unwrap();
    }

    pub async fn append(&self, records: &str) {
        self.load(None, Mode::Append, records).await;
    }

    pub async fn load(&self, branch: Option<&str>, mode: Mode, records: &str) {
        load_into(&self.root().await, branch, mode, records)
            .await
            .unwrap();
    }

    pub async fn state(&self) -> BranchState {
        read_branch(&self.root().await, None, ReadMode::State)
            .await
            .unwrap()
            .1
    }

    /// Row and pin of a table of main.
    pub async fn table(&self, key: &str) -> (TableRow, Pin) {
        let state = self.state().await;
        let row = state.tables.iter().find(|t| t.table_key == key).unwrap();
        (row.clone(), row.state.pin().unwrap().clone())
    }

    /// The pinned image of a table of main.
    pub async fn image(&self, key: &str) -> Arc<Dataset> {
        let (row, pin) = self.table(key).await;
        open_pin(&self.root().await, &row, &pin)
            .await
            .unwrap()
            .dataset
    }

    /// The newest linear version of a table.
    pub async fn linear(&self, key: &str) -> Arc<Dataset> {
        let (row, _) = self.table(key).await;
        let root = self.root().await;
        root.open_dataset(&row.table_path, None, None)
            .await
            .unwrap()
    }

    pub async fn export(&self, at: &At) -> String {
        export_of(&self.root().await, None, at).await
    }

    /// `verify --deep` finds nothing.
    pub async fn is_sound(&self) {
        let options = VerifyOptions {
            deep: true,
            ..VerifyOptions::default()
        };
        let report = verify(&self.root().await, &options).await.unwrap();
        assert_eq!(report.outcome, verify::Outcome::Ok, "{report:#?}");
    }

    /// What an optimize may change of each table, in plain values.
    pub async fn shape(&self) -> BTreeMap<String, TableShape> {
        let root = self.root().await;
        let mut all = BTreeMap::new();
        for row in self.state().await.tables {
            let pin = row.state.pin().unwrap();
            let image = open_pin(&root, &row, pin).await.unwrap().dataset;
            let fragments: Vec<u32> = image
                .manifest()
                .fragments
                .iter()
                .map(|f| f.id as u32)
                .collect();
            let mut indexes = BTreeMap::new();
            for index in image.load_indices().await.unwrap().iter() {
                let covered = index.fragment_bitmap.clone().unwrap();
                let lag = fragments.iter().filter(|f| !covered.contains(**f)).count();
                indexes.insert(index.name.clone(), lag);
            }
            all.insert(
                row.table_key.clone(),
                TableShape {
                    fragments: fragments.len(),
                    version: pin.table_version,
                    last_linear: pin.metadata.last_linear_version,
                    rows: pin.row_count,
                    indexes,
                },
            );
        }
        all
    }

    /// Exact row ids of every row of a table, by id.
    pub async fn row_ids(&self, key: &str) -> BTreeMap<String, u64> {
        use arrow_array::cast::AsArray as _;
        let image = self.image(key).await;
        let mut scanner = image.scan();
        scanner.project(&["__id"]).unwrap().with_row_id();
        let batch = scanner.try_into_batch().await.unwrap();
        let ids = batch["__id"].as_string::<i32>();
        let rows = batch["_rowid"].as_primitive::<arrow_array::types::UInt64Type>();
        (0..batch.num_rows())
            .map(|n| (ids.value(n).to_string(), rows.value(n)))
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    pub fragments: usize,
    pub version: u64,
    pub last_linear: Option<u64>,
    pub rows: u64,
    /// Uncovered fragments by index.
    pub indexes: BTreeMap<String, usize>,
}

pub async fn open(path: &Path) -> Root {
    std::fs::create_dir_all(path).unwrap();
    Root::open(path.to_str().unwrap(), RootOptions::default())
        .await
        .unwrap()
}

pub async fn load_into(
    root: &Root,
    branch: Option<&str>,
    mode: Mode,
    records: &str,
) -> write::Result<()> {
    load_with(root, branch, mode, records, false).await
}

async fn load_with(
    root: &Root,
    branch: Option<&str>,
    mode: Mode,
    records: &str,
    external_blobs: bool,
) -> write::Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    std::fs::write(&file, records).unwrap();
    let options = LoadOptions {
        branch: branch.map(str::to_string),
        mode,
        actor: None,
        budget: graph::model::measure::HISTORY_RELEASE_BYTES,
        external_blobs,
        on_rows: Arc::new(|_| {}),
    };
    load(root, &Input::File(file), &options).await.map(drop)
}

pub async fn export_of(root: &Root, branch: Option<&str>, at: &At) -> String {
    let mut out = Vec::new();
    export(root, branch, at, &mut out, &|_| {}).await.unwrap();
    String::from_utf8(out).unwrap()
}

/// Run an async test on a stack that Lance's futures fit in.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    fixtures::on_deep_stack(test).unwrap();
}
