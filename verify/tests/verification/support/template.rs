//! Fixture roots in memory, and copies of them on disk.

use std::path::{Path, PathBuf};

use fixtures::tree::walk;
use graph::store::Root;
use tempfile::TempDir;

/// Every file of a root, and its names.
pub struct Template {
    files: fixtures::template::Template,
    feature: String,
    gone: String,
}

pub fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("verification-")
        .rand_bytes(12)
        .tempdir()
        .unwrap()
}

impl Template {
    /// The root `s` in `folder`, which goes.
    pub fn of(folder: TempDir, feature: String, gone: String) -> Self {
        Self {
            files: fixtures::template::Template::of(folder.path()).unwrap(),
            feature,
            gone,
        }
    }

    /// A copy on disk.
    pub fn copy(&self) -> Case {
        let folder = folder();
        self.files.lay_out(folder.path()).unwrap();
        Case {
            folder,
            feature: self.feature.clone(),
            gone: self.gone.clone(),
        }
    }
}

/// A root of one test; its files go with it.
pub struct Case {
    folder: TempDir,
    /// Native ref of the branch `feature`.
    pub feature: String,
    /// Native ref of a retired branch.
    pub gone: String,
}

impl Case {
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub async fn root(&self) -> Root {
        super::open(&self.path()).await
    }

    pub fn into_template(self) -> Template {
        Template::of(self.folder, self.feature, self.gone)
    }

    /// The keys of all files that fit, sorted.
    pub fn keys(&self, fits: impl Fn(&str) -> bool) -> Vec<String> {
        let mut keys = Vec::new();
        walk(&self.path(), "", &mut |key, _| {
            if fits(key) {
                keys.push(key.to_string());
            }
            Ok(())
        })
        .unwrap();
        keys
    }

    pub fn file(&self, key: &str) -> PathBuf {
        self.path().join(key)
    }

    pub fn read(&self, key: &str) -> Vec<u8> {
        std::fs::read(self.file(key)).unwrap()
    }

    pub fn write(&self, key: &str, bytes: &[u8]) {
        let path: &Path = &self.file(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn remove(&self, key: &str) {
        std::fs::remove_file(self.file(key)).unwrap();
    }
}
