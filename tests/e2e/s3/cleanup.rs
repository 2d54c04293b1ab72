//! `omnigraph cleanup` on an object store, compared with the same fixture on disk.

use fixtures::fixture_s::SpecS;
use serde_json::Value;

use super::Case;
use crate::support::roots::fixture_s;
use crate::support::run::{omnigraph, upgrade};
use crate::support::s3::changes;

/// Rows without what differs between stores: identities, and sizes of manifests that hold paths.
fn comparable(report: &Value) -> Vec<(Value, Value, Value, Value)> {
    let rows = report["datasets"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let of = |member: &str| row[member].clone();
            (
                of("type_key"),
                of("manifests_removed"),
                of("files_removed"),
                of("foreign_versions"),
            )
        })
        .collect()
}

#[test]
fn cleans_as_on_disk() {
    let spec = SpecS::stamp_9();
    let Some(case) = Case::of(spec) else {
        return;
    };
    let (_dir, local) = fixture_s(spec);
    let (uri, path) = (case.place.uri.clone(), local.root.path().to_path_buf());
    omnigraph(["upgrade", &uri, "--json", "--quiet"]).exits(0);
    assert_eq!(upgrade(&path, &[])["outcome"], "completed");
    let clean = |root: &str, extra: &[&str]| {
        let mut args = vec!["cleanup", root, "--keep", "1", "--json", "--strict"];
        args.extend(extra);
        omnigraph(&args)
    };
    let line = clean(&uri, &["--confirm"]).one_error_line();
    assert!(line.contains("--yes"), "{line}");
    let local_path = path.to_str().unwrap();
    let preview = case.place.unchanged(|| clean(&uri, &[]).exits(0).json());
    let want = clean(local_path, &[]).exits(0).json();
    assert_eq!(comparable(&preview), comparable(&want));
    let done = clean(&uri, &["--confirm", "--yes"]).exits(0).json();
    let want = clean(local_path, &["--confirm"]).exits(0).json();
    assert_eq!(comparable(&done), comparable(&want));
    omnigraph(["verify", &uri]).exits(0);
    // The lease leaves an object of its own; nothing else may change.
    let kept = || {
        let mut objects = case.place.objects();
        objects.retain(|key, _| !key.starts_with("__maintenance_lease/"));
        objects
    };
    let before = kept();
    let again = clean(&uri, &["--confirm", "--yes"]).exits(0).json();
    assert_eq!(changes(&before, &kept()), [""; 0]);
    for row in again["datasets"].as_array().unwrap() {
        assert_eq!(row["manifests_removed"], 0, "{row}");
    }
}
