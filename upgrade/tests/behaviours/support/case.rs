//! Fixture roots. Each kind is built once and kept in memory; a test gets a copy of its own.

use std::path::PathBuf;
use std::sync::Arc;

use fixtures::contract::{Contract, TypeSpec, Vintage};
use fixtures::damage::rows;
use fixtures::fixture_s::{ExpectedS, FixtureS, SpecS};
use fixtures::legacy_writer::{Layout, LegacyRoot};
use fixtures::tree::{TreeDigest, tree_digest};
use graph::store::{Root, RootOptions};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use ulid::Ulid;
use upgrade::{Report, UpgradeOptions, Work, upgrade};

/// The fixture roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// S at stamp 8.
    S8,
    /// S at stamp 9, underscored.
    S9,
    /// S at stamp 9 with a live schema-apply lock.
    S9Lock,
    /// S at stamp 9, bare spellings.
    S9Bare,
    /// S at stamp 9, whole row sets overwritten.
    S9Overwritten,
    /// S at stamp 13.
    S13,
}

impl Kind {
    /// Every one without a lock.
    pub const UNLOCKED: [Self; 5] = [
        Self::S8,
        Self::S9,
        Self::S9Bare,
        Self::S9Overwritten,
        Self::S13,
    ];

    /// Its stamp.
    pub fn stamp(self) -> u32 {
        self.spec().stamp
    }

    fn spec(self) -> SpecS {
        let nine = SpecS::stamp_9();
        match self {
            Self::S8 => SpecS::stamp_8(),
            Self::S9 | Self::S9Lock => nine,
            Self::S13 => SpecS::stamp_13(),
            Self::S9Bare => SpecS {
                vintage: Vintage::Bare,
                ..nine
            },
            Self::S9Overwritten => SpecS {
                layout: Layout::Overwrite,
                ..nine
            },
        }
    }

    fn cell(self) -> &'static OnceCell<Template> {
        static CELLS: [OnceCell<Template>; 6] = [const { OnceCell::const_new() }; 6];
        &CELLS[self as usize]
    }

    /// A copy of this root.
    pub async fn copy(self) -> Case {
        let template = self.cell().get_or_init(|| Template::build(self)).await;
        template.copy()
    }
}

/// The attempt of every run that does not ask for another.
pub fn attempt() -> Ulid {
    Ulid::from_string("01M9000000000000000000000A").unwrap()
}

/// Names and ids of a fixture root.
#[derive(Debug)]
pub struct Names {
    pub commits: [String; 6],
    pub feature: String,
    pub fresh: String,
    pub child: String,
    pub gone: String,
    pub idle: String,
    pub lock: Option<String>,
    pub person: TypeSpec,
    pub contract: Contract,
    expected: ExpectedS,
}

impl Names {
    /// The id of commit `number` (1 to 6).
    pub fn commit(&self, number: usize) -> &str {
        &self.commits[number - 1]
    }

    /// Live refs and their source versions, in intent order.
    pub fn heads(&self) -> [(Option<&str>, u64); 4] {
        [
            (Some(&self.child), 3),
            (Some(&self.feature), 5),
            (Some(&self.fresh), 4),
            (None, 4),
        ]
    }

    /// The counts a check must report, `census_*` and `legacy_bytes` aside.
    pub fn work(&self) -> Work {
        let e = self.expected;
        Work {
            live_refs: e.live_refs,
            retired_refs: e.retired_refs + u64::from(self.lock.is_some()),
            orphan_writers: e.orphan_writers,
            legacy_commits: e.legacy_commits,
            bookkeeping_versions: e.bookkeeping_versions,
            absent_parents: e.absent_parents,
            data_files: e.data_files,
            id_shards: e.id_shards,
            writer_shards: e.writer_shards,
            schema_contents: e.schema_contents,
            table_opens: e.table_opens,
            ..Work::default()
        }
    }
}

struct Template {
    files: fixtures::template::Template,
    names: Arc<Names>,
}

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("behaviours-")
        .rand_bytes(12)
        .tempdir()
        .unwrap()
}

impl Template {
    async fn build(kind: Kind) -> Self {
        let folder = folder();
        let mut s = FixtureS::create(&folder.path().join("s"), kind.spec())
            .await
            .unwrap();
        let lock = match kind {
            Kind::S9Lock => Some(rows::lock(&mut s.root).await.unwrap()),
            _ => None,
        };
        let names = Names {
            commits: s.commits,
            feature: s.feature,
            fresh: s.fresh,
            child: s.child,
            gone: s.gone,
            idle: s.idle,
            lock,
            person: s.person,
            contract: s.root.contract.clone(),
            expected: kind.spec().expected(),
        };
        Self {
            files: fixtures::template::Template::of(folder.path()).unwrap(),
            names: Arc::new(names),
        }
    }

    fn copy(&self) -> Case {
        let folder = folder();
        self.files.lay_out(folder.path()).unwrap();
        Case {
            folder,
            names: self.names.clone(),
        }
    }
}

/// A root of one test; its files go with it.
#[derive(Debug)]
pub struct Case {
    folder: TempDir,
    pub names: Arc<Names>,
}

impl Case {
    /// The root folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// The root as text.
    pub fn uri(&self) -> String {
        self.path().to_str().unwrap().to_string()
    }

    /// Open the root.
    pub async fn root(&self) -> Root {
        Root::open(&self.uri(), RootOptions::default())
            .await
            .unwrap()
    }

    /// The root to write on as its release did; live refs and `more` are opened.
    pub async fn legacy(&self, more: &[&str]) -> LegacyRoot {
        let n = &self.names;
        let mut natives = vec![n.feature.as_str(), &n.fresh, &n.child];
        natives.extend(more);
        LegacyRoot::open(&self.path(), n.contract.clone(), 77, &natives)
            .await
            .unwrap()
    }

    /// Every file.
    pub fn digest(&self) -> TreeDigest {
        tree_digest(self.path()).unwrap()
    }

    /// A copy of the root as it stands.
    pub fn copy(&self) -> Self {
        let folder = folder();
        let files = fixtures::template::Template::of(self.folder.path()).unwrap();
        files.lay_out(folder.path()).unwrap();
        Self {
            folder,
            names: self.names.clone(),
        }
    }

    /// One run; the attempt is [`attempt`] unless set.
    pub async fn run(&self, mut options: UpgradeOptions) -> Report {
        options.attempt.get_or_insert(attempt());
        upgrade(&self.root().await, &options).await
    }

    /// Check.
    pub async fn check(&self) -> Report {
        self.run(UpgradeOptions {
            check: true,
            ..UpgradeOptions::default()
        })
        .await
    }

    /// Execute.
    pub async fn execute(&self) -> Report {
        self.run(UpgradeOptions::default()).await
    }
}
