//! Servers and settings without conditional creation: refused before any write of the graph.

use std::time::Duration;

use fixtures::fixture_s::SpecS;
use graph::store::PROBE_DIR;
use serde_json::Value;

use super::Case;
use crate::support::proxy::{Answer, Proxy};
use crate::support::run::{codes, finish, report_of, upgrade};

/// A server that ignores conditions.
fn careless(case: &Case) -> Proxy {
    Proxy::start(case.place.server, |_| Answer::Unconditional)
}

fn refused(case: &Case, code: &str) {
    let proxy = careless(case);
    let report = case.place.unchanged(|| case.place.upgrade(&[], &proxy));
    assert_eq!(codes(&report), [code], "{report:#}");
    let message = report["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("replaced the probe object"), "{message}");
    for write in proxy.writes() {
        let own = case
            .place
            .key(&write.path)
            .is_none_or(|key| key.starts_with(PROBE_DIR));
        assert!(own, "{write:?}");
    }
}

/// Fence the root, and lose the process.
fn fence(case: &Case) {
    let mut fenced = false;
    let prefix = case.place.uri.strip_prefix("s3:/").unwrap().to_string();
    let versions = format!("{prefix}/__manifest/_versions/");
    let proxy = Proxy::start(case.place.server, move |request| {
        if fenced {
            return Answer::Swallow;
        }
        if request.create && request.path.starts_with(&versions) {
            fenced = true;
            return Answer::PassThenHold;
        }
        Answer::Pass
    });
    let mut child = case.place.command(&[], &proxy);
    let mut child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
    assert!(proxy.wait_held(Duration::from_secs(60)));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_server_that_overwrites_is_refused_before_any_write_of_the_graph() {
    let Some(case) = Case::of(SpecS::stamp_9()) else {
        return;
    };
    // A check never writes, so it cannot tell.
    let proxy = careless(&case);
    let check = case.place.upgrade(&["--check"], &proxy);
    assert_eq!(check["outcome"], "check_passed", "{check:#}");
    assert_eq!(proxy.writes(), []);
    refused(&case, "preflight_failed");
    fence(&case);
    refused(&case, "upgrade_interrupted");
    case.finishes();
}

fn switched_off(case: &Case, extra: &[&str]) -> Value {
    let watch = case.watch();
    let mut command = case.place.command(extra, &watch);
    command.env("AWS_CONDITIONAL_PUT", "disabled");
    let report = case.place.unchanged(|| report_of(&finish(command)));
    assert_eq!(watch.writes(), []);
    report
}

#[test]
fn a_setting_without_conditions_is_refused_by_the_check_too() {
    let Some(case) = Case::of(SpecS::stamp_8()) else {
        return;
    };
    for extra in [&["--check"][..], &[]] {
        let report = switched_off(&case, extra);
        assert_eq!(codes(&report), ["preflight_failed"], "{report:#}");
        let message = report["findings"][0]["message"].as_str().unwrap();
        assert!(message.contains("AWS_CONDITIONAL_PUT"), "{message}");
    }
    fence(&case);
    let report = switched_off(&case, &[]);
    assert_eq!(codes(&report), ["upgrade_interrupted"], "{report:#}");
    assert_eq!(upgrade(case.place.path(), &[])["outcome"], "completed");
    // Nothing is to be written any more.
    let current = switched_off(&case, &[]);
    assert_eq!(current["outcome"], "already_current");
    case.finishes();
}
