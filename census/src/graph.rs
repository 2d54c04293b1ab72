//! The commit graph of all refs (`docs/format/legacy-manifest.md` 7.3): who owns each commit, which
//! commits have lost every ref that wrote them, and every commit's generation. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ::graph::ulids;
use legacy::LegacyCommit;
use legacy::fold::commit_order;
use ulid::Ulid;

use crate::finding::{Finding, label, listed};
use crate::heads::Head;

/// A commit whose writer is gone, with the ref whose rows still show it.
#[derive(Debug)]
pub(crate) struct Orphan<'a> {
    pub commit: &'a LegacyCommit,
    /// Position of the first head, in census order, that holds it.
    pub adopter: usize,
}

/// What [`build`] proves.
#[derive(Debug)]
pub(crate) struct CommitGraph<'a> {
    /// Generation by commit id.
    pub generations: HashMap<&'a str, u64>,
    /// Orphaned commits by logical branch, each list in record order.
    pub orphans: BTreeMap<&'a str, Vec<Orphan<'a>>>,
    /// Merged parents that no ref holds.
    pub absent: BTreeSet<Ulid>,
}

/// Build the graph of the heads, given in census order.
pub(crate) fn build(heads: &[Head]) -> Result<CommitGraph<'_>, Finding> {
    let mut present = owners(heads)?;
    let orphans = orphans(heads, &mut present)?;
    let commits = present.into_commits();
    let absent = parents(&commits)?;
    let generations = generations(&commits)?;
    Ok(CommitGraph {
        generations,
        orphans,
        absent,
    })
}

/// Present commits by id, with the position of the head that owns or adopts them.
struct Present<'a> {
    by_id: HashMap<&'a str, (&'a LegacyCommit, usize)>,
    /// Ids in the order they were met, so that nothing depends on hashing.
    order: Vec<&'a str>,
}

impl<'a> Present<'a> {
    fn insert(&mut self, commit: &'a LegacyCommit, at: usize) {
        self.by_id.insert(&commit.id, (commit, at));
        self.order.push(&commit.id);
    }

    fn into_commits(self) -> Vec<&'a LegacyCommit> {
        self.order
            .iter()
            .filter_map(|id| self.by_id.get(id).map(|(commit, _)| *commit))
            .collect()
    }
}

fn owners(heads: &[Head]) -> Result<Present<'_>, Finding> {
    let mut present = Present {
        by_id: HashMap::new(),
        order: Vec::new(),
    };
    let mut twice = Vec::new();
    for (at, head) in heads.iter().enumerate() {
        for commit in head.own() {
            if let Some((held, other)) = present.by_id.get(commit.id.as_str()) {
                twice.push(format!(
                    "{} in {} (version {}) and in {} (version {})",
                    commit.id,
                    heads[*other].label(),
                    held.version,
                    head.label(),
                    commit.version
                ));
                continue;
            }
            present.insert(commit, at);
        }
    }
    if twice.is_empty() {
        Ok(present)
    } else {
        Err(Finding::corrupt(format!(
            "a commit is owned by one ref, these are owned by two: {}",
            listed(twice)
        )))
    }
}

fn orphans<'a>(
    heads: &'a [Head],
    present: &mut Present<'a>,
) -> Result<BTreeMap<&'a str, Vec<Orphan<'a>>>, Finding> {
    let mut adopted: HashSet<&str> = HashSet::new();
    let mut orphans: BTreeMap<&str, Vec<Orphan>> = BTreeMap::new();
    for (at, head) in heads.iter().enumerate() {
        for commit in head.inherited() {
            let id = commit.id.as_str();
            if adopted.contains(id) {
                differing_copy(heads, present, commit, at)?;
                continue;
            }
            if present.by_id.contains_key(id) {
                continue;
            }
            let Some(branch) = commit.branch.as_deref() else {
                return Err(Finding::corrupt(format!(
                    "{} inherited commit {id} of main (version {}), which main itself does not hold",
                    head.label(),
                    commit.version
                )));
            };
            if !ulids::is_canonical(id) {
                return Err(Finding::unsupported(format!(
                    "{} inherited commit '{id}' of the deleted branch '{branch}' (version {}), whose id \
                     is not a canonical ULID, which the history cannot index",
                    head.label(),
                    commit.version
                )));
            }
            adopted.insert(id);
            present.insert(commit, at);
            orphans.entry(branch).or_default().push(Orphan {
                commit,
                adopter: at,
            });
        }
    }
    for list in orphans.values_mut() {
        list.sort_by(|a, b| commit_order(a.commit).cmp(&commit_order(b.commit)));
    }
    Ok(orphans)
}

