//! Whole runs, compared with the same fixture on disk.

use std::collections::BTreeSet;

use fixtures::fixture_s::SpecS;
use graph::store::PROBE_DIR;
use serde_json::Value;

use super::Case;
use crate::support::proxy::Request;
use crate::support::roots::fixture_s;
use crate::support::run::upgrade;
use crate::support::s3::{Objects, Place, changes};
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

    place.unchanged(|| serves_everything(place.path(), &case.source));
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
        if !key.starts_with(PROBE_DIR) {
            assert!(!before.contains_key(key), "{write:?}");
            assert!(written.insert(key.to_string()), "{write:?} twice");
        }
    }
    // The probe twice; the fence, four conversions, the activation; six legacy objects and the archives.
    assert!(created >= 2 + 6 + 6 + 1, "{writes:#?}");
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
