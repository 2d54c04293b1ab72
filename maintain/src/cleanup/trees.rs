//! Which native trees nothing needs any more (`docs/format/maintenance.md` 5.8). Pure.

use std::collections::{BTreeMap, BTreeSet};

use graph::refs::BranchIdentifier;
use graph::ulids;

use super::listing::Total;
use super::reason::Reason;

/// A tree of one dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Native name.
    pub name: String,
    /// Whether a ref object names it.
    pub has_ref: bool,
    /// The ref it was forked from; `None` for main and for a tree that says nothing of itself.
    pub parent: Option<String>,
    /// Its identifier, when a ref object or an archive records it.
    pub identifier: Option<BranchIdentifier>,
    /// Whether a retirement archive lies in it.
    pub archived: bool,
    /// What lies in it.
    pub total: Total,
    /// When its newest object, its archive or its ref object was written.
    pub newest: i64,
}

/// Why a tree stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The class.
    pub reason: Reason,
    /// In words.
    pub why: String,
    /// Whether all of its own files stay with it, whatever manifests use them.
    pub shields: bool,
}

impl Stay {
    /// A reason with its words.
    pub fn new(reason: Reason, why: impl Into<String>) -> Self {
        Self {
            reason,
            why: why.into(),
            shields: false,
        }
    }

    /// The same, for all files of the tree too.
    #[must_use]
    pub fn shielding(self) -> Self {
        Self {
            shields: true,
            ..self
        }
    }
}

/// Whether `tree` cannot be read, or not be told apart, without `other`: it lies below it, was forked from it, or
/// descends from it by identifier.
fn depends(tree: &Tree, other: &Tree) -> bool {
    let below = tree
        .name
        .strip_prefix(&other.name)
        .is_some_and(|rest| rest.starts_with('/'));
    let forked = tree.parent.as_deref() == Some(&other.name);
    let descends = match (&tree.identifier, &other.identifier) {
        (Some(own), Some(above)) => {
            let (own, above) = (&own.version_mapping, &above.version_mapping);
            !above.is_empty() && own.len() > above.len() && own.starts_with(above)
        }
        _ => false,
    };
    tree.name != other.name && (below || forked || descends)
}

/// Close `stays`, the trees kept for reasons of their own, over what they depend on. A kept tree without a ref keeps
/// every tree of its first path segment: deletions by other tools remove the topmost folder that no ref shares.
pub fn close(trees: &[Tree], mut stays: BTreeMap<String, Stay>) -> BTreeMap<String, Stay> {
    loop {
        let mut more: BTreeMap<String, Stay> = BTreeMap::new();
        for tree in trees.iter().filter(|t| !stays.contains_key(&t.name)) {
            let kept = || trees.iter().filter(|k| stays.contains_key(&k.name));
            let first = |name: &str| name.split('/').next().unwrap_or_default().to_string();
            if let Some(child) = kept().find(|k| depends(k, tree)) {
                let why = format!("tree '{}', which stays, depends on it", child.name);
                more.insert(
                    tree.name.clone(),
                    Stay::new(Reason::Borrowed, why).shielding(),
                );
            } else if let Some(zombie) =
                kept().find(|k| !k.has_ref && first(&k.name) == first(&tree.name))
            {
                let why = format!(
                    "it shares its first folder with tree '{}', which stays and has no ref",
                    zombie.name
                );
                more.insert(tree.name.clone(), Stay::new(Reason::Borrowed, why));
            }
        }
        if more.is_empty() {
            return stays;
        }
        stays.extend(more);
    }
}

/// The trees that go, leaves first: each before everything it depends on. Trees that depend on each other in a circle
/// are left out, since none of them can go first.
pub fn leaf_first<'a>(trees: &'a [Tree], stays: &BTreeMap<String, Stay>) -> Vec<&'a Tree> {
    let mut left: Vec<&Tree> = trees
        .iter()
        .filter(|t| !stays.contains_key(&t.name))
        .collect();
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = Vec::new();
    loop {
        let free: BTreeSet<&str> = left
            .iter()
            .filter(|t| !left.iter().any(|other| depends(other, t)))
            .map(|t| t.name.as_str())
            .collect();
        if free.is_empty() {
            return out;
        }
        let (now, later): (Vec<&Tree>, Vec<&Tree>) = left
            .into_iter()
            .partition(|t| free.contains(t.name.as_str()));
        out.extend(now);
        left = later;
    }
}

