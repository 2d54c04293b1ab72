//! What one commit did to the tables of its first parent. Pure.

use std::collections::BTreeMap;

use graph::model::{Pin, TableIdentity, TableRow};
use serde::Serialize;

/// What happened to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It was not visible before.
    Added,
    /// It is not visible any more.
    Removed,
    /// It has another name; its rows may have changed too.
    Renamed,
    /// Another version of it is pinned.
    Changed,
}

/// A table that differs between two states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its alias, the earlier one of a table that is gone.
    pub table_key: String,
    /// What happened.
    pub change: Kind,
    /// Its alias in the parent, when that was another one.
    pub previous_key: Option<String>,
    /// Version pinned by the parent.
    pub version_before: Option<u64>,
    /// Version pinned now.
    pub version: Option<u64>,
    /// Rows in the parent.
    pub rows_before: Option<u64>,
    /// Rows now.
    pub rows: Option<u64>,
}

/// The tables that differ between the state of a parent and that of its child, by alias. Tables are told apart by
/// identity, so a renamed one stays itself and one dropped and added again is another.
pub fn between(parent: &[TableRow], child: &[TableRow]) -> Vec<Change> {
    let mut tables: BTreeMap<TableIdentity, [Option<(&str, &Pin)>; 2]> = BTreeMap::new();
    for (side, rows) in [parent, child].into_iter().enumerate() {
        for row in rows {
            if let Some(pin) = row.state.pin() {
                tables.entry(row.identity).or_default()[side] = Some((&row.table_key, pin));
            }
        }
    }
    let mut changes: Vec<Change> = tables
        .into_values()
        .filter_map(|[before, now]| {
            let change = match (before, now) {
                (None, _) => Kind::Added,
                (_, None) => Kind::Removed,
                (Some((was, _)), Some((is, _))) if was != is => Kind::Renamed,
                (Some((_, a)), Some((_, b))) => {
                    let image = |pin: &Pin| (pin.table_version, pin.row_count);
                    if image(a) == image(b) && a.table_branch == b.table_branch {
                        return None;
                    }
                    Kind::Changed
                }
            };
            let (table_key, _) = now.or(before)?;
            Some(Change {
                table_key: table_key.to_string(),
                change,
                previous_key: before
                    .map(|(was, _)| was.to_string())
                    .filter(|_| change == Kind::Renamed),
                version_before: before.map(|(_, pin)| pin.table_version),
                version: now.map(|(_, pin)| pin.table_version),
                rows_before: before.map(|(_, pin)| pin.row_count),
                rows: now.map(|(_, pin)| pin.row_count),
            })
        })
        .collect();
    changes.sort_by(|a, b| a.table_key.cmp(&b.table_key));
    changes
}

/// One line a change.
pub fn lines(changes: &[Change]) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or("none".to_string(), |n| n.to_string());
    changes
        .iter()
        .map(|c| {
            let what = match (c.change, &c.previous_key) {
                (Kind::Added, _) => "added".to_string(),
                (Kind::Removed, _) => "removed".to_string(),
                (_, Some(was)) => format!("renamed from {was}"),
                _ => "changed".to_string(),
            };
            format!(
                "  {}  {what}  version {} to {}  rows {} to {}",
                c.table_key,
                number(c.version_before),
                number(c.version),
                number(c.rows_before),
                number(c.rows)
            )
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use graph::model::TableState;

    fn row(id: u64, key: &str, pinned: Option<(u64, u64)>) -> TableRow {
        let identity = TableIdentity::new(id, 1).unwrap();
        TableRow {
            identity,
            table_key: key.into(),
            table_path: graph::model::table::canonical_path(key, identity).unwrap(),
            state: match pinned {
                None => TableState::Registered,
                Some((table_version, row_count)) => TableState::Pinned(Pin {
                    table_version,
                    table_branch: None,
                    row_count,
                    metadata: Default::default(),
                    manifest_version: table_version,
                }),
            },
        }
    }

    #[test]
    fn tables_are_told_apart_by_identity() {
        let parent = [
            row(1, "node:A", Some((1, 2))),
            row(2, "node:B", Some((3, 4))),
            row(3, "node:C", Some((5, 6))),
            row(4, "node:D", None),
            row(5, "node:E", Some((1, 1))),
        ];
        let child = [
            row(1, "node:A", Some((1, 2))),
            row(2, "node:Z", Some((3, 4))),
            row(3, "node:C", Some((6, 9))),
            row(4, "node:D", Some((1, 0))),
            row(5, "node:E", None),
        ];
        assert_eq!(
            lines(&between(&parent, &child)),
            [
                "  node:C  changed  version 5 to 6  rows 6 to 9",
                "  node:D  added  version none to 1  rows none to 0",
                "  node:E  removed  version 1 to none  rows 1 to none",
                "  node:Z  renamed from node:B  version 3 to 3  rows 4 to 4",
            ]
        );
        assert!(between(&child, &child).is_empty());
        // A type that was dropped and came back is another table.
        let again = [row(6, "node:A", Some((1, 2)))];
        let kinds: Vec<Kind> = between(&parent[..1], &again)
            .iter()
            .map(|c| c.change)
            .collect();
        assert_eq!(kinds, [Kind::Removed, Kind::Added]);
    }
}
