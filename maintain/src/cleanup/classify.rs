//! What stays and what goes at one location (`docs/format/maintenance.md` 5.5 to 5.7). Pure: a listing, the facts of its
//! manifests, what registrations name and what must stay, in; the plan of the location out.

use std::collections::HashSet;

use graph::table::is_detached;

use super::facts::Manifests;
use super::listing::{Location, Object, is_sidecar, key_of};
use super::location_plan::{File, LocationPlan, Registered, Target, Wanted};
use super::reason::Reason;
use super::staging::Verdict;

/// Age at which an object that nothing names is an orphan, in microseconds. It does not depend on the policy.
pub const ORPHAN_AGE: i64 = 7 * 86_400 * 1_000_000;

/// Classify a location. `label` names it in messages, `judge` is the verdict over an unpublished version, `now` in
/// microseconds.
pub fn classify(
    label: &str,
    listed: &Location,
    manifests: &Manifests,
    registered: &Registered,
    wanted: &Wanted,
    judge: impl Fn(u64) -> Verdict,
    now: i64,
) -> LocationPlan {
    let mut plan = LocationPlan::default();
    resolve(label, listed, manifests, registered, wanted, &mut plan);
    let published = published(listed, manifests, registered);
    let swept_linear = |version: u64| {
        registered.last_linear.is_some_and(|last| version < last)
            && registered.published.contains(&version)
            && !registered.legacy.contains(&version)
    };
    let last = registered
        .last_linear
        .or_else(|| registered.published.last().copied())
        .unwrap_or(0);
    plan.chains = chains(&published, manifests, registered);
    for chain in &mut plan.chains {
        // What cannot be read is skipped, not removed.
        chain.retain(|v| !plan.roots.contains_key(v) && manifests.facts.contains_key(v));
    }
    plan.chains.retain(|chain| !chain.is_empty());
    let mut kept_linear = Vec::new();
    let mut kept_staging = Vec::new();
    for (&version, &size) in &listed.manifests {
        if !is_detached(version) && version > last {
            plan.foreign.push(version);
        }
        if plan.roots.contains_key(&version) {
            continue;
        }
        if is_detached(version) {
            if published.contains(&version) {
                continue;
            }
            let verdict = if manifests.facts.contains_key(&version) {
                judge(version)
            } else {
                Verdict::Undecidable
            };
            plan.staging.entry(verdict).or_default().add(size);
            match verdict {
                Verdict::Dead => plan.dead.push(version),
                Verdict::Live => kept_staging.push((version, Reason::Staging)),
                Verdict::Undecidable => kept_staging.push((version, Reason::Undecidable)),
            }
        } else if swept_linear(version) && manifests.facts.contains_key(&version) {
            plan.linear.push(version);
        } else if version > last {
            // A staged pin may bear its number; what it names is the staged version.
            kept_linear.push((version, Reason::Foreign));
        } else if registered.legacy.contains(&version) {
            plan.legacy.push(version);
            kept_linear.push((version, Reason::Legacy));
        } else {
            kept_linear.push((version, Reason::Unnamed));
        }
    }
    if let Some((version, why)) = manifests.unreadable.first_key_value() {
        plan.frozen = Some(format!(
            "version {version} of {label} cannot be read ({why}), so what it uses cannot be told"
        ));
    } else if let Some(odd) = listed.odd.first() {
        plan.frozen = Some(format!(
            "{odd} of {label} has the ending of a manifest and no name of one, so what it uses cannot be told"
        ));
    }
    let mut uses = Uses::new(manifests);
    for (version, reasons) in &plan.roots {
        let first = reasons.first().copied().unwrap_or(Reason::Undecidable);
        uses.keep(*version, first);
    }
    for (version, reason) in kept_linear.iter().chain(&kept_staging) {
        uses.keep(*version, *reason);
    }
    for version in uses.kept.clone() {
        if let Some(facts) = manifests.facts.get(&version) {
            plan.origins.extend(facts.origins.iter().cloned());
        }
    }
    files(listed, &mut plan, uses, now);
    count_versions(listed, &mut plan, &published, &kept_linear, &kept_staging);
    plan
}

