use std::collections::BTreeSet;

use super::*;
use crate::cleanup::facts::Facts;
use crate::cleanup::listing::Total;

const NOW: i64 = 1_000 * 86_400 * 1_000_000;

fn d(n: u64) -> u64 {
    (1 << 63) | n
}

/// A location under construction: versions with the version they link to and the files they use.
#[derive(Default)]
struct Case {
    listed: Location,
    manifests: Manifests,
    registered: Registered,
    wanted: Wanted,
    dead: BTreeSet<u64>,
    live: BTreeSet<u64>,
}

impl Case {
    fn version(mut self, version: u64, link: Option<u64>, files: &[&str]) -> Self {
        self.listed.manifests.insert(version, 100);
        let paths = files.iter().map(|f| self.manifests.paths.id(f)).collect();
        let facts = Facts {
            link,
            paths,
            ..Facts::default()
        };
        self.manifests.facts.insert(version, facts);
        self
    }

    fn file(mut self, path: &str, days: i64) -> Self {
        self.listed
            .add(path, 10, NOW - days * 86_400 * 1_000_000, true);
        self
    }

    fn staged(mut self, versions: &[u64]) -> Self {
        self.registered.staged.extend(versions);
        self
    }

    fn linear(mut self, versions: &[u64], last: Option<u64>) -> Self {
        self.registered.published.extend(versions);
        self.registered.last_linear = last;
        self
    }

    fn want(mut self, target: Target, reason: Reason) -> Self {
        let who = self.wanted.entry(target).or_default();
        who.insert(reason, "a test".into());
        self
    }

    fn plan(&self) -> LocationPlan {
        let judge = |v| match (self.dead.contains(&v), self.live.contains(&v)) {
            (true, _) => Verdict::Dead,
            (_, true) => Verdict::Live,
            _ => Verdict::Undecidable,
        };
        classify(
            "t",
            &self.listed,
            &self.manifests,
            &self.registered,
            &self.wanted,
            judge,
            NOW,
        )
    }
}

fn names(files: &[File]) -> Vec<&str> {
    files.iter().map(|f| &*f.object.path).collect()
}

fn pin(staged: u64) -> Target {
    Target::Pin(Some(staged), 9, Some(1))
}

#[test]
fn a_chain_goes_links_first_and_a_root_loses_only_its_links() {
    // 1 <- l1 <- t1 <- l2 <- t2(head); t1 and t2 are registered, l1 and l2 are not.
    let case = Case::default()
        .version(1, None, &["data/a.lance"])
        .version(d(11), None, &["data/a.lance", "data/l1.lance"])
        .version(d(12), Some(d(11)), &["data/t1.lance"])
        .version(d(13), Some(d(12)), &["data/l2.lance", "data/both.lance"])
        .version(d(14), Some(d(13)), &["data/t2.lance", "data/both.lance"])
        .file("data/a.lance", 1)
        .file("data/l1.lance", 1)
        .file("data/t1.lance", 1)
        .file("data/t1/1000.blob", 1)
        .file("data/l2.lance", 1)
        .file("data/both.lance", 1)
        .file("data/t2.lance", 1)
        .staged(&[d(12), d(14)])
        .linear(&[1], Some(1))
        .want(pin(d(14)), Reason::Head);
    let plan = case.plan();
    assert_eq!(plan.errors, [""; 0]);
    assert_eq!(plan.chains, [vec![d(11), d(12)], vec![d(13)]]);
    assert_eq!(
        names(&plan.sweep),
        [
            "data/l1.lance",
            "data/t1.lance",
            "data/t1/1000.blob",
            "data/l2.lance"
        ]
    );
    assert!(plan.orphans.is_empty() && plan.dead.is_empty() && plan.linear.is_empty());
    let roots: Vec<u64> = plan.roots.keys().copied().collect();
    assert_eq!(roots, [1, d(14)]);
    assert_eq!(plan.kept[&Reason::Head].versions, 1);
    assert_eq!(plan.kept[&Reason::Head].bytes, 100 + 2 * 10);
    assert_eq!(plan.kept[&Reason::LastLinear].files, 1);
}

