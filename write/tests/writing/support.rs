//! Graphs in temporary folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_branch};
use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::store::{Root, RootOptions};
use graph::view::At;
use verify::{VerifyOptions, verify};
use write::load::{Input, LoadOptions, Loaded, Mode, load};
use write::{Result, WriteError};

pub use fixtures::on_deep_stack;

/// Two node types, one keyed, and two edge types.
pub const SCHEMA: &str = "\
node Person {
    code: String @key
    age: I32? @range(age, 0..150)
    email: String? @unique
}
node City { name: String }
edge Lives: Person -> City @card(0..2) { since: I64? }
edge Knows: Person -> Person
";

/// A graph and the folder it lies in.
pub struct Graph {
    folder: tempfile::TempDir,
    pub root: Root,
}

/// A load with every choice made.
pub fn options(mode: Mode) -> LoadOptions {
    LoadOptions {
        branch: None,
        mode,
        actor: None,
        budget: HISTORY_RELEASE_BYTES,
        external_blobs: false,
        on_rows: Arc::new(|_| {}),
    }
}

impl Graph {
    /// A new graph with [`SCHEMA`].
    pub async fn new() -> Self {
        Self::with(SCHEMA).await
    }

    /// A new graph with another schema.
    pub async fn with(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g");
        std::fs::create_dir(&path).unwrap();
        let root = open(&path).await;
        write::genesis::init(&root, schema, false).await.unwrap();
        Self { folder, root }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("g")
    }

    /// Load a text.
    pub async fn try_load(&self, text: &str, options: &LoadOptions) -> Result<Loaded> {
        load_into(&self.root, text, options).await
    }

    /// Load a text into main.
    pub async fn load(&self, mode: Mode, text: &str) -> Loaded {
        self.try_load(text, &options(mode)).await.unwrap()
    }

    /// Load a text into a branch.
    pub async fn load_branch(&self, branch: &str, mode: Mode, text: &str) -> Loaded {
        let options = LoadOptions {
            branch: Some(branch.into()),
            ..options(mode)
        };
        self.try_load(text, &options).await.unwrap()
    }

    /// The failure of a load into main.
    pub async fn refused(&self, mode: Mode, text: &str) -> WriteError {
        self.try_load(text, &options(mode)).await.unwrap_err()
    }

    pub async fn state(&self, branch: Option<&str>) -> BranchState {
        let (_, state) = read_branch(&self.root, branch, ReadMode::WithContract)
            .await
            .unwrap();
        state
    }

    pub async fn export(&self, branch: Option<&str>, at: &At) -> String {
        export(&self.root, branch, at).await
    }

    /// Main as it is.
    pub async fn shown(&self) -> String {
        self.export(None, &At::Head).await
    }

    /// Everything is sound.
    pub async fn verify(&self) {
        verified(&self.root).await;
    }
}

pub async fn open(path: &Path) -> Root {
    Root::open(&path.display().to_string(), RootOptions::default())
        .await
        .unwrap()
}

pub async fn load_into(root: &Root, text: &str, options: &LoadOptions) -> Result<Loaded> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    load(root, &Input::File(file.path().to_path_buf()), options).await
}

pub async fn export(root: &Root, branch: Option<&str>, at: &At) -> String {
    let mut out = Vec::new();
    write::export::export(root, branch, at, &mut out, &|_| {})
        .await
        .unwrap();
    String::from_utf8(out).unwrap()
}

pub async fn verified(root: &Root) {
    let options = VerifyOptions {
        deep: true,
        ..VerifyOptions::default()
    };
    let report = verify(root, &options).await.unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

/// One person a line.
pub fn people(codes: &[&str]) -> String {
    codes
        .iter()
        .map(|code| format!("{{\"type\":\"Person\",\"data\":{{\"code\":\"{code}\"}}}}\n"))
        .collect()
}

/// One city a line.
pub fn cities(ids: &[&str]) -> String {
    ids.iter()
        .map(|id| format!("{{\"type\":\"City\",\"id\":\"{id}\",\"data\":{{\"name\":\"{id}\"}}}}\n"))
        .collect()
}

/// One edge a line: id, from, to.
pub fn lives(edges: &[(&str, &str, &str)]) -> String {
    edges
        .iter()
        .map(|(id, from, to)| {
            format!("{{\"edge\":\"Lives\",\"id\":\"{id}\",\"from\":\"{from}\",\"to\":\"{to}\"}}\n")
        })
        .collect()
}
