//! A root in memory, and copies of it on disk.
//!
//! A root with branches holds absolute paths (Lance shallow clones), so a copy lives under a path of the
//! same length and the paths inside `_versions/` and `_transactions/` are rewritten.

use std::path::{Path, PathBuf};

use fixtures::tree::walk;
use graph::store::Root;
use tempfile::TempDir;

/// Every file of a root.
pub struct Template {
    base: PathBuf,
    files: Vec<(String, Vec<u8>)>,
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
        let mut files = Vec::new();
        walk(folder.path(), "", &mut |key, path| {
            files.push((key.to_string(), std::fs::read(path).unwrap()));
            Ok(())
        })
        .unwrap();
        Self {
            base: folder.path().to_path_buf(),
            files,
            feature,
            gone,
        }
    }

    /// A copy on disk.
    pub fn copy(&self) -> Case {
        let folder = folder();
        let (old, new) = (
            self.base.to_str().unwrap().as_bytes(),
            folder.path().to_str().unwrap().as_bytes(),
        );
        assert_eq!(old.len(), new.len());
        for (key, bytes) in &self.files {
            let path = folder.path().join(key);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let holds_paths = matches!(key.rsplit('/').nth(1), Some("_versions" | "_transactions"));
            let mut bytes = bytes.clone();
            let mut at = 0;
            while holds_paths && at + old.len() <= bytes.len() {
                if bytes[at..].starts_with(old) {
                    bytes[at..at + old.len()].copy_from_slice(new);
                    at += old.len();
                } else {
                    at += 1;
                }
            }
            std::fs::write(path, bytes).unwrap();
        }
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
