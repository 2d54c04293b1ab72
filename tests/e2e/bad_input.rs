//! Paths that are no graph, and files that cannot be read: one line or a report, exit 1, nothing
//! created.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use fixtures::fixture_s::SpecS;
use fixtures::tree::tree_digest;

use crate::support::refusal::{every_command_refuses, verdict};
use crate::support::roots::{assert_same, fixture_s, unchanged};
use crate::support::run::{command, finish, omnigraph};

#[test]
fn a_path_that_is_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    std::os::unix::fs::symlink(dir.path().join("nowhere"), dir.path().join("dangling")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("loop"), dir.path().join("loop")).unwrap();
    let at = dir.path().to_str().unwrap();
    unchanged_with_folders(dir.path(), || {
        for path in [
            format!("{at}/absent"),
            format!("{at}/absent/deeper"),
            format!("file://{at}/absent"),
            format!("{at}/file"),
            format!("{at}/file/below"),
            format!("{at}/dangling"),
            format!("{at}/loop"),
            format!("{at}/{}", "long".repeat(2000)),
            "relative-and-absent".into(),
            "nosuchscheme://bucket/graph".into(),
            "file://remote-host/graph".into(),
            "://".into(),
            "memory".into(),
        ] {
            for args in [
                &["upgrade", &path, "--check"][..],
                &["upgrade", &path, "--quiet"],
                &["upgrade", &path, "--json"],
                &["snapshot", &path],
                &["commit", "list", &path],
            ] {
                omnigraph(args).one_error_line();
            }
        }
        let empty = omnigraph(["upgrade", "", "--check"]);
        assert_eq!(
            (empty.code, empty.stdout.as_str()),
            (Some(1), ""),
            "{empty:#?}"
        );
    });
}

#[test]
fn a_path_that_is_not_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = dir.path().as_os_str().as_encoded_bytes().to_vec();
    bytes.extend(b"/gr\xffph");
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    std::fs::create_dir(&path).unwrap();
    // The argument itself is refused, or the canonical path behind a clean name is.
    let direct = omnigraph([std::ffi::OsStr::new("upgrade"), path.as_os_str()]);
    assert!(
        matches!(direct.code, Some(1 | 2)) && direct.stdout.is_empty(),
        "{direct:#?}"
    );
    let alias = dir.path().join("alias");
    std::os::unix::fs::symlink(&path, &alias).unwrap();
    let line = omnigraph(["upgrade", alias.to_str().unwrap(), "--check"]).one_error_line();
    assert!(line.contains("UTF-8"), "{line}");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_no_graph() {
    let dir = tempfile::tempdir().unwrap();
    unchanged_with_folders(dir.path(), || every_command_refuses(dir.path()));
    std::fs::write(dir.path().join("notes.txt"), "hello").unwrap();
    std::fs::create_dir(dir.path().join("nodes")).unwrap();
    unchanged_with_folders(dir.path(), || every_command_refuses(dir.path()));
    std::fs::create_dir(dir.path().join("__manifest")).unwrap();
    let verdict = unchanged_with_folders(dir.path(), || every_command_refuses(dir.path()));
    assert_eq!(verdict, "check_failed preflight_failed");
    // A table of a graph is a Lance dataset, but no graph.
    let (_dir, s) = fixture_s(SpecS::stamp_8());
    let table = std::fs::read_dir(s.root.path().join("nodes"))
        .unwrap()
        .next();
    every_command_refuses(&table.unwrap().unwrap().path());
    every_command_refuses(&s.root.path().join("__manifest"));
    every_command_refuses(&s.root.path().join("__manifest/tree"));
}

/// [`unchanged`], which does not see empty folders, with the folders compared too.
fn unchanged_with_folders<T>(folder: &Path, work: impl FnOnce() -> T) -> T {
    let before = folders(folder);
    let out = unchanged_files(folder, work);
    assert_eq!(folders(folder), before);
    out
}

/// Like [`unchanged`], for folders that hold dangling links.
fn unchanged_files<T>(folder: &Path, work: impl FnOnce() -> T) -> T {
    if tree_digest(folder).is_ok() {
        return unchanged(folder, work);
    }
    work()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            out.extend(folders(&path));
        }
        out.push(path);
    }
    out.sort();
    out
}

