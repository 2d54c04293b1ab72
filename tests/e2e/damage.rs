//! Damaged roots: each is refused by both modes with a stable code or one line, and not touched.

use std::path::{Path, PathBuf};

use fixtures::damage::{flip, truncate};
use fixtures::fixture_s::{FixtureS, SpecS};
use fixtures::tree::{copy_tree, restore};

use crate::support::refusal::{every_command_refuses, upgrade_refuses};
use crate::support::roots::{fixture_s, unchanged};
use crate::support::run::{codes, upgrade};

/// Fixture S with a backup to undo damages from.
struct Victim {
    _dir: tempfile::TempDir,
    s: FixtureS,
    backup: PathBuf,
}

impl Victim {
    fn new(spec: SpecS) -> Self {
        let (dir, s) = fixture_s(spec);
        let backup = dir.path().join("backup");
        copy_tree(s.root.path(), &backup).unwrap();
        Self {
            _dir: dir,
            s,
            backup,
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.s.root.path().join(key)
    }

    /// Damage the root, assert that it is refused, and put it back; the verdict.
    fn refuses(&self, what: &str, damage: impl FnOnce(&Self)) -> String {
        damage(self);
        eprintln!("{what}");
        let verdict = upgrade_refuses(self.s.root.path());
        restore(&self.backup, self.s.root.path()).unwrap();
        verdict
    }
}

fn newest(folder: &Path) -> PathBuf {
    // V2 names count down: the newest version is the first name.
    let versions = std::fs::read_dir(folder.join("_versions")).unwrap();
    let names = versions.map(|e| e.unwrap().path());
    names
        .filter(|p| p.extension().is_some_and(|e| e == "manifest"))
        .min()
        .unwrap()
}

fn data_files(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(folder.join("data"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort();
    all
}

fn length(path: &Path) -> usize {
    usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap()
}

/// A folder where a file was.
fn folder_instead(path: &Path) {
    std::fs::remove_file(path).unwrap();
    std::fs::create_dir(path).unwrap();
    std::fs::write(path.join("inside"), "x").unwrap();
}

#[test]
fn the_catalog_as_a_whole() {
    let v = Victim::new(SpecS::stamp_8());
    let whole = |what: &str, damage: &dyn Fn(&Path)| {
        damage(&v.path("__manifest"));
        let verdict = every_command_refuses(v.s.root.path());
        restore(&v.backup, v.s.root.path()).unwrap();
        assert_eq!(verdict, "check_failed preflight_failed", "{what}");
    };
    let empty = |m: &Path| {
        std::fs::remove_dir_all(m).unwrap();
        std::fs::create_dir(m).unwrap();
    };
    whole("empty", &empty);
    whole("absent", &|m| std::fs::remove_dir_all(m).unwrap());
    whole("a file", &|m| {
        std::fs::remove_dir_all(m).unwrap();
        std::fs::write(m, "x").unwrap();
    });
    whole("garbage", &|m| {
        empty(m);
        std::fs::create_dir(m.join("_versions")).unwrap();
        for name in ["1.manifest", "18446744073709551614.manifest", "x.manifest"] {
            std::fs::write(m.join("_versions").join(name), "garbage garbage garbage").unwrap();
        }
    });
    whole("no versions", &|m| {
        std::fs::remove_dir_all(m.join("_versions")).unwrap()
    });
    whole("empty versions", &|m| empty(&m.join("_versions")));
    whole("no data", &|m| {
        std::fs::remove_dir_all(m.join("data")).unwrap()
    });
}

#[test]
fn the_newest_manifest() {
    let v = Victim::new(SpecS::stamp_9());
    let feature = format!("__manifest/tree/{}", v.s.feature);
    let gone = format!("__manifest/tree/{}", v.s.gone);
    for place in ["__manifest", feature.as_str(), &gone] {
        let at = newest(&v.path(place));
        let whole = length(&at);
        for keep in [0, 1, 15, 16, whole / 2, whole - 16, whole - 4, whole - 1] {
            v.refuses(&format!("{place} manifest of {keep} bytes"), |_| {
                truncate(&at, keep).unwrap()
            });
        }
        // The footer: offset of the manifest, two version numbers, magic. Lance reads the offset only.
        for back in [1, 4, 8, 9, 12, 16] {
            for bit in [0, 7] {
                eprintln!("{place} manifest, bit {bit} of the {back}th byte from the end");
                flip(&at, whole - back, bit).unwrap();
                let report = unchanged(v.s.root.path(), || upgrade(v.s.root.path(), &["--check"]));
                assert!(back <= 8 || !codes(&report).is_empty(), "{report:#}");
                restore(&v.backup, v.s.root.path()).unwrap();
            }
        }
    }
}

#[test]
fn the_data_files_of_the_catalog() {
    let v = Victim::new(SpecS::stamp_8());
    let feature = format!("__manifest/tree/{}", v.s.feature);
    for place in ["__manifest", &feature] {
        for at in data_files(&v.path(place)) {
            let whole = length(&at);
            for keep in [0, 1, whole / 2, whole - 1] {
                v.refuses(&format!("{at:?} of {keep} bytes"), |_| {
                    truncate(&at, keep).unwrap()
                });
            }
            v.refuses(&format!("{at:?} absent"), |_| {
                std::fs::remove_file(&at).unwrap()
            });
            v.refuses(&format!("{at:?} is a folder"), |_| folder_instead(&at));
        }
    }
}

#[test]
fn the_root_objects() {
    let v = Victim::new(SpecS::stamp_9());
    for object in ["_schema.pg", "_schema.ir.json", "__schema_state.json"] {
        let at = v.path(object);
        let whole = length(&at);
        for keep in [0, 1, whole / 2, whole - 2] {
            let verdict = v.refuses(&format!("{object} of {keep} bytes"), |_| {
                truncate(&at, keep).unwrap()
            });
            assert_eq!(
                verdict, "check_failed unsupported_source",
                "{object} of {keep} bytes"
            );
        }
        let verdict = v.refuses(&format!("{object} absent"), |_| {
            std::fs::remove_file(&at).unwrap()
        });
        assert_eq!(
            verdict, "check_failed unsupported_source",
            "{object} absent"
        );
        v.refuses(&format!("{object} is a folder"), |_| folder_instead(&at));
        for (what, bytes) in hostile() {
            let verdict = v.refuses(&format!("{object} is {what}"), |_| {
                std::fs::write(&at, &bytes).unwrap()
            });
            assert_eq!(
                verdict, "check_failed unsupported_source",
                "{object} is {what}"
            );
        }
    }
}

#[test]
fn ref_objects_and_retirement_archives() {
    let v = Victim::new(SpecS::stamp_9());
    let r = v.path(&format!("__manifest/_refs/branches/{}.json", v.s.feature));
    let archive = v.path(&format!(
        "__manifest/tree/{}/_omnigraph_retired_branch.json",
        v.s.gone
    ));
    for at in [&r, &archive] {
        let whole = length(at);
        for keep in [0, 1, whole / 2, whole - 1] {
            v.refuses(&format!("{at:?} of {keep} bytes"), |_| {
                truncate(at, keep).unwrap()
            });
        }
        for (what, bytes) in hostile() {
            v.refuses(&format!("{at:?} is {what}"), |_| {
                std::fs::write(at, &bytes).unwrap()
            });
        }
        let text = std::fs::read_to_string(at).unwrap();
        for (from, to) in [
            ("\"parentVersion\"", "\"parentversion\""),
            ("\"version_mapping\"", "\"versions\""),
        ] {
            v.refuses(&format!("{at:?} with {to}"), |_| {
                std::fs::write(at, text.replacen(from, to, 1)).unwrap()
            });
        }
    }
    v.refuses("a ref is a folder", |_| folder_instead(&r));
    let refs = v.path("__manifest/_refs/branches");
    for name in [
        "main.json",
        "..%2F..%2Fx.json",
        "a.json",
        "%zz.json",
        ".json",
        "stray.txt",
        "feature.json",
    ] {
        let plant = |_: &Victim| {
            std::fs::copy(&r, refs.join(name)).unwrap();
        };
        plant(&v);
        let report = upgrade(v.s.root.path(), &["--check"]);
        let passes = report["outcome"] == "check_passed";
        assert_eq!(
            passes,
            name == "stray.txt",
            "a stray ref {name}: {report:#}"
        );
        restore(&v.backup, v.s.root.path()).unwrap();
    }
}

/// Contents that are no JSON of any kind expected.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("null", b"null".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("a list", b"[]".to_vec()),
        ("deeply nested", vec![b'['; 200_000]),
        ("deep objects", br#"{"a":"#.repeat(100_000)),
        ("not UTF-8", vec![0xff, 0xfe, 0x00, 0x80]),
        ("zeros", vec![0; 4096]),
        ("a huge number", b"1e999999".to_vec()),
        ("a million open braces", vec![b'{'; 1_000_000]),
        ("a million open parentheses", vec![b'('; 1_000_000]),
    ]
}

#[test]
fn versions_folders_with_strangers_in_them() {
    let v = Victim::new(SpecS::stamp_8());
    let versions = v.path("__manifest/_versions");
    // A higher version that is no manifest decides what is latest.
    for name in [
        "18446744073709551610.manifest",
        "18446744073709551600.manifest",
    ] {
        v.refuses(name, |_| {
            std::fs::write(versions.join(name), "garbage").unwrap()
        });
        v.refuses(name, |_| {
            std::fs::copy(newest(&v.path("__manifest")), versions.join(name)).unwrap();
        });
    }
}
