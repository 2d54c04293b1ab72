//! The commits of the graph as a plan needs them: parents, generation and writer of each, first-parent questions and
//! merge bases (`docs/format/maintenance.md` 5.4). Pure; about 200 bytes a commit.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use graph::model::Commit;
use graph::{Error, Result};

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// First parent.
    pub parent: Option<Arc<str>>,
    /// Merged source head.
    pub merged: Option<Arc<str>>,
    /// Greatest generation of the parents plus one.
    pub generation: u64,
    /// Native ref that wrote it; `None` is main.
    pub native: Option<Arc<str>>,
}

/// Commits by id.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    nodes: HashMap<Arc<str>, Node>,
    /// Merged parents that the legacy directory says no object holds.
    absent: HashSet<Arc<str>>,
}

const OURS: u8 = 1;
const THEIRS: u8 = 2;
const STALE: u8 = 4;

impl Ledger {
    /// Add a commit. Copies are equal wherever they stand.
    pub fn add(&mut self, commit: &Commit) {
        let text = |t: &Option<String>| t.as_deref().map(Arc::from);
        self.nodes
            .entry(Arc::from(commit.graph_commit_id.as_str()))
            .or_insert_with(|| Node {
                parent: text(&commit.parent_commit_id),
                merged: text(&commit.merged_parent_commit_id),
                generation: commit.generation,
                native: text(&commit.native_branch),
            });
    }

    /// Note a merged parent that is known to be held nowhere.
    pub fn add_absent(&mut self, id: &str) {
        self.absent.insert(Arc::from(id));
    }

    /// One commit.
    pub fn get(&self, id: &str) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// How many commits are known.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Parents that no commit of the ledger is, the ones known to be absent aside; sorted.
    pub fn missing(&self) -> Vec<&str> {
        let mut out: Vec<&str> = self
            .nodes
            .values()
            .flat_map(|n| [&n.parent, &n.merged])
            .flatten()
            .filter(|id| !self.nodes.contains_key(*id) && !self.absent.contains(*id))
            .map(|id| &**id)
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The first parents of `head`, itself first. Ends at a commit that is not held.
    pub fn first_parents<'a>(&'a self, head: &str) -> impl Iterator<Item = &'a Arc<str>> {
        let mut at = self.nodes.get_key_value(head);
        // A cycle cannot be longer than the ledger.
        let mut left = self.nodes.len();
        std::iter::from_fn(move || {
            let (id, node) = at?;
            left = left.checked_sub(1)?;
            at = node
                .parent
                .as_deref()
                .and_then(|p| self.nodes.get_key_value(p));
            Some(id)
        })
    }

    /// Whether `id` lies strictly below `head` on its first-parent lineage.
    pub fn is_below(&self, head: &str, id: &str) -> bool {
        let Some(floor) = self.get(id).map(|n| n.generation) else {
            return false;
        };
        self.first_parents(head)
            .skip(1)
            .take_while(|at| self.get(at).is_some_and(|n| n.generation >= floor))
            .any(|at| &**at == id)
    }

    /// Every best common ancestor of two commits: those that lie below no other common ancestor; sorted. None, a
    /// parent on the way that is held nowhere, and generations that do not ascend are [`Error::Internal`]: a base that
    /// is missed would lose its snapshot.
    pub fn merge_bases(&self, a: &str, b: &str) -> Result<Vec<Arc<str>>> {
        let mut walk = Walk::default();
        walk.visit(self, a, OURS, None)?;
        walk.visit(self, b, THEIRS, None)?;
        let mut bases = Vec::new();
        while walk.fresh > 0
            && let Some((_, id)) = walk.queue.pop()
        {
            let mut flags = walk.flags.get(&id).copied().unwrap_or_default();
            walk.fresh -= usize::from(flags & STALE == 0);
            if flags & (OURS | THEIRS) == OURS | THEIRS {
                if flags & STALE == 0 {
                    bases.push(id.clone());
                }
                flags |= STALE;
            }
            let Some(node) = self.get(&id) else { continue };
            for parent in [&node.parent, &node.merged].into_iter().flatten() {
                walk.visit(self, parent, flags, Some((&id, node.generation)))?;
            }
        }
        if bases.is_empty() {
            return Err(Error::internal(format!(
                "commits {a} and {b} have no merge base, so what their merge needs cannot be told; nothing was \
                 deleted, look with: omnigraph verify"
            )));
        }
        bases.sort();
        Ok(bases)
    }
}

/// A walk from two commits towards genesis, newest generation first: whatever is taken has all its flags.
#[derive(Default)]
struct Walk {
    flags: HashMap<Arc<str>, u8>,
    queue: BinaryHeap<(u64, Arc<str>)>,
    /// Queued commits that may still be, or lead to, a base.
    fresh: usize,
}