#[test]
fn a_walk_ends_at_a_gap_and_versions_below_are_found_by_their_own_rows() {
    let case = Case::default()
        .version(1, None, &[])
        .version(d(10), None, &[])
        .version(d(12), Some(d(11)), &[])
        .staged(&[d(10), d(12)])
        .linear(&[1], Some(1))
        .want(Target::Version(1), Reason::Head);
    let mut chains = case.plan().chains;
    chains.sort();
    assert_eq!(chains, [vec![d(10)], vec![d(12)]]);
    // A link below the gap without a row of its own is staging.
    let mut case = Case::default()
        .version(1, None, &[])
        .version(d(10), None, &[])
        .version(d(12), Some(d(11)), &[])
        .staged(&[d(12)])
        .linear(&[1], Some(1));
    case.dead.insert(d(10));
    let plan = case.plan();
    assert_eq!((plan.chains, plan.dead), (vec![vec![d(12)]], vec![d(10)]));
}

#[test]
fn linear_versions() {
    // Registered 1, 3, 5, 7; 5 is the last one; 3 is pinned; 2 and 4 are of nobody; 6 and 8 are foreign.
    let mut case = Case::default();
    // 1, which goes, shares a file with 2 and one with 8, which nobody registered.
    for version in 1..=8 {
        let file = format!("data/{version}.lance");
        let shared = match version {
            1 => vec![file.as_str(), "data/a.lance", "data/b.lance"],
            2 => vec![file.as_str(), "data/a.lance"],
            8 => vec![file.as_str(), "data/b.lance"],
            _ => vec![file.as_str()],
        };
        case = case.version(version, None, &shared).file(&file, 30);
    }
    case = case.file("data/a.lance", 30).file("data/b.lance", 30);
    let plan = case
        .linear(&[1, 3, 5], Some(5))
        .want(Target::Pin(None, 3, Some(5)), Reason::Keep)
        .plan();
    assert_eq!(plan.linear, [1]);
    assert_eq!(plan.foreign, [6, 7, 8]);
    assert_eq!(names(&plan.sweep), ["data/1.lance"]);
    assert!(plan.orphans.is_empty());
    assert_eq!(plan.kept[&Reason::Unnamed].versions, 2);
    assert_eq!(plan.kept[&Reason::Foreign].versions, 3);
}

#[test]
fn a_linear_version_that_a_commit_from_before_an_upgrade_pins_stays() {
    let mut case = Case::default();
    for version in 1..=4 {
        let file = format!("data/{version}.lance");
        case = case.version(version, None, &[&file]).file(&file, 30);
    }
    case.registered.legacy.insert(2);
    let plan = case
        .linear(&[1, 2, 3, 4], Some(4))
        .want(Target::Pin(None, 4, Some(4)), Reason::Head)
        .plan();
    assert_eq!(plan.linear, [1, 3]);
    assert_eq!(names(&plan.sweep), ["data/1.lance", "data/3.lance"]);
    assert_eq!(plan.kept[&Reason::Legacy].versions, 1);
    assert_eq!(plan.kept[&Reason::Legacy].files, 1);
    // It keeps the tree it lies in even where nothing else does.
    let mut case = Case::default().version(1, None, &[]);
    case.registered.legacy.insert(1);
    let plan = case.linear(&[1], None).plan();
    assert!(plan.roots.is_empty() && plan.linear.is_empty());
    assert!(plan.holds_something());
    // The number of a staged pin above the last linear version names no linear one.
    let mut case = Case::default().version(1, None, &[]).version(9, None, &[]);
    case.registered.legacy.insert(9);
    let plan = case.linear(&[1, 9], Some(1)).plan();
    assert_eq!((plan.foreign, plan.legacy), (vec![9], vec![]));
}

#[test]
fn without_a_recorded_last_linear_version_no_linear_one_goes() {
    let plan = Case::default()
        .version(1, None, &[])
        .version(2, None, &[])
        .version(3, None, &[])
        .linear(&[1, 2], None)
        .want(Target::Version(2), Reason::Head)
        .plan();
    assert!(plan.linear.is_empty());
    assert_eq!(plan.foreign, [3]);
    // Nor any other without rows.
    let plan = Case::default().version(1, None, &[]).plan();
    assert_eq!((plan.foreign, plan.roots.len()), (vec![1], 0));
}

