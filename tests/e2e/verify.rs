//! `omnigraph verify` on the sample roots, and its texts.

use std::path::Path;

use fixtures::fixture_s::SpecS;
use fixtures::sample::unpack;
use serde_json::Value;

use crate::support::roots::{fixture_s, samples, unchanged};
use crate::support::run::{Run, codes, omnigraph, upgrade};

/// `verify ROOT --json` with `extra`; nothing changes, and the exit code fits the outcome.
fn verify(root: &Path, extra: &[&str]) -> Value {
    let mut args = vec!["verify", root.to_str().unwrap(), "--json"];
    args.extend(extra);
    let run = unchanged(root, || omnigraph(&args));
    let report = run.json();
    let code = if report["outcome"] == "ok" { 0 } else { 1 };
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(code), ""),
        "{run:#?}"
    );
    report
}

#[test]
fn converted_sample_roots_are_whole() {
    let Some((folder, _)) = samples() else {
        return;
    };
    for (name, removed) in [
        ("s14-observa", 0),
        ("s14-evolution", 0),
        ("s8-observa1", 0),
        ("s9-cleaned", 8),
        ("s13-evolution", 0),
    ] {
        let unpacked = unpack(&folder, name).unwrap();
        let root = unpacked.path();
        if !name.starts_with("s14") {
            assert_eq!(upgrade(root, &[])["outcome"], "completed", "{name}");
        }
        let report = verify(root, &[]);
        assert_eq!(codes(&report), Vec::<String>::new(), "{name}: {report:#}");
        assert_eq!(report["checked"]["deep"], Value::Null);
        let deep = verify(root, &["--deep"]);
        assert_eq!(codes(&deep), Vec::<String>::new(), "{name}: {deep:#}");
        let read = &deep["checked"]["deep"];
        assert_eq!(read["history_pins_removed_by_retention"], removed, "{name}");
        assert!(read["rows"].as_u64() > Some(0), "{name}: {deep:#}");
    }
}

#[test]
fn the_texts_of_a_report() {
    let (_dir, s) = fixture_s(SpecS::stamp_9());
    let root = s.root.path();
    let text = root.to_str().unwrap();
    // A root of another stamp is refused as by every reader.
    let line = omnigraph(["verify", text]).one_error_line();
    assert!(line.contains("omnigraph upgrade"), "{line}");
    assert_eq!(upgrade(root, &[])["outcome"], "completed");
    insta::assert_snapshot!("verify_ok", both(root, &["verify", text], 0));
    insta::assert_snapshot!("verify_deep", both(root, &["verify", text, "--deep"], 0));
    let key = "__history/legacy/locator/ids/00000000.oglx";
    std::fs::remove_file(root.join(key)).unwrap();
    let archived = std::fs::read_dir(root.join("__history/schemas")).unwrap();
    for entry in archived {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    insta::assert_snapshot!("verify_damaged", both(root, &["verify", text], 1));
    let store = omnigraph(["verify", "--store", text, "--quiet"]).exits(1);
    assert!(store.stdout.contains("legacy_area_damaged"), "{store:#?}");
}

/// Both renderings, with what differs from run to run replaced.
fn both(root: &Path, args: &[&str], code: i32) -> String {
    let human = omnigraph(args).exits(code);
    let json: Run = omnigraph(args.iter().copied().chain(["--json"])).exits(code);
    json.json();
    assert_eq!((human.stderr, json.stderr), (String::new(), String::new()));
    let said = format!("{}\n{}", human.stdout, json.stdout);
    let mut lines = Vec::new();
    for line in said.lines() {
        let line = line.replace(root.to_str().unwrap(), "[root]");
        let line = match line.rsplit_once(", ") {
            Some((rest, bytes)) if bytes.ends_with(" bytes") => format!("{rest}, [n] bytes"),
            _ if line.contains("\"bytes\"") => "      \"bytes\": [n]".to_string(),
            _ => line,
        };
        lines.push(hashes(&line));
    }
    lines.join("\n")
}

/// Hashes depend on the attempt.
fn hashes(line: &str) -> String {
    let mut out = String::new();
    let mut hex = String::new();
    for c in line.chars().chain(['\0']) {
        if c.is_ascii_digit() || ('a'..='f').contains(&c) {
            hex.push(c);
            continue;
        }
        if hex.len() == 64 {
            out.push_str("[sha256]");
        } else {
            out.push_str(&hex);
        }
        hex.clear();
        if c != '\0' {
            out.push(c);
        }
    }
    out
}
