//! The commands of the write path: texts, documents, exit codes.

use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::roots::unchanged;
use crate::support::run::{Run, command, finish, omnigraph};

const SCHEMA: &str =
    "node Person {\n    code: String @key\n    age: I32?\n}\nedge Knows: Person -> Person\n";
const ROWS: &str = "{\"edge\":\"Knows\",\"id\":\"k\",\"from\":\"a\",\"to\":\"b\",\"data\":{}}\n\
                    {\"type\":\"Person\",\"id\":\"a\",\"data\":{\"age\":1,\"code\":\"a\"}}\n\
                    {\"type\":\"Person\",\"id\":\"b\",\"data\":{\"code\":\"b\"}}\n";

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        place.file("s.pg", SCHEMA);
        place.file("rows.jsonl", ROWS);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn root(&self) -> String {
        self.text("g")
    }

    /// Run with the words of `line`; `ROOT` is the graph, `@name` a file beside it.
    fn run(&self, line: &str) -> Run {
        omnigraph(self.words(line))
    }

    fn words(&self, line: &str) -> Vec<String> {
        line.split(' ')
            .map(|word| match word.strip_prefix('@') {
                Some(name) => self.text(name),
                None if word == "ROOT" => self.root(),
                None => word.to_string(),
            })
            .collect()
    }

    fn graph(&self) {
        self.run("init --schema @s.pg ROOT").exits(0);
        self.run("load --data @rows.jsonl --mode overwrite ROOT")
            .exits(0);
    }

    /// Both renderings, with paths, ids, times and hashes replaced.
    fn shown(&self, line: &str) -> String {
        let human = self.run(line).exits(0);
        let json = self.run(&format!("{line} --json")).exits(0);
        json.json();
        self.redact(&format!("{}{}", human.stdout, json.stdout))
    }

    fn redact(&self, said: &str) -> String {
        let said = said.replace(&self.text(""), "[folder]/");
        said.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == ':' || c == '-'))
            .map(|token| {
                let end = token.trim_end_matches(|c: char| {
                    !(c.is_ascii_alphanumeric() || c == ':' || c == '-')
                });
                let rest = &token[end.len()..];
                let bare = end.strip_prefix("sha256:").unwrap_or(end);
                let shown = if end.len() == 26 && end.starts_with("01") {
                    "[ulid]"
                } else if bare.len() == 64 && bare.bytes().all(|b| b.is_ascii_hexdigit()) {
                    "[hash]"
                } else if end.starts_with("20") && end.contains('T') && end.ends_with('Z') {
                    "[time]"
                } else if end.len() >= 10 && end.bytes().all(|b| b.is_ascii_digit()) {
                    "[number]"
                } else {
                    end
                };
                format!("{shown}{rest}")
            })
            .collect()
    }
}

#[test]
fn the_documents_of_every_command() {
    let place = Place::new();
    let init = place.run("init --schema @s.pg @h").exits(0);
    let json = place.run("init --schema @s.pg ROOT --json").exits(0);
    insta::assert_snapshot!("init", place.redact(&(init.stdout + &json.stdout)));
    insta::assert_snapshot!(
        "load_overwrite",
        place.shown("load --data @rows.jsonl --mode overwrite ROOT")
    );
    place.file(
        "more.jsonl",
        "{\"type\":\"Person\",\"data\":{\"code\":\"a\",\"age\":2}}",
    );
    insta::assert_snapshot!(
        "load_merge",
        place.shown("load --data @more.jsonl --mode merge --as ada ROOT")
    );
    let create = place.run("branch create dev ROOT").exits(0);
    let json = place
        .run("branch create deep --from dev ROOT --json")
        .exits(0);
    insta::assert_snapshot!(
        "branch_create",
        place.redact(&(create.stdout + &json.stdout))
    );
    insta::assert_snapshot!("branch_list", place.shown("branch list ROOT"));
    let delete = place.run("branch delete dev ROOT").exits(0);
    let json = place.run("branch delete deep ROOT --json").exits(0);
    insta::assert_snapshot!(
        "branch_delete",
        place.redact(&(delete.stdout + &json.stdout))
    );
    let list = place.run("commit list ROOT --json").exits(0).json();
    let id = list["commits"][0]["graph_commit_id"].as_str().unwrap();
    insta::assert_snapshot!(
        "commit_show",
        place.shown(&format!("commit show {id} ROOT"))
    );
    let nonce = id.rsplit('.').next().unwrap();
    let by_nonce = place.run(&format!("commit show {nonce} ROOT")).exits(0);
    assert!(by_nonce.stdout.contains(id), "{by_nonce:#?}");
    let schema = place.run("schema show ROOT").exits(0);
    assert_eq!(schema.stdout, SCHEMA);
}