/// An adopted commit that another row shows must be the same row.
fn differing_copy(
    heads: &[Head],
    present: &Present,
    commit: &LegacyCommit,
    at: usize,
) -> Result<(), Finding> {
    match present.by_id.get(commit.id.as_str()) {
        Some((first, adopter)) if *first != commit => Err(Finding::corrupt(format!(
            "{} and {} hold differing copies of commit {} of the deleted branch '{}'",
            heads[*adopter].label(),
            heads[at].label(),
            commit.id,
            first.branch.as_deref().unwrap_or("main")
        ))),
        _ => Ok(()),
    }
}

/// Check that every first parent is present; collect the merged parents that are not.
fn parents(commits: &[&LegacyCommit]) -> Result<BTreeSet<Ulid>, Finding> {
    let present: HashSet<&str> = commits.iter().map(|c| c.id.as_str()).collect();
    let missing: BTreeSet<String> = commits
        .iter()
        .filter_map(|c| {
            let parent = c.parent.as_deref().filter(|p| !present.contains(p))?;
            let of = label(None);
            let branch = c.branch.as_deref().unwrap_or(&of);
            Some(format!(
                "{parent} (parent of {}, version {} of '{branch}')",
                c.id, c.version
            ))
        })
        .collect();
    if !missing.is_empty() {
        return Err(Finding::incomplete(format!(
            "{} commits have a first parent that no ref of this graph holds: {}",
            missing.len(),
            listed(missing)
        )));
    }
    let mut absent = BTreeSet::new();
    let mut odd = BTreeSet::new();
    for commit in commits {
        let Some(parent) = commit.merged_parent.as_deref() else {
            continue;
        };
        if present.contains(parent) {
            continue;
        }
        match ulids::parse_canonical(parent) {
            Some(id) => {
                absent.insert(id);
            }
            None => {
                odd.insert(format!("'{parent}' (merged by {})", commit.id));
            }
        }
    }
    if odd.is_empty() {
        Ok(absent)
    } else {
        Err(Finding::unsupported(format!(
            "merged parents that no ref holds are kept by id, but these are not canonical ULIDs: {}",
            listed(odd)
        )))
    }
}

/// Generations in topological order, without recursion: a history can be a hundred thousand deep.
fn generations<'a>(commits: &[&'a LegacyCommit]) -> Result<HashMap<&'a str, u64>, Finding> {
    let index: HashMap<&str, usize> = commits
        .iter()
        .enumerate()
        .map(|(at, c)| (c.id.as_str(), at))
        .collect();
    let parents_of = |at: usize| {
        let c = commits[at];
        [c.parent.as_deref(), c.merged_parent.as_deref()]
            .into_iter()
            .flatten()
            .filter_map(|id| index.get(id).copied())
    };
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); commits.len()];
    let mut waiting: Vec<u8> = vec![0; commits.len()];
    for (at, open) in waiting.iter_mut().enumerate() {
        for parent in parents_of(at) {
            children[parent].push(at);
            *open += 1;
        }
    }
    let mut ready: Vec<usize> = (0..commits.len()).filter(|at| waiting[*at] == 0).collect();
    let mut generation: Vec<u64> = vec![0; commits.len()];
    let mut done = 0;
    while let Some(at) = ready.pop() {
        done += 1;
        let next = generation[at]
            .checked_add(1)
            .ok_or_else(|| Finding::corrupt("a commit's generation overflows"))?;
        for child in &children[at] {
            generation[*child] = generation[*child].max(next);
            waiting[*child] -= 1;
            if waiting[*child] == 0 {
                ready.push(*child);
            }
        }
    }
    if done < commits.len() {
        return Err(cycle(commits, &waiting, parents_of));
    }
    Ok(commits
        .iter()
        .zip(generation)
        .map(|(c, g)| (c.id.as_str(), g))
        .collect())
}

/// Name one cycle: every commit that still waits has a parent that still waits, so following those
/// must come back to a commit already met.
fn cycle<I: Iterator<Item = usize>>(
    commits: &[&LegacyCommit],
    waiting: &[u8],
    parents_of: impl Fn(usize) -> I,
) -> Finding {
    let mut path: Vec<usize> = Vec::new();
    let mut met: HashMap<usize, usize> = HashMap::new();
    let mut next = (0..commits.len()).find(|at| waiting[*at] > 0);
    while let Some(at) = next {
        if let Some(start) = met.get(&at) {
            path.drain(..*start);
            break;
        }
        met.insert(at, path.len());
        path.push(at);
        next = parents_of(at).find(|parent| waiting[*parent] > 0);
    }
    Finding::corrupt(format!(
        "the ancestry of {} commits goes round in a circle: {}",
        path.len(),
        listed(path.iter().map(|at| &commits[*at].id))
    ))
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
