//! Running the binary: with a time limit, and with the rules every run obeys.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// No command on a small root may take longer.
const LIMIT: Duration = Duration::from_secs(60);

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The binary with `args`, not started.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omnigraph"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Run the binary; it must neither hang, nor panic, nor die of a signal.
pub fn omnigraph<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    finish(command(args))
}

/// Run a prepared command to its end, under the rules of [`omnigraph`].
pub fn finish(mut command: Command) -> Run {
    let line = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{line} hangs: no end after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let run = Run {
        code: status.code(),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    };
    assert!(
        run.code.is_some(),
        "{line} died of a signal ({status}): {run:#?}"
    );
    assert!(
        !run.stderr.contains("panicked at"),
        "{line} panicked: {run:#?}"
    );
    run
}

fn drain(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}

impl Run {
    /// The one JSON document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("stdout is not one JSON document ({e}): {self:#?}"))
    }

    /// Assert the exit code.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Assert a refusal without a report: exit 1, nothing on stdout, one line on stderr; the line.
    pub fn one_error_line(self) -> String {
        assert_eq!(self.code, Some(1), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{self:#?}");
        assert!(lines[0].starts_with("error: "), "{self:#?}");
        lines[0].to_string()
    }
}

/// `upgrade ROOT --json` with `extra`; the exit code must fit the outcome, and every finding is one line.
pub fn upgrade(root: &Path, extra: &[&str]) -> Value {
    let mut args = vec!["upgrade", root.to_str().unwrap(), "--json", "--quiet"];
    args.extend(extra);
    report_of(&omnigraph(&args))
}

/// The report of an `upgrade --json --quiet`, under the rules of [`upgrade`].
pub fn report_of(run: &Run) -> Value {
    let report = run.json();
    let success = ["check_passed", "already_current", "completed"];
    let good = success.contains(&report["outcome"].as_str().unwrap());
    assert_eq!(run.code, Some(if good { 0 } else { 1 }), "{run:#?}");
    assert_eq!(run.stderr, "", "{run:#?}");
    for finding in report["findings"].as_array().unwrap() {
        let message = finding["message"].as_str().unwrap();
        assert!(
            !message.contains('\n') && !message.is_empty(),
            "a finding is one line: {message:?}"
        );
    }
    report
}

/// The finding codes of a report, in order.
pub fn codes(report: &Value) -> Vec<String> {
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["code"].as_str().unwrap().to_string())
        .collect()
}

/// `snapshot ROOT --json` of a branch, at a commit or version when given.
pub fn snapshot(root: &Path, branch: &str, at: Option<&str>) -> Run {
    let mut args = vec![
        "snapshot",
        root.to_str().unwrap(),
        "--json",
        "--branch",
        branch,
    ];
    if let Some(at) = at {
        args.extend(["--at", at]);
    }
    omnigraph(args)
}

/// `commit list ROOT --json` of a branch.
pub fn commit_list(root: &Path, branch: &str) -> Run {
    let root = root.to_str().unwrap();
    omnigraph(["commit", "list", root, "--json", "--branch", branch])
}