/// The rule of names of table forks: one that starts with `fork.` goes only when it has the exact form and the branch
/// incarnation it names (`live` holds the ULIDs of live ones) is gone.
pub fn fork_name(name: &str, live: &BTreeSet<String>) -> Option<Stay> {
    let rest = name.strip_prefix("fork.")?;
    let parts: Vec<&str> = rest.split('.').collect();
    let decimal = |text: &str| {
        text.strip_prefix('m')
            .and_then(|n| n.parse::<u64>().ok().filter(|v| v.to_string() == n))
            .is_some()
    };
    match parts[..] {
        [owner, version, unique]
            if ulids::is_canonical(owner) && decimal(version) && ulids::is_canonical(unique) =>
        {
            live.contains(owner).then(|| {
                Stay::new(
                    Reason::Head,
                    format!("branch incarnation {owner}, which it names, is live"),
                )
            })
        }
        _ => Some(Stay::new(
            Reason::Undecidable,
            "its name starts with 'fork.' and names no branch incarnation",
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const A: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA0";
    const B: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA1";

    fn tree(name: &str, parent: Option<&str>, mapping: &[u64], has_ref: bool) -> Tree {
        Tree {
            name: name.into(),
            has_ref,
            parent: parent.map(str::to_string),
            identifier: Some(BranchIdentifier {
                version_mapping: mapping.iter().map(|v| (*v, format!("{v:032x}"))).collect(),
            }),
            ..Tree::default()
        }
    }

    fn stays(names: &[&str]) -> BTreeMap<String, Stay> {
        names
            .iter()
            .map(|n| (n.to_string(), Stay::new(Reason::Head, "live")))
            .collect()
    }

    #[test]
    fn what_depends_stays() {
        let trees = [
            tree("team", None, &[1], false),
            tree("team/a", None, &[2], true),
            tree("p", None, &[3], false),
            tree("c", Some("p"), &[9, 8], true),
            tree("anc", None, &[9], false),
            tree("free", None, &[7], false),
            tree("z/kept", None, &[5], false),
            tree("z/other", None, &[6], true),
        ];
        let kept: Vec<String> = close(&trees, stays(&["team/a", "c", "z/kept"]))
            .into_keys()
            .collect();
        assert_eq!(
            kept,
            ["anc", "c", "p", "team", "team/a", "z/kept", "z/other"]
        );
    }

    #[test]
    fn leaves_go_first_and_circles_stay() {
        let trees = [
            tree("a", None, &[1], false),
            tree("a/b", Some("a"), &[1, 2], false),
            tree("x", Some("y"), &[5], false),
            tree("y", Some("x"), &[6], false),
        ];
        let order: Vec<&str> = leaf_first(&trees, &stays(&[]))
            .iter()
            .map(|t| t.name.as_str())
            .collect();
        assert_eq!(order, ["a/b", "a"]);
        assert!(leaf_first(&trees, &stays(&["a", "a/b"])).is_empty());
    }

    #[test]
    fn names_of_forks() {
        let live = BTreeSet::from([A.to_string()]);
        assert_eq!(fork_name("survey", &live), None);
        assert_eq!(fork_name(&format!("fork.{B}.m12.{A}"), &live), None);
        let named = fork_name(&format!("fork.{A}.m12.{B}"), &live).unwrap();
        assert_eq!(named.reason, Reason::Head);
        for odd in [
            "fork.".to_string(),
            format!("fork.{B}.m12"),
            format!("fork.{B}.m012.{A}"),
            format!("fork.{B}.12.{A}"),
            format!("fork.legacy.m1.{A}"),
            format!("fork.{}.m1.{A}", B.to_lowercase()),
            format!("fork.{B}.m1.{A}.x"),
        ] {
            let kept = fork_name(&odd, &live).unwrap();
            assert_eq!(kept.reason, Reason::Undecidable, "{odd}");
        }
    }
}
