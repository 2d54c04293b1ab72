//! Endpoints that must exist, and how many edges a source may have.

use std::collections::{BTreeMap, HashMap, HashSet};

use graph::schema::types::Cardinality;
use graph::schema::vintage::SystemRole;
use records::Types;

use crate::error::{Result, WriteError};

/// Findings that one error names.
const NAMED: usize = 5;

/// Where an endpoint was first named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// Line of the edge.
    pub line: u64,
    /// Its table.
    pub edge: usize,
    /// From or to.
    pub role: SystemRole,
}

/// The node ids that edges of the input name, by node table.
#[derive(Debug, Default)]
pub(super) struct Needed {
    by_node: BTreeMap<usize, HashMap<String, Use>>,
}

impl Needed {
    /// Note an endpoint; the first use stays.
    pub fn add(&mut self, node: usize, id: &str, used: Use) {
        let ids = self.by_node.entry(node).or_default();
        if !ids.contains_key(id) {
            ids.insert(id.to_string(), used);
        }
    }

    /// Drop what is known to exist.
    pub fn forget(&mut self, exists: impl Fn(usize, &str) -> bool) {
        for (node, ids) in &mut self.by_node {
            ids.retain(|id, _| !exists(*node, id));
        }
        self.by_node.retain(|_, ids| !ids.is_empty());
    }

    /// What is still needed of each node table.
    pub fn open(&self) -> impl Iterator<Item = (usize, HashSet<&str>)> {
        self.by_node
            .iter()
            .map(|(node, ids)| (*node, ids.keys().map(String::as_str).collect()))
    }

    /// Refuse whatever is still needed.
    pub fn require_none(&self, types: &Types) -> Result<()> {
        let mut missing: Vec<(Use, usize, &str)> = self
            .by_node
            .iter()
            .flat_map(|(node, ids)| ids.iter().map(|(id, used)| (*used, *node, id.as_str())))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_by_key(|(used, _, id)| (used.line, used.role == SystemRole::Dst, *id));
        let key = |index: usize| types.tables()[index].table_key.as_str();
        let shown: Vec<String> = missing
            .iter()
            .take(NAMED)
            .map(|(used, node, id)| {
                let side = if used.role == SystemRole::Src {
                    "from"
                } else {
                    "to"
                };
                format!(
                    "line {}: {} names {} \"{id}\" as \"{side}\"",
                    used.line,
                    key(used.edge),
                    key(*node)
                )
            })
            .collect();
        let more = match missing.len().checked_sub(NAMED) {
            Some(n) if n > 0 => format!(" and {n} more"),
            _ => String::new(),
        };
        Err(WriteError::invalid(format!(
            "edges refer to nodes that do not exist: {}{more}. Nothing was written; load the nodes first or in the same \
             input",
            shown.join("; ")
        )))
    }
}

/// Check the number of edges of each source that has any.
pub(super) fn check_cardinality<'s>(
    table_key: &str,
    allowed: Cardinality,
    counts: impl Iterator<Item = (&'s str, u64)>,
) -> Result<()> {
    let outside = |count: u64| {
        count < u64::from(allowed.min) || allowed.max.is_some_and(|max| count > u64::from(max))
    };
    let mut wrong: Vec<(&str, u64)> = counts
        .filter(|(_, count)| *count > 0 && outside(*count))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.sort_unstable();
    let shown: Vec<String> = wrong
        .iter()
        .take(NAMED)
        .map(|(source, count)| format!("\"{source}\" would have {count}"))
        .collect();
    let more = match wrong.len().checked_sub(NAMED) {
        Some(n) if n > 0 => format!(" and {n} more"),
        _ => String::new(),
    };
    let max = allowed.max.map_or_else(String::new, |max| max.to_string());
    Err(WriteError::invalid(format!(
        "{table_key} allows @card({}..{max}) edges from one node: {}{more}. Nothing was written",
        allowed.min,
        shown.join(", ")
    )))
}

/// Whether a cardinality says anything.
pub(super) fn bounded(allowed: Option<Cardinality>) -> Option<Cardinality> {
    allowed.filter(|c| c.min > 1 || c.max.is_some())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn card(min: u32, max: Option<u32>) -> Cardinality {
        Cardinality { min, max }
    }

    #[test]
    fn sources_with_edges_are_counted() {
        for (allowed, count, good) in [
            (card(0, Some(2)), 2, true),
            (card(0, Some(2)), 3, false),
            (card(2, None), 1, false),
            (card(2, None), 2, true),
            (card(2, None), 0, true),
        ] {
            let checked = check_cardinality("edge:E", allowed, [("a", count)].into_iter());
            assert_eq!(checked.is_ok(), good, "{allowed:?} {count}");
        }
        assert_eq!(bounded(Some(card(1, None))), None);
        assert!(bounded(Some(card(0, Some(1)))).is_some());
    }
}