/// Resolve what must stay against the listing (`docs/format/maintenance.md` 5.5).
fn resolve(
    label: &str,
    listed: &Location,
    manifests: &Manifests,
    registered: &Registered,
    wanted: &Wanted,
    plan: &mut LocationPlan,
) {
    let mut wanted = wanted.clone();
    if let Some(last) = registered.last_linear {
        wanted
            .entry(Target::Version(last))
            .or_default()
            .insert(Reason::LastLinear, "it is the last linear version".into());
    }
    for (target, reasons) in wanted {
        let there = |v: u64| listed.manifests.contains_key(&v);
        let (found, asked): (Vec<u64>, u64) = match target {
            Target::Version(version) => (vec![version], version),
            Target::Pin(None, version, _) => (vec![version], version),
            Target::Pin(Some(staged), version, last) => {
                // Above the last linear version a reader opens the staged version and nothing else; otherwise it
                // prefers the twin, so both stay.
                let twin = last.is_none_or(|last| version <= last);
                let mut both = vec![staged];
                if twin {
                    both.push(version);
                }
                (both, staged)
            }
        };
        let found: Vec<u64> = found.into_iter().filter(|v| there(*v)).collect();
        if found.is_empty() {
            let who: Vec<&str> = reasons.values().map(String::as_str).collect();
            plan.errors.push(format!(
                "version {asked} of {label} is absent from the listing: {}. An earlier cleanup removed it, or the root \
                 is damaged; nothing of this table and no file of any table is removed while the policy retains it. \
                 Retain less: omnigraph cleanup --keep 1",
                who.join("; ")
            ));
        }
        for version in found {
            if let Some(why) = manifests.unreadable.get(&version) {
                plan.errors.push(format!(
                    "version {version} of {label} must stay and cannot be read: {why}; look with: omnigraph verify \
                     --deep"
                ));
            } else if !manifests.facts.contains_key(&version) {
                plan.errors.push(format!(
                    "version {version} of {label} is absent from the listing: it vanished while it was read; run the \
                     command again"
                ));
            }
            plan.roots
                .entry(version)
                .or_default()
                .extend(reasons.keys().copied());
        }
    }
}

/// Every listed version that walks from registered ones reach.
fn published(listed: &Location, manifests: &Manifests, registered: &Registered) -> HashSet<u64> {
    let mut out = HashSet::new();
    for tip in &registered.staged {
        let mut at = Some(*tip);
        while let Some(version) = at.filter(|v| listed.manifests.contains_key(v)) {
            if !out.insert(version) {
                break;
            }
            at = manifests.facts.get(&version).and_then(|f| f.link);
        }
    }
    out
}

/// The published versions as chains, each from its oldest link to its tip. A tip is what makes its unregistered links
/// recognizable, so a chain ends above the next registered version.
fn chains(
    published: &HashSet<u64>,
    manifests: &Manifests,
    registered: &Registered,
) -> Vec<Vec<u64>> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for tip in registered.staged.iter().filter(|t| published.contains(t)) {
        let mut chain = Vec::new();
        let mut at = Some(*tip);
        while let Some(version) = at.filter(|v| published.contains(v)) {
            if (version != *tip && registered.staged.contains(&version)) || !seen.insert(version) {
                break;
            }
            chain.push(version);
            at = manifests.facts.get(&version).and_then(|f| f.link);
        }
        chain.reverse();
        out.push(chain);
    }
    out
}

/// Which manifests refer to each path.
struct Uses<'a> {
    manifests: &'a Manifests,
    /// By path number: the first reason among the manifests that stay.
    reason: Vec<Option<Reason>>,
    kept: Vec<u64>,
}

impl<'a> Uses<'a> {
    fn new(manifests: &'a Manifests) -> Self {
        Self {
            manifests,
            reason: vec![None; manifests.paths.len()],
            kept: Vec::new(),
        }
    }

    fn keep(&mut self, version: u64, reason: Reason) {
        self.kept.push(version);
        for path in self.paths(version) {
            if let Some(slot) = self.reason.get_mut(*path as usize) {
                *slot = Some(slot.map_or(reason, |held| held.min(reason)));
            }
        }
    }

