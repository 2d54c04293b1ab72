//! The upgrade on an object store: a real S3 server on loopback, seen through a proxy.

mod cleanup;
mod conditions;
mod interrupted;
mod runs;
mod trouble;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fixtures::fixture_s::SpecS;
use serde_json::Value;

use crate::support::proxy::{Answer, Proxy};
use crate::support::roots::fixture_s;
use crate::support::run::{codes, omnigraph, snapshot, upgrade};
use crate::support::s3::{Objects, Place};
use crate::support::serve::served;
use crate::support::source::Source;

/// A root on the server, what it held before, and what it must serve in the end.
struct Case {
    place: Place,
    before: Objects,
    whole: Arc<Whole>,
}

/// The same fixture on disk: what it holds, and what it serves after its upgrade there.
struct Whole {
    source: Source,
    served: BTreeMap<String, Value>,
}

impl Whole {
    /// Made once a stamp.
    fn of(spec: SpecS) -> Arc<Self> {
        static MADE: Mutex<BTreeMap<u32, Arc<Whole>>> = Mutex::new(BTreeMap::new());
        let mut made = MADE.lock().unwrap();
        let make = || {
            let (_dir, local) = fixture_s(spec);
            let root = local.root.path();
            let source = Source::read(root);
            assert_eq!(upgrade(root, &[])["outcome"], "completed");
            let served = served(root, &source);
            Arc::new(Self { source, served })
        };
        made.entry(spec.stamp).or_insert_with(make).clone()
    }
}

impl Case {
    /// `None` where there is no server.
    fn of(spec: SpecS) -> Option<Self> {
        Self::named("graph", spec)
    }

    /// The same below a prefix that ends `name`.
    fn named(name: &str, spec: SpecS) -> Option<Self> {
        let place = Place::fixture_s(name, spec)?;
        Some(Self {
            before: place.objects(),
            place,
            whole: Whole::of(spec),
        })
    }

    /// A proxy that only looks on.
    fn watch(&self) -> Proxy {
        Proxy::start(self.place.server, |_| Answer::Pass)
    }

    /// The state the next check names; any but these three is a bug. It changes nothing.
    fn state(&self) -> String {
        let report = self
            .place
            .unchanged(|| upgrade(self.place.path(), &["--check"]));
        match (
            report["outcome"].as_str().unwrap(),
            codes(&report).as_slice(),
        ) {
            (outcome @ ("check_passed" | "already_current"), []) => outcome.to_string(),
            ("recovery_required", [code]) if code == "pending_upgrade" => {
                snapshot(self.place.path(), "main", None).one_error_line();
                code.clone()
            }
            _ => panic!("an unnamed state: {report:#}"),
        }
    }

    /// One more run, undisturbed, ends the upgrade: everything is served, nothing is left to do, and nothing
    /// that was there before has changed. Every test ends here, so a check of whole roots belongs here too.
    fn finishes(&self) {
        let done = upgrade(self.place.path(), &[]);
        let outcome = done["outcome"].as_str().unwrap();
        let good = ["completed", "already_current"].contains(&outcome);
        assert!(good, "{done:#}");
        let whole = &self.whole;
        assert_eq!(served(self.place.path(), &whole.source), whole.served);
        let again = self.place.unchanged(|| upgrade(self.place.path(), &[]));
        assert_eq!(again["outcome"], "already_current");
        let uri = &self.place.uri;
        self.place
            .unchanged(|| omnigraph(["verify", "--deep", "--quiet", uri]).exits(0));
        self.kept();
    }

    /// Every object of before is there, byte for byte.
    fn kept(&self) {
        let now = self.place.objects();
        for (key, bytes) in &self.before {
            assert_eq!(now.get(key), Some(bytes), "{key}");
        }
    }
}

/// A run that stops under a failing store names how, with nothing but these.
fn stopped_with_a_name(report: &Value) {
    let codes = codes(report);
    let fenced = !report["last_durable_completed_boundary"].is_null();
    match (report["outcome"].as_str().unwrap(), codes.as_slice()) {
        ("completed" | "already_current", []) => {}
        ("check_failed", [code]) if code == "preflight_failed" => assert!(!fenced, "{report:#}"),
        ("recovery_required", [code]) if code == "upgrade_interrupted" => {
            assert!(fenced, "{report:#}");
        }
        ("recovery_required", [code]) if code == "fence_publication_attempted" => {
            assert!(!fenced, "{report:#}");
        }
        _ => panic!("not a named stop: {report:#}"),
    }
}