#[test]
fn what_a_pin_names() {
    let case = || {
        Case::default()
            .version(4, None, &[])
            .version(d(1), None, &[])
            .linear(&[4], Some(4))
    };
    // (staged, published, last) and the roots, or an error.
    for (target, want) in [
        (Target::Pin(Some(d(1)), 5, Some(4)), Some(vec![4, d(1)])),
        (Target::Pin(Some(d(1)), 4, Some(4)), Some(vec![4, d(1)])),
        (Target::Pin(Some(d(2)), 4, Some(4)), Some(vec![4])),
        (Target::Pin(Some(d(2)), 4, None), Some(vec![4])),
        // Above the last linear version nothing stands in for the staged one.
        (Target::Pin(Some(d(2)), 5, Some(4)), None),
        (Target::Pin(None, 4, None), Some(vec![4])),
        (Target::Pin(None, 3, None), None),
        (Target::Version(d(1)), Some(vec![4, d(1)])),
        (Target::Version(3), None),
    ] {
        let plan = case().want(target, Reason::Keep).plan();
        match want {
            Some(roots) => {
                assert_eq!(plan.errors, [""; 0], "{target:?}");
                let found: Vec<u64> = plan.roots.keys().copied().collect();
                assert_eq!(found, roots, "{target:?}");
            }
            None => {
                let error = plan.errors.join(" ");
                assert!(
                    error.contains("is absent from the listing"),
                    "{target:?}: {error}"
                );
            }
        }
    }
}

#[test]
fn files_that_staging_uses() {
    let mut case = Case::default()
        .version(1, None, &[])
        .version(
            d(1),
            None,
            &[
                "data/swept.lance",
                "data/with-dead.lance",
                "data/with-live.lance",
            ],
        )
        .version(
            d(2),
            None,
            &[
                "data/dead.lance",
                "data/with-dead.lance",
                "data/dead-live.lance",
            ],
        )
        .version(
            d(3),
            None,
            &[
                "data/live.lance",
                "data/with-live.lance",
                "data/dead-live.lance",
            ],
        )
        .version(d(4), None, &["data/unknown.lance"])
        .staged(&[d(1)])
        .linear(&[1], Some(1));
    for name in [
        "swept",
        "with-dead",
        "with-live",
        "dead",
        "dead-live",
        "live",
        "unknown",
    ] {
        case = case.file(&format!("data/{name}.lance"), 400);
    }
    case.dead.insert(d(2));
    case.live.insert(d(3));
    let plan = case.plan();
    assert_eq!(names(&plan.sweep), ["data/swept.lance"]);
    assert_eq!(
        names(&plan.dead_files),
        ["data/with-dead.lance", "data/dead.lance"]
    );
    assert!(plan.orphans.is_empty());
    assert_eq!(plan.kept[&Reason::Staging].files, 3);
    assert_eq!(plan.kept[&Reason::Undecidable].files, 1);
    assert_eq!(
        plan.staging[&Verdict::Dead],
        Total {
            objects: 1,
            bytes: 100
        }
    );
}

#[test]
fn what_cannot_be_read_freezes_files_and_stays() {
    let mut case = Case::default()
        .version(1, None, &[])
        .version(d(1), None, &["data/a.lance"])
        .version(d(2), Some(d(1)), &["data/b.lance"])
        .file("data/a.lance", 30)
        .file("data/orphan.lance", 30)
        .staged(&[d(1), d(2)])
        .linear(&[1], Some(1))
        .want(Target::Version(1), Reason::Head);
    case.manifests.facts.remove(&d(2));
    case.manifests.unreadable.insert(d(2), "damaged".into());
    let plan = case.plan();
    assert_eq!(plan.chains, [vec![d(1)]]);
    assert!(plan.sweep.is_empty() && plan.orphans.is_empty());
    assert!(plan.frozen.unwrap().contains("damaged"));
    assert_eq!(plan.kept[&Reason::Undecidable].files, 2);
    assert_eq!(plan.kept[&Reason::Undecidable].versions, 1);
    // One that must stay is an error.
    let case = case.want(pin(d(2)), Reason::Tag);
    assert!(case.plan().errors.join("").contains("cannot be read"));
}