    fn paths(&self, version: u64) -> &'a [u32] {
        self.manifests
            .facts
            .get(&version)
            .map_or(&[], |f| f.paths.as_slice())
    }

    fn marked(&self, versions: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let mut out = vec![false; self.reason.len()];
        for version in versions {
            for path in self.paths(version) {
                if let Some(slot) = out.get_mut(*path as usize) {
                    *slot = true;
                }
            }
        }
        out
    }
}

/// Sort the objects of the location into what goes and what stays.
fn files(listed: &Location, plan: &mut LocationPlan, uses: Uses<'_>, now: i64) {
    let swept = uses.marked(plan.chains.iter().flatten().chain(&plan.linear).copied());
    let dead = uses.marked(plan.dead.iter().copied());
    let referenced = uses.marked(uses.manifests.facts.keys().copied());
    let number = |object: &Object| -> Option<Option<u32>> {
        let key = key_of(&object.path)?;
        Some(if is_sidecar(&object.path) {
            uses.manifests.paths.get(&format!("{key}.lance"))
        } else {
            uses.manifests.paths.get(key)
        })
    };
    let is = |set: &[bool], path: u32| set.get(path as usize).copied().unwrap_or_default();
    let old = |object: &Object| now.saturating_sub(object.modified) > ORPHAN_AGE;
    // An index goes as a whole or not at all.
    let fresh_indexes: HashSet<&str> = listed
        .objects
        .iter()
        .filter(|o| o.path.starts_with("_indices/") && !old(o))
        .filter_map(|o| key_of(&o.path))
        .collect();
    for object in &listed.objects {
        let Some(path) = number(object) else { continue };
        let file = || File {
            object: object.clone(),
            counted: !object.path.starts_with("_indices/"),
        };
        let stays = match path.filter(|p| is(&referenced, *p)) {
            Some(path) => match uses.reason.get(path as usize).copied().flatten() {
                Some(reason) => Some(reason),
                None if plan.frozen.is_some() => Some(Reason::Undecidable),
                // What dead staging uses too goes with it, after the swept manifests.
                None if is(&dead, path) => {
                    plan.dead_files.push(file());
                    None
                }
                None if is(&swept, path) => {
                    plan.sweep.push(file());
                    None
                }
                None => Some(Reason::Undecidable),
            },
            None if plan.frozen.is_some() => Some(Reason::Undecidable),
            None => {
                let fresh = key_of(&object.path).is_some_and(|k| fresh_indexes.contains(k));
                if old(object) && !fresh {
                    plan.orphans.push(file());
                    None
                } else {
                    Some(Reason::Recent)
                }
            }
        };
        if let Some(reason) = stays {
            let kept = plan.kept.entry(reason).or_default();
            kept.files += 1;
            kept.bytes = kept.bytes.saturating_add(object.size);
        }
    }
    if listed.layout.objects > 0 {
        let kept = plan.kept.entry(Reason::Layout).or_default();
        kept.files += listed.layout.objects;
        kept.bytes = kept.bytes.saturating_add(listed.layout.bytes);
    }
}

fn count_versions(
    listed: &Location,
    plan: &mut LocationPlan,
    published: &HashSet<u64>,
    kept_linear: &[(u64, Reason)],
    kept_staging: &[(u64, Reason)],
) {
    let swept: HashSet<u64> = plan.chains.iter().flatten().copied().collect();
    // Published ones that could not be read stay, undecided.
    let skipped = published
        .iter()
        .filter(|v| !swept.contains(v) && !plan.roots.contains_key(v))
        .map(|v| (*v, Reason::Undecidable));
    let roots = plan
        .roots
        .iter()
        .map(|(v, reasons)| (*v, reasons.first().copied().unwrap_or(Reason::Undecidable)));
    let all: Vec<(u64, Reason)> = roots
        .chain(kept_linear.iter().copied())
        .chain(kept_staging.iter().copied())
        .chain(skipped)
        .collect();
    for (version, reason) in all {
        let kept = plan.kept.entry(reason).or_default();
        kept.versions += 1;
        let size = listed.manifests.get(&version).copied().unwrap_or_default();
        kept.bytes = kept.bytes.saturating_add(size);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
