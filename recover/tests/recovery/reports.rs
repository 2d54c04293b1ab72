//! What is said, as JSON and for a person.

use std::path::Path;

use recover::repair::{self, RepairOptions};
use recover::{Report, render};

use crate::support::*;

/// Both renderings, without the folder of the sample.
fn both(report: &Report, root: &Path) -> String {
    let json = serde_json::to_string_pretty(report).unwrap();
    let text = format!("{}\n{json}\n", render(report));
    text.replace(root.to_str().unwrap(), "[root]")
}

#[test]
fn checks() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        for name in STOPPED {
            let root = stopped(&archives, name);
            let report = check(root.path()).await;
            insta::assert_snapshot!(format!("check-{name}"), both(&report, root.path()));
        }
    });
}

#[test]
fn settled_refused_and_clean() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "sc-load-armed-partial");
        let broken = root.path().join("__recovery/00BROKEN.json");
        std::fs::write(&broken, "{not json").unwrap();
        let report = confirm(root.path()).await;
        insta::assert_snapshot!("held", both(&report, root.path()));
        std::fs::remove_file(&broken).unwrap();
        let report = confirm(root.path()).await;
        insta::assert_snapshot!("settled", both(&report, root.path()));
        let report = confirm(root.path()).await;
        insta::assert_snapshot!("clean", both(&report, root.path()));
    });
}

#[test]
fn a_repair() {
    let Some(archives) = archives() else { return };
    run(|| async move {
        let root = stopped(&archives, "s9-foreign");
        let options = RepairOptions {
            confirm: true,
            ..RepairOptions::default()
        };
        let report = repair::repair(&open(root.path()).await, &options)
            .await
            .unwrap();
        let json = serde_json::to_string_pretty(&report).unwrap();
        let text = format!("{}\n{json}\n", repair::render(&report));
        insta::assert_snapshot!(
            "repair",
            text.replace(root.path().to_str().unwrap(), "[root]")
        );
    });
}