#[test]
fn export_is_the_input_in_order_and_reads_only() {
    let place = Place::new();
    place.graph();
    let exported = unchanged(&place.path("g"), || place.run("export ROOT").exits(0));
    assert_eq!(
        (exported.stdout.as_str(), exported.stderr.as_str()),
        (ROWS, "")
    );
    let at = place.run("export --at 1 ROOT").exits(0);
    assert_eq!(at.stdout, "");
    let line = place.run("export --at 9 ROOT").one_error_line();
    assert!(line.contains("no version 9; its latest is 2"), "{line}");
    // A reader that goes away early is no failure.
    let mut child = command(place.words("export ROOT"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn standard_input_is_loaded_too() {
    let place = Place::new();
    place.run("init --schema @s.pg ROOT").exits(0);
    for mode in ["overwrite", "merge"] {
        let mut load = command(place.words(&format!("load --data - --mode {mode} ROOT")));
        load.stdin(std::fs::File::open(place.path("rows.jsonl")).unwrap());
        finish(load).exits(0);
        assert_eq!(place.run("export ROOT").stdout, ROWS);
    }
}

#[test]
fn refusals_are_one_line_and_write_nothing() {
    let place = Place::new();
    place.graph();
    place.file(
        "twice.jsonl",
        "{\"type\":\"Person\",\"data\":{\"code\":\"z\"}}\n{\"type\":\"Person\",\"data\":{\"code\":\"z\"}}\n",
    );
    place.file("dup.jsonl", "{\"type\":\"Person\",\"data\":{\"code\":\"c\"}}\n{\"type\":\"Person\",\"data\":{\"code\":\"a\"}}\n");
    place.file(
        "lost.jsonl",
        "{\"edge\":\"Knows\",\"from\":\"a\",\"to\":\"z\"}\n",
    );
    place.file(
        "type.jsonl",
        "{\"type\":\"Person\",\"data\":{\"code\":\"c\",\"age\":\"old\"}}\n",
    );
    place.file(
        "torn.jsonl",
        "{\"type\":\"Person\",\"data\":{\"code\":\"c\"}}\n{\"type\":",
    );
    place.file(
        "bare.pg",
        "node A { x: String }\nedge E: A -> A { @unique(src, dst) }\n",
    );
    place.file("check.pg", "node A { x: String? @check(x, \"[a\") }\n");
    for (line, told) in [
        (
            "load --data @dup.jsonl --mode append ROOT",
            "line 2: node:Person already holds id \"a\"",
        ),
        (
            "load --data @twice.jsonl --mode append ROOT",
            "line 2: node:Person has id \"z\" on line 1 already",
        ),
        (
            "load --data @lost.jsonl --mode append ROOT",
            "line 1: edge:Knows names node:Person \"z\" as \"to\"",
        ),
        (
            "load --data @type.jsonl --mode merge ROOT",
            "line 1: node:Person.age",
        ),
        ("load --data @torn.jsonl --mode overwrite ROOT", "line 2"),
        ("load --data @none.jsonl --mode append ROOT", "none.jsonl"),
        (
            "load --data @rows.jsonl --mode merge --branch dev ROOT",
            "no branch 'dev'",
        ),
        ("init --schema @s.pg ROOT", "already holds a graph"),
        ("init --schema @none.pg @n", "none.pg"),
        (
            "init --schema @bare.pg @n",
            "line 2, column 26: edge E has no property 'src'; the endpoint is spelled @src",
        ),
        ("branch create main ROOT", "reserved"),
        ("branch create größe ROOT", "ASCII"),
        ("branch create a. ROOT", "starts or ends with '.'"),
        (
            "load --data @rows.jsonl --mode merge --as \t ROOT",
            "control characters",
        ),
        (
            "init --schema @check.pg @n",
            "node:A: property x: the @check pattern",
        ),
        ("init --schema @s.pg @a?b", "cannot lie at a path with '?'"),
        ("branch delete main ROOT", "main cannot be deleted"),
        ("branch delete dev ROOT", "no branch 'dev'"),
        ("commit show 1 ROOT", "omnigraph snapshot --at 1"),
        ("commit show nonsense ROOT", "nonsense"),
        ("schema show --branch dev ROOT", "no branch 'dev'"),
    ] {
        let said = unchanged(&place.path("g"), || place.run(line).one_error_line());
        assert!(said.contains(told), "{line}\n{said}\nexpected: {told}");
    }
    // A usage error is the argument parser's.
    for line in [
        "load --data @rows.jsonl ROOT",
        "load --mode append ROOT",
        "load --data @rows.jsonl --mode replace ROOT",
        "branch create",
        "init ROOT",
    ] {
        assert_eq!(place.run(line).code, Some(2), "{line}");
    }
}

/// Indexes carry no checksum: a load never asks one whether an id exists.
#[test]
fn a_damaged_index_lets_no_id_in_twice() {
    let place = Place::new();
    place.graph();
    place.run("optimize ROOT").exits(0);
    let mut removed = 0;
    fixtures::tree::walk(&place.path("g"), "", &mut |key, path| {
        if key.contains("/_indices/") {
            std::fs::remove_file(path).unwrap();
            removed += 1;
        }
        Ok(())
    })
    .unwrap();
    assert!(removed > 0);
    let line = place
        .run("load --data @rows.jsonl --mode append ROOT")
        .one_error_line();
    assert!(line.contains("already holds id"), "{line}");
    place.file(
        "new.jsonl",
        "{\"type\":\"Person\",\"data\":{\"code\":\"z\"}}\n",
    );
    place
        .run("load --data @new.jsonl --mode append ROOT")
        .exits(0);
    place
        .run("load --data @rows.jsonl --mode merge ROOT")
        .exits(0);
    assert_eq!(place.run("export ROOT").exits(0).stdout.lines().count(), 4);
}

#[test]
fn an_error_names_the_input_only_when_that_is_to_blame() {
    let place = Place::new();
    place.graph();
    let load = |branch: &str| {
        let words = format!("load --data @rows.jsonl --mode append --branch {branch} ROOT");
        place.run(&words).one_error_line()
    };
    let repeated = load("main");
    assert!(repeated.contains("rows.jsonl: line 1: "), "{repeated}");
    let no_branch = load("nope");
    assert!(no_branch.contains("nope"), "{no_branch}");
    assert!(!no_branch.contains("rows.jsonl"), "{no_branch}");
}

#[test]
fn what_was_done_is_said_although_nobody_can_read_it() {
    let place = Place::new();
    place.graph();
    place.file(
        "new.jsonl",
        "{\"type\":\"Person\",\"data\":{\"code\":\"z\"}}\n",
    );
    let mut load = command(place.words("load --data @new.jsonl --mode append --quiet ROOT"));
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = load.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("the load landed (commit hb1."), "{said}");
}

#[test]
fn a_small_release_budget_comes_from_the_environment() {
    let place = Place::new();
    place.graph();
    let load = |budget: &str, n: u32| {
        place.file(
            "one.jsonl",
            &format!("{{\"type\":\"Person\",\"data\":{{\"code\":\"n{n}\"}}}}"),
        );
        let mut load = command(place.words("load --data @one.jsonl --mode append ROOT"));
        load.env("OMNIGRAPH_HISTORY_RELEASE_BYTES", budget);
        finish(load)
    };
    for n in 0..6 {
        load("1024", n).exits(0);
    }
    assert!(place.path("g/__history/blocks").exists());
    let line = load("1000", 7).one_error_line();
    assert!(line.contains("1024 to 262144"), "{line}");
    place.run("verify --deep ROOT").exits(0);
}

#[test]
fn a_stamp_without_a_conversion_names_every_rebuild_command() {
    let Some((folder, _)) = crate::support::roots::samples() else {
        return;
    };
    let old = fixtures::sample::unpack(&folder, "observatory").unwrap();
    let root = old.path().to_str().unwrap();
    let line = omnigraph(["snapshot", root]).one_error_line();
    for command in [
        format!("omnigraph schema show {root} > schema.pg"),
        format!("omnigraph export {root} > graph.jsonl"),
        format!("omnigraph init --schema schema.pg {root}-rebuilt"),
        format!("omnigraph load --mode overwrite --data graph.jsonl {root}-rebuilt"),
        "OmniGraph 0.9.x or 0.10.x".to_string(),
    ] {
        assert!(line.contains(&command), "{line}\nexpected: {command}");
    }
    for args in [vec!["export", root], vec!["branch", "list", root]] {
        omnigraph(args).one_error_line();
    }
}
