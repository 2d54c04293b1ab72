//! `omnigraph recover`: exit codes, one document on stdout, and what the upgrade says before and after.

use fixtures::sample::unpack;
use serde_json::Value;

use crate::support::roots::{samples, unchanged};
use crate::support::run::omnigraph;

fn json(args: &[&str], code: i32) -> Value {
    let run = omnigraph(args);
    assert_eq!(run.code, Some(code), "{run:#?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn a_stopped_root_is_checked_settled_and_then_clean() {
    let Some((folder, _)) = samples() else {
        return;
    };
    let unpacked = unpack(&folder, "sc-load-armed-partial").unwrap();
    let root = unpacked.path().to_str().unwrap();
    for args in [
        &["recover", root, "--json"][..],
        &["recover", root, "--check", "--json"],
    ] {
        let report = unchanged(unpacked.path(), || json(args, 0));
        assert_eq!(report["outcome"], "pending", "{report:#}");
        assert_eq!(report["mode"], "check");
        assert_eq!(report["sidecars"][0]["decision"], "roll_back");
    }
    let upgrade = json(&["upgrade", root, "--check", "--json"], 1);
    let action = upgrade["recovery"]["action"].as_str().unwrap();
    assert!(
        action.contains(&format!("omnigraph recover {root} --check")),
        "{action}"
    );

    let both = omnigraph(["recover", root, "--check", "--confirm"]);
    assert_eq!(both.code, Some(2), "{both:#?}");

    let settled = omnigraph(["recover", root, "--confirm"]);
    assert_eq!(settled.code, Some(0), "{settled:#?}");
    assert!(settled.stdout.contains("recovered: everything is settled"));
    assert!(
        settled.stderr.contains("recover --confirm"),
        "the echo is on stderr"
    );
    let again = unchanged(unpacked.path(), || {
        json(&["recover", root, "--confirm", "--json"], 0)
    });
    assert_eq!(again["outcome"], "clean");
}

#[test]
fn a_damaged_sidecar_and_another_stamp_are_exit_code_1() {
    let Some((folder, _)) = samples() else {
        return;
    };
    let unpacked = unpack(&folder, "sc-touch-fork").unwrap();
    let root = unpacked.path().to_str().unwrap();
    std::fs::write(unpacked.path().join("__recovery/01A.json"), "{not json").unwrap();
    let report = unchanged(unpacked.path(), || {
        json(&["recover", root, "--confirm", "--json"], 1)
    });
    assert_eq!(report["outcome"], "refused");
    assert_eq!(report["sidecars"][0]["file"], "01A.json");

    let unpacked = unpack(&folder, "s14-evolution").unwrap();
    let root = unpacked.path().to_str().unwrap();
    let run = unchanged(unpacked.path(), || omnigraph(["recover", root]));
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.contains("stamp 14") && run.stdout.is_empty(),
        "{run:#?}"
    );
}
