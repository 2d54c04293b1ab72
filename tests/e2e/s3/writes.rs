//! The write path on S3: genesis, loads, branches, exports, and loads through a server in trouble.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::proxy::{Answer, Proxy, Request, Status};
use crate::support::run::{Run, command, finish, omnigraph};
use crate::support::s3::Place;

const SCHEMA: &str =
    "node Person { code: String @key\n pic: Blob? }\nedge Knows: Person -> Person\n";

fn rows(codes: &[&str]) -> String {
    codes
        .iter()
        .map(|c| format!("{{\"type\":\"Person\",\"id\":\"{c}\",\"data\":{{\"code\":\"{c}\",\"pic\":\"base64:AAEC\"}}}}\n"))
        .collect()
}

struct Graph {
    place: Place,
    folder: tempfile::TempDir,
}

impl Graph {
    fn new() -> Option<Self> {
        let graph = Self {
            place: Place::empty("new")?,
            folder: tempfile::tempdir().unwrap(),
        };
        let schema = graph.folder.path().join("s.pg");
        std::fs::write(&schema, SCHEMA).unwrap();
        omnigraph([
            "init",
            "--schema",
            schema.to_str().unwrap(),
            &graph.place.uri,
        ])
        .exits(0);
        Some(graph)
    }

    fn load(&self, mode: &str, branch: &str, text: &str) -> Command {
        let file = tempfile::Builder::new()
            .suffix(".jsonl")
            .tempfile_in(self.folder.path())
            .unwrap();
        let (_, path) = file.keep().unwrap();
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        command([
            "load",
            "--data",
            path,
            "--mode",
            mode,
            "--branch",
            branch,
            "--yes",
            "--quiet",
            &self.place.uri,
        ])
    }

    fn through(
        &self,
        mut command: Command,
        rule: impl FnMut(&Request) -> Answer + Send + 'static,
    ) -> Run {
        let proxy = Proxy::start(self.place.server, rule);
        command.env("AWS_ENDPOINT", &proxy.endpoint);
        command.env("AWS_ENDPOINT_URL", &proxy.endpoint);
        finish(command)
    }

    fn export(&self, branch: &str) -> String {
        omnigraph(["export", "--branch", branch, &self.place.uri])
            .exits(0)
            .stdout
    }

    fn verify(&self) {
        self.place.unchanged(|| {
            omnigraph(["verify", "--deep", "--quiet", &self.place.uri]).exits(0);
        });
    }
}

#[test]
fn a_graph_is_made_filled_branched_and_printed() {
    let Some(graph) = Graph::new() else {
        return;
    };
    let edge = "{\"edge\":\"Knows\",\"id\":\"k\",\"from\":\"a\",\"to\":\"b\",\"data\":{}}\n";
    finish(graph.load(
        "overwrite",
        "main",
        &(edge.to_string() + &rows(&["a", "b"])),
    ))
    .exits(0);
    omnigraph(["branch", "create", "dev", &graph.place.uri]).exits(0);
    finish(graph.load("append", "dev", &rows(&["c"]))).exits(0);
    finish(graph.load("merge", "dev", &rows(&["a"]))).exits(0);
    assert_eq!(graph.export("main"), edge.to_string() + &rows(&["a", "b"]));
    assert_eq!(
        graph.export("dev"),
        edge.to_string() + &rows(&["a", "b", "c"])
    );
    let line = omnigraph(["branch", "delete", "dev", &graph.place.uri]).one_error_line();
    assert!(line.contains("--yes"), "{line}");
    omnigraph(["branch", "delete", "dev", "--yes", &graph.place.uri]).exits(0);
    graph.verify();
    // Without consent an overwrite of a remote graph is refused before anything is read.
    let mut load = graph.load("overwrite", "main", &rows(&["z"]));
    let without: Vec<String> = load
        .get_args()
        .map(|a| a.to_str().unwrap().to_string())
        .filter(|a| a != "--yes")
        .collect();
    load = command(without);
    let line = graph.place.unchanged(|| finish(load).one_error_line());
    assert!(line.contains("--yes"), "{line}");
}

#[test]
fn a_load_survives_a_server_in_trouble() {
    let Some(graph) = Graph::new() else {
        return;
    };
    // Every create is answered with an error after it was done.
    let mut lost = BTreeSet::new();
    let load = graph.load("append", "main", &rows(&["a"]));
    graph
        .through(load, move |request| {
            if request.create && lost.insert(request.path.clone()) {
                Answer::PassThenRefuse(Status::SlowDown)
            } else {
                Answer::Pass
            }
        })
        .exits(0);
    let load = graph.load("merge", "main", &rows(&["a", "b"]));
    graph
        .through(load, |request| match request.number % 5 {
            0 if request.number < 60 => Answer::Refuse(Status::SlowDown),
            _ => Answer::Pass,
        })
        .exits(0);
    assert_eq!(graph.export("main"), rows(&["a", "b"]));
    // One that stays away: nothing is torn, and the load is there or is not.
    for first in [1, 2, 4, 6] {
        let before = graph.export("main");
        let code = format!("x{first}");
        let mut down = false;
        let mut load = graph.load("append", "main", &rows(&[&code]));
        load.env("OBJECT_STORE_CLIENT_MAX_RETRIES", "1");
        let run = graph.through(load, move |request| {
            down = down || request.write == Some(first);
            match down {
                true => Answer::Refuse(Status::SlowDown),
                false => Answer::Pass,
            }
        });
        let line = run.one_error_line();
        assert_eq!(graph.export("main"), before, "{line}");
    }
    graph.verify();
}

#[test]
fn two_loads_at_once_both_land() {
    let Some(graph) = Graph::new() else {
        return;
    };
    for round in 0..3 {
        let codes = [format!("a{round}"), format!("b{round}")];
        std::thread::scope(|scope| {
            for code in &codes {
                let load = graph.load("append", "main", &rows(&[code]));
                scope.spawn(move || finish(load).exits(0));
            }
        });
    }
    assert_eq!(graph.export("main").lines().count(), 6);
    graph.verify();
}