/// Runs the binary as a user that file modes bind: this one, or nobody when this one is root.
struct Bound {
    binary: PathBuf,
    as_root: bool,
    _dir: tempfile::TempDir,
}

impl Bound {
    fn new() -> Self {
        let as_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        let dir = tempfile::tempdir().unwrap();
        mode(dir.path(), 0o755);
        // Nobody may not reach the build folder.
        let built = env!("CARGO_BIN_EXE_omnigraph");
        let binary = dir.path().join("omnigraph");
        if std::fs::hard_link(built, &binary).is_err() {
            std::fs::copy(built, &binary).unwrap();
        }
        Self {
            binary,
            as_root,
            _dir: dir,
        }
    }

    fn upgrade(&self, root: &Path, extra: &[&str]) -> String {
        let mut run = std::process::Command::new(&self.binary);
        run.args(["upgrade", root.to_str().unwrap(), "--json", "--quiet"])
            .args(extra);
        if self.as_root {
            run.uid(65534).gid(65534);
        }
        run.current_dir("/");
        verdict(finish(run))
    }
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_may_not_be_read_is_refused() {
    let (dir, s) = fixture_s(SpecS::stamp_8());
    let root = s.root.path();
    mode(dir.path(), 0o755);
    let bound = Bound::new();
    for path in folders(root) {
        mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    assert_eq!(bound.upgrade(root, &["--check"]), "check_passed ");
    let manifest = root.join("__manifest");
    let newest = manifest.join("_versions/18446744073709551611.manifest");
    assert!(newest.exists());
    let gone = &s.gone;
    let data = |folder: &Path| {
        std::fs::read_dir(folder.join("data"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    for path in [
        newest,
        data(&manifest),
        data(&manifest.join("tree").join(&s.feature)),
        manifest.join("_versions"),
        manifest.join("_refs/branches"),
        manifest
            .join("_refs/branches")
            .join(format!("{}.json", s.feature)),
        manifest.join("tree"),
        manifest.join("tree").join(gone),
        manifest
            .join("tree")
            .join(gone)
            .join("_omnigraph_retired_branch.json"),
        manifest.join("tree").join(gone).join("_versions"),
        root.join("_schema.pg"),
        root.join("_schema.ir.json"),
        root.join("__schema_state.json"),
        root.join("nodes"),
        manifest,
        root.to_path_buf(),
    ] {
        let before = tree_digest(root).unwrap();
        let was = std::fs::metadata(&path).unwrap().permissions().mode();
        mode(&path, 0o000);
        let check = bound.upgrade(root, &["--check"]);
        let execute = bound.upgrade(root, &[]);
        mode(&path, was);
        assert!(
            !check.contains("check_passed"),
            "{path:?} may not be read, yet: {check}"
        );
        assert!(
            !execute.contains("completed"),
            "{path:?} may not be read, yet: {execute}"
        );
        assert!(
            check.contains("preflight_failed") || check.starts_with("error: "),
            "{path:?}: {check}"
        );
        assert_same(root, &before);
    }
}

#[test]
fn a_root_that_may_not_be_written_is_refused_whole() {
    let (dir, s) = fixture_s(SpecS::stamp_8());
    let root = s.root.path();
    mode(dir.path(), 0o755);
    let bound = Bound::new();
    let all = folders(root);
    for path in all.iter().map(PathBuf::as_path).chain([root]) {
        mode(path, if path.is_dir() { 0o555 } else { 0o444 });
    }
    let before = tree_digest(root).unwrap();
    let check = bound.upgrade(root, &["--check"]);
    let execute = bound.upgrade(root, &[]);
    for path in all.iter().map(PathBuf::as_path).chain([root]) {
        mode(path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    assert_eq!(check, "check_passed ");
    assert_eq!(execute, "check_failed preflight_failed");
    assert_same(root, &before);
    let mut run = command(["upgrade", root.to_str().unwrap(), "--quiet"]);
    run.current_dir("/");
    finish(run).exits(0);
}
