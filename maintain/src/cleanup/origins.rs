//! Base paths: which files of this graph another tree reads (`docs/format/maintenance.md` 5.7, borrowed origins). Pure.

use std::collections::BTreeSet;

/// Top folders of a graph that hold datasets.
const FOLDERS: [&str; 3] = ["nodes", "edges", "__manifest"];

/// Places, relative to the root, whose files others read.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    keys: BTreeSet<String>,
}

/// The place of a base path below the root at `uri`; `None` for one that lies outside. A path that was written under
/// another spelling of the root, or before the root was moved, is known by its last dataset folder: unknown means keep.
pub fn key_of(uri: &str, base: &str) -> Option<String> {
    let bare = |text: &str| -> String {
        let text = match text.split_once("://") {
            Some(("file" | "file-object-store", path)) => path,
            _ => text,
        };
        text.trim_end_matches('/').to_string()
    };
    let (uri, base) = (bare(uri), bare(base));
    if base == uri {
        return Some(String::new());
    }
    if let Some(key) = base.strip_prefix(&uri).and_then(|r| r.strip_prefix('/')) {
        return Some(key.to_string());
    }
    let at = FOLDERS
        .iter()
        .filter_map(|folder| base.rfind(&format!("/{folder}/")))
        .max()?;
    Some(base[at + 1..].to_string())
}

impl Origins {
    /// Note a base path as a manifest has it.
    pub fn add_base(&mut self, uri: &str, base: &str) {
        self.keys.extend(key_of(uri, base));
    }

    /// Note a place of this graph.
    pub fn add_key(&mut self, key: String) {
        self.keys.insert(key);
    }

    /// Whether `key` equals, contains or lies under an origin.
    pub fn covers(&self, key: &str) -> bool {
        let above = key
            .char_indices()
            .filter(|(_, c)| *c == '/')
            .map(|(at, _)| &key[..at])
            .chain([key, ""]);
        above.into_iter().any(|k| self.keys.contains(k)) || self.lies_below(key)
    }

    /// Whether an origin is `key` or lies under it.
    pub fn lies_below(&self, key: &str) -> bool {
        let below = format!("{key}/");
        self.keys.contains(key)
            || self
                .keys
                .range(below.clone()..)
                .next()
                .is_some_and(|k| k.starts_with(&below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_base_paths() {
        for (uri, base, want) in [
            ("/data/g", "/data/g/nodes/a", Some("nodes/a")),
            ("/data/g", "/data/g/nodes/a/", Some("nodes/a")),
            ("/data/g", "file:///data/g/nodes/a", Some("nodes/a")),
            (
                "file-object-store:///data/g",
                "/data/g/nodes/a/tree/b",
                Some("nodes/a/tree/b"),
            ),
            ("s3://b/g", "s3://b/g/edges/e", Some("edges/e")),
            ("s3://b/g", "s3://b/g2/edges/e", Some("edges/e")),
            ("/data/g", "/old/nodes/g/nodes/a", Some("nodes/a")),
            ("/data/g", "/elsewhere/blobs", None),
            ("/data/g", "/data/g", Some("")),
        ] {
            assert_eq!(key_of(uri, base).as_deref(), want, "{base}");
        }
    }

    #[test]
    fn equal_above_and_below() {
        let mut origins = Origins::default();
        origins.add_key("nodes/a/tree/b".into());
        for (key, covered) in [
            ("nodes/a/tree/b", true),
            ("nodes/a/tree/b/data/x.lance", true),
            ("nodes/a/tree", true),
            ("nodes/a", true),
            ("nodes/a/tree/bc/data/x.lance", false),
            ("nodes/a/data/x.lance", false),
        ] {
            assert_eq!(origins.covers(key), covered, "{key}");
        }
        assert!(origins.lies_below("nodes/a"));
        assert!(!origins.lies_below("nodes/a/tree/b/data"));
        origins.add_key(String::new());
        assert!(origins.covers("edges/x/data/y.lance"));
    }
}