impl Walk {
    fn visit(
        &mut self,
        ledger: &Ledger,
        id: &str,
        flags: u8,
        child: Option<(&str, u64)>,
    ) -> Result<()> {
        let of = child.map_or("a branch", |(id, _)| id);
        let Some((id, node)) = ledger.nodes.get_key_value(id) else {
            if ledger.absent.contains(id) {
                return Ok(());
            }
            return Err(Error::internal(format!(
                "commit {id}, parent or head of {of}, is held nowhere, so no merge base can be told; nothing was \
                 deleted, look with: omnigraph verify"
            )));
        };
        if child.is_some_and(|(_, generation)| generation <= node.generation) {
            return Err(Error::internal(format!(
                "the generation of commit {id} is not below that of {of}, so no merge base can be told; nothing was \
                 deleted, look with: omnigraph verify"
            )));
        }
        match self.flags.get_mut(id) {
            None => {
                self.flags.insert(id.clone(), flags);
                self.queue.push((node.generation, id.clone()));
                self.fresh += usize::from(flags & STALE == 0);
            }
            Some(held) => {
                let was_fresh = *held & STALE == 0;
                *held |= flags;
                self.fresh -= usize::from(was_fresh && flags & STALE != 0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// `id first-parent merged-parent`, `-` for none; generations follow.
    fn ledger(lines: &[(&str, &str, &str)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (id, parent, merged) in lines {
            let some = |t: &str| (t != "-").then(|| t.to_string());
            let generation = [parent, merged]
                .iter()
                .filter_map(|p| ledger.get(p).map(|n| n.generation + 1))
                .max()
                .unwrap_or(0);
            ledger.add(&Commit {
                graph_commit_id: (*id).into(),
                schema_contract: None,
                schema_content_hash: None,
                graph_branch: None,
                native_branch: None,
                graph_manifest_version: 1,
                generation,
                parent_commit_id: some(parent),
                merged_parent_commit_id: some(merged),
                actor_id: None,
                created_at: 0,
            });
        }
        ledger
    }

    #[test]
    fn bases_of_two_heads() {
        // g - a - b - c ; a - x - y ; c merges y into m; y - z
        let plain = ledger(&[
            ("g", "-", "-"),
            ("a", "g", "-"),
            ("b", "a", "-"),
            ("c", "b", "-"),
            ("x", "a", "-"),
            ("y", "x", "-"),
            ("m", "c", "y"),
            ("z", "y", "-"),
        ]);
        for (a, b, want) in [
            ("c", "y", vec!["a"]),
            ("y", "c", vec!["a"]),
            ("m", "z", vec!["y"]),
            ("m", "y", vec!["y"]),
            ("g", "z", vec!["g"]),
            ("m", "m", vec!["m"]),
        ] {
            let got = plain.merge_bases(a, b).unwrap();
            let got: Vec<&str> = got.iter().map(|id| &**id).collect();
            assert_eq!(got, want, "{a} {b}");
        }
        // Criss-cross: both are best.
        let cross = ledger(&[
            ("g", "-", "-"),
            ("a", "g", "-"),
            ("b", "g", "-"),
            ("c", "a", "b"),
            ("d", "b", "a"),
        ]);
        let got = cross.merge_bases("c", "d").unwrap();
        assert_eq!(got, [Arc::from("a"), Arc::from("b")]);
    }

    #[test]
    fn what_cannot_be_told_is_an_error() {
        let two = ledger(&[("g", "-", "-"), ("h", "-", "-"), ("i", "h", "lost")]);
        assert!(two.merge_bases("g", "h").is_err());
        assert!(
            two.merge_bases("i", "h")
                .unwrap_err()
                .to_string()
                .contains("lost")
        );
        assert_eq!(two.missing(), ["lost"]);
        let mut known = two.clone();
        known.add_absent("lost");
        assert_eq!(known.merge_bases("i", "h").unwrap(), [Arc::from("h")]);
        assert!(known.missing().is_empty());
    }

    #[test]
    fn first_parents_and_below() {
        let l = ledger(&[
            ("g", "-", "-"),
            ("a", "g", "-"),
            ("x", "g", "-"),
            ("m", "a", "x"),
        ]);
        let chain: Vec<&str> = l.first_parents("m").map(|id| &**id).collect();
        assert_eq!(chain, ["m", "a", "g"]);
        for (head, id, want) in [
            ("m", "a", true),
            ("m", "g", true),
            ("m", "m", false),
            ("m", "x", false),
            ("a", "m", false),
            ("m", "unknown", false),
            ("unknown", "g", false),
        ] {
            assert_eq!(l.is_below(head, id), want, "{head} {id}");
        }
    }
}
