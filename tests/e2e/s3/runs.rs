//! Whole runs, compared with the same fixture on disk.

use std::collections::BTreeSet;

use fixtures::fixture_s::SpecS;
use graph::store::PROBE_DIR;
use serde_json::Value;

use super::Case;
use crate::support::proxy::{Answer, Proxy, Request};
use crate::support::roots::fixture_s;
use crate::support::run::{codes, finish, report_of, upgrade};
use crate::support::s3::{BUCKET, Objects, Place, changes, put, server, through};
use crate::support::serve::serves_everything;

/// A report without what differs between stores: pins hold keys and ETags of their own.
fn comparable(mut report: Value) -> Value {
    report["location"] = Value::Null;
    report["work"]["legacy_bytes"] = Value::Null;
    report
}

fn converts(spec: SpecS) {
    let Some(case) = Case::of(spec) else {
        return;
    };
    let (_dir, local) = fixture_s(spec);
    let place = &case.place;

    let watch = case.watch();
    let check = place.unchanged(|| place.upgrade(&["--check"], &watch));
    assert_eq!(check["outcome"], "check_passed", "{check:#}");
    assert!(!watch.seen().is_empty());
    assert_eq!(watch.writes(), [], "a check writes nothing");
    let local_check = upgrade(local.root.path(), &["--check"]);
    assert_eq!(comparable(check), comparable(local_check));

    let done = place.upgrade(&[], &watch);
    assert_eq!(done["outcome"], "completed", "{done:#}");
    let local_done = upgrade(local.root.path(), &[]);
    assert_eq!(comparable(done), comparable(local_done));
    overwrites_nothing(place, &case.before, &watch.writes());
    for change in changes(&case.before, &place.objects()) {
        let added = change.starts_with("+ __manifest/") || change.starts_with("+ __history/");
        assert!(added, "{change}");
    }

    if spec != SpecS::stamp_8() {
        place.unchanged(|| serves_everything(place.path(), &case.whole.source));
    }
    let writes = watch.writes().len();
    let again = place.unchanged(|| place.upgrade(&[], &watch));
    assert_eq!(again["outcome"], "already_current");
    assert_eq!(watch.writes().len(), writes, "nothing is left to write");
    case.finishes();
}

/// Whatever another writer may create too is created only if absent; the rest has a name of its own.
fn overwrites_nothing(place: &Place, before: &Objects, writes: &[Request]) {
    let (mut written, mut created) = (BTreeSet::new(), 0);
    for write in writes {
        let Some(key) = place.key(&write.path) else {
            // Objects are deleted by a request to the bucket.
            assert_eq!(write.method, "POST", "{write:?}");
            continue;
        };
        if write.method == "DELETE" {
            assert!(key.starts_with(PROBE_DIR), "{write:?}");
            continue;
        }
        assert_eq!(write.method, "PUT", "{write:?}");
        let contested = key.contains("/_versions/")
            || key.starts_with("__history/")
            || key.starts_with(PROBE_DIR);
        assert_eq!(write.create, contested, "{write:?}");
        created += usize::from(write.create);
        assert!(!before.contains_key(key), "{write:?}");
        // Creating twice is harmless, and what the protocol does with main's schema archive.
        assert!(write.create || written.insert(key.to_string()), "{write:?}");
    }
    // The probe twice; the fence, four conversions, the activation; six legacy objects; archives.
    assert!(created > 2 + 6 + 6, "{writes:#?}");
}

#[test]
fn fixture_s_at_8_converts() {
    converts(SpecS::stamp_8());
}

#[test]
fn fixture_s_at_9_converts() {
    converts(SpecS::stamp_9());
}

#[test]
fn fixture_s_at_13_converts() {
    converts(SpecS::stamp_13());
}

/// Keys are not URLs: what a URI must escape is a plain character of the key.
#[test]
fn a_prefix_of_any_spelling_converts() {
    let Some(case) = Case::named("tenant a+b/größe", SpecS::stamp_9()) else {
        return;
    };
    assert_eq!(case.state(), "check_passed");
    case.finishes();
}

#[test]
fn a_graph_inside_a_cluster_is_refused() {
    let Some(server) = server() else {
        return;
    };
    let cluster = format!("s3://{BUCKET}/{}/cluster", std::process::id());
    put(&cluster, "__cluster/state.json", b"{}");
    let graph = format!("{cluster}/graphs/g.omni");
    let watch = Proxy::start(server, |_| Answer::Pass);
    for extra in [&["--check"][..], &[]] {
        let line = finish(through(&graph, extra, &watch)).one_error_line();
        assert!(line.contains("inside cluster"), "{line}");
    }
    let graph = graph.strip_prefix("s3:/").unwrap();
    assert!(watch.seen().iter().all(|r| !r.path.starts_with(graph)));
    assert_eq!(watch.writes(), []);
}

#[test]
fn what_is_no_graph_is_said_so() {
    let Some(server) = server() else {
        return;
    };
    let watch = Proxy::start(server, |_| Answer::Pass);
    for uri in [
        format!("s3://{BUCKET}/{}/nothing", std::process::id()),
        "s3://omnigraph-no-bucket/graph".to_string(),
    ] {
        for extra in [&["--check"][..], &[]] {
            let report = report_of(&finish(through(&uri, extra, &watch)));
            assert_eq!(codes(&report), ["preflight_failed"], "{report:#}");
        }
    }
    assert_eq!(watch.writes(), []);
}
