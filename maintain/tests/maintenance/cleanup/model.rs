//! A reference model of which state is readable, against random sequences of writes, branches, tags, a drop and
//! cleanups under random policies.

use std::collections::{BTreeMap, BTreeSet};

use graph::view::{At, snapshot};
use maintain::cleanup::Policy;
use write::load::Mode;

use super::support::*;

type PinKey = (String, u64);

/// A commit as the model knows it.
struct Known {
    parent: Option<String>,
    rows: String,
    pins: BTreeSet<PinKey>,
}

/// A live branch: its own versions in order, each with the commit it shows.
#[derive(Clone)]
struct Branch {
    versions: Vec<(u64, String)>,
    named: bool,
}

struct Model {
    graph: Graph,
    seed: u64,
    commits: BTreeMap<String, Known>,
    branches: BTreeMap<String, Branch>,
    /// Tags of main's versions.
    tags: BTreeMap<String, String>,
    dropped: bool,
    made: u64,
    /// Cleanups, those of a graph that had lost nothing, and those of them that removed something.
    cleanups: [u32; 3],
}

impl Model {
    fn roll(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    fn pick(&mut self) -> String {
        let at = self.roll(self.branches.len() as u64) as usize;
        self.branches.keys().nth(at).unwrap().clone()
    }

    async fn learn(&mut self, name: &str, version: u64) {
        let logical = (name != "main").then_some(name);
        let root = self.graph.root().await;
        let shown = snapshot(&root, logical, &At::Head).await.unwrap();
        assert_eq!(shown.manifest_version, version);
        let pins = shown
            .tables
            .iter()
            .filter_map(|t| {
                let pin = t.state.pin()?;
                let opened = pin.metadata.staged_version.unwrap_or(pin.table_version);
                Some((t.table_path.clone(), opened))
            })
            .collect();
        let id = shown.head.graph_commit_id.clone();
        self.commits.insert(
            id.clone(),
            Known {
                parent: shown.head.parent_commit_id.clone(),
                rows: self.graph.rows(logical, &At::Head).await.unwrap(),
                pins,
            },
        );
        let branch = self.branches.get_mut(name).unwrap();
        branch.versions.push((version, id));
    }

    async fn write(&mut self) {
        let name = self.pick();
        let logical = (name != "main").then_some(name.as_str());
        let n = self.roll(4);
        self.made += 1;
        let made = self.made;
        if n == 0 && !(self.dropped) {
            let line = format!(r#"{{"type":"City","data":{{"name":"c{made}"}}}}"#);
            self.graph.load(logical, Mode::Overwrite, &line).await;
        } else if n == 1 {
            self.graph
                .people(logical, &["ada", &format!("p{made}")])
                .await;
        } else {
            let age = i32::try_from(made).unwrap();
            self.graph
                .person(logical, &format!("q{}", made % 3), age)
                .await;
        }
        let version = self.graph.version(logical).await;
        self.learn(&name, version).await;
    }

    async fn step(&mut self) {
        match self.roll(12) {
            0 if self.branches.len() < 4 => {
                let from = self.pick();
                let source = self.branches[&from].versions.last().unwrap().clone();
                self.made += 1;
                let name = format!("b{}", self.made);
                let logical = (from != "main").then_some(from.as_str());
                self.graph.branch(&name, logical).await;
                let branch = Branch {
                    versions: vec![source],
                    named: true,
                };
                self.branches.insert(name, branch);
            }
            1 if self.branches.len() > 1 => {
                let name = self.pick();
                if name != "main" {
                    self.graph.delete_branch(&name).await;
                    self.branches.remove(&name);
                }
            }
            2 => {
                let versions = self.branches["main"].versions.clone();
                let at = self.roll(versions.len() as u64) as usize;
                let (version, commit) = versions[at].clone();
                // A tag on what an earlier cleanup took names nothing that could stay.
                if self.graph.rows(None, &At::Version(version)).await.is_ok() {
                    let name = format!("t{version}");
                    self.graph.tag("__manifest", &name, None, version);
                    self.tags.insert(name, commit);
                }
            }
            3 if !self.dropped && self.branches.len() == 1 => {
                self.graph.drop_city().await;
                self.dropped = true;
                let version = self.graph.version(None).await;
                self.learn("main", version).await;
            }
            4 | 5 => self.clean().await,
            _ => self.write().await,
        }
    }

    fn chain(&self, commit: &str) -> Vec<String> {
        let mut out = vec![commit.to_string()];
        while let Some(parent) = self
            .commits
            .get(out.last().unwrap())
            .and_then(|c| c.parent.clone())
        {
            out.push(parent);
        }
        out
    }

    /// The commits whose states a policy retains.
    fn retained(&self, keep: Option<u32>, all: bool) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        let mut heads = BTreeSet::new();
        for branch in self.branches.values() {
            let versions = &branch.versions;
            let newest = keep.map_or(1, |k| k.max(1)) as usize;
            let from = versions
                .len()
                .saturating_sub(if all { versions.len() } else { newest });
            out.extend(versions[from..].iter().map(|(_, c)| c.clone()));
            if branch.named {
                out.insert(versions[0].1.clone());
            }
            heads.insert(versions.last().unwrap().1.clone());
        }
        out.extend(self.tags.values().cloned());
        heads.extend(self.tags.values().cloned());
        for a in &heads {
            let above = self.chain(a);
            for b in &heads {
                let base = self
                    .chain(b)
                    .into_iter()
                    .find(|c| above.contains(c))
                    .unwrap();
                out.insert(base);
            }
        }
        out
    }

    async fn clean(&mut self) {
        let keep = [None, Some(0), Some(1), Some(2), Some(3)][self.roll(5) as usize];
        let age = [None, Some("0"), Some("52w")][self.roll(3) as usize];
        let (keep, age) = if keep.is_none() && age.is_none() {
            (Some(1), None)
        } else {
            (keep, age)
        };
        let policy = Policy::new(keep, age).unwrap();
        let retained = self.retained(keep, age == Some("52w"));
        // What an earlier, narrower cleanup took from a state that is retained again cannot come back.
        let mut lost = false;
        let before = self.graph.bytes();
        let mut readable = BTreeMap::new();
        for id in self.commits.keys() {
            readable.insert(
                id.clone(),
                self.graph.rows(None, &At::Commit(id.clone())).await.is_ok(),
            );
        }
        for id in &retained {
            lost |= !readable[id];
        }
        let report = self.graph.clean(policy).await;
        assert!(self.graph.bytes() <= before);
        if lost {
            assert!(report.failures() > 0, "{report:#?}");
        } else {
            fine(&report);
        }
        self.cleanups[0] += 1;
        self.cleanups[1] += u32::from(!lost);
        self.cleanups[2] += u32::from(!lost && report.totals().0 > 0);
        let pins: BTreeSet<&PinKey> = retained
            .iter()
            .flat_map(|id| &self.commits[id].pins)
            .collect();
        for (id, known) in &self.commits {
            let found = self.graph.rows(None, &At::Commit(id.clone())).await;
            // Linear creations always stay.
            let needed = known.pins.iter().all(|p| p.1 == 1 || pins.contains(p));
            if needed && readable[id] {
                assert_eq!(
                    found.as_ref(),
                    Ok(&known.rows),
                    "{id} under {keep:?} {age:?}"
                );
            } else if !lost {
                assert!(found.is_err(), "{id} under {keep:?} {age:?} is still there");
            }
        }
    }
}

async fn sequence(seed: u64, steps: u32) -> [u32; 3] {
    let mut model = Model {
        graph: Graph::new().await,
        seed,
        commits: BTreeMap::new(),
        branches: BTreeMap::from([(
            "main".to_string(),
            Branch {
                versions: Vec::new(),
                named: false,
            },
        )]),
        tags: BTreeMap::new(),
        dropped: false,
        made: 0,
        cleanups: [0; 3],
    };
    model.learn("main", 1).await;
    for _ in 0..steps {
        model.step().await;
    }
    model.write().await;
    fine(&model.graph.clean(keep(1)).await);
    idle(&model.graph.clean(keep(1)).await);
    model.cleanups
}

/// Sequences of the default run; `OMNIGRAPH_SEQUENCES=45` walks for some minutes.
fn sequences() -> u64 {
    let asked = std::env::var("OMNIGRAPH_SEQUENCES").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(4)
}

#[test]
fn random_sequences() {
    run(|| async {
        let mut sum = [0; 3];
        for seed in 1..=sequences() {
            // The first ones are short and what the sums below are of.
            let steps = if seed <= 4 { 24 } else { 40 };
            let cleanups = sequence(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), steps).await;
            for (sum, n) in sum.iter_mut().zip(cleanups) {
                *sum += n;
            }
        }
        // The walk is one that means something.
        assert!(sum[0] >= 8 && sum[1] >= 6 && sum[2] >= 3, "{sum:?}");
    });
}
