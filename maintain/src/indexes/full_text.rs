//! `rebuild-full-text-indexes`: every full-text index of a branch anew, with the default English analyzer.

use std::sync::Arc;

use graph::model::TableKind;
use graph::store::Root;
use graph::table::open_pin;
use lance::Dataset;
use lance_table::format::IndexMetadata;
use write::Result;

use super::build::{Build, Recipe, build};
use super::declared::{DeclaredIndex, IndexKind, declared};
use super::held::{HeldIndex, HeldKind};
use super::missing::name;
use super::report::{RebuildPlan, RebuildReport, RebuiltIndex};
use super::{IndexOptions, Pinned, TableIndexes, pass, pinned, stage_link};
use crate::entry::admit;
use crate::publish::publish_tables;

/// The one warning of a run that rebuilt anything.
const REPLACED: &str = "custom tokenizer settings of the rebuilt full-text indexes were replaced by the default \
                        English analyzer";

/// One index to rebuild, and the segments it takes the place of.
#[derive(Debug, Clone, PartialEq)]
struct Rebuild {
    column: String,
    replaces: Option<(String, Vec<IndexMetadata>)>,
}

/// The full-text indexes a run rebuilds: those that exist on the table, and on a node those that are declared and
/// missing. Pure.
fn rebuilds(is_node: bool, declared: &[DeclaredIndex], held: &[HeldIndex]) -> Vec<Rebuild> {
    let mut all: Vec<Rebuild> = held
        .iter()
        .filter(|h| h.kind == HeldKind::FullText)
        .filter_map(|h| {
            Some(Rebuild {
                column: h.column.clone()?,
                replaces: Some((h.name.clone(), h.segments.clone())),
            })
        })
        .collect();
    let missing = declared
        .iter()
        .filter(|d| is_node && d.kind == IndexKind::FullText)
        .filter(|d| !all.iter().any(|r| r.column == d.column))
        .map(|d| Rebuild {
            column: d.column.clone(),
            replaces: None,
        })
        .collect::<Vec<_>>();
    all.extend(missing);
    all.sort_by(|a, b| a.column.cmp(&b.column));
    all
}

/// A table's image and what a run rebuilds of it; an empty table has nothing to index.
async fn read(root: &Root, table: &Pinned<'_>) -> Result<(Arc<Dataset>, Vec<Rebuild>)> {
    let dataset = open_pin(root, table.row, table.pin).await?.dataset;
    let read = TableIndexes::read(&dataset, &[]).await?;
    let (kind, _) = TableKind::split(&table.row.table_key)?;
    let found = if read.rows == 0 {
        Vec::new()
    } else {
        rebuilds(kind == TableKind::Node, table.declared, &read.held)
    };
    Ok((dataset, found))
}

/// Say what `rebuild-full-text-indexes` would do to `branch` (`None` = main). Changes nothing.
pub async fn plan_full_text(root: &Root, branch: Option<&str>) -> Result<RebuildPlan> {
    let capture = admit(root, branch).await?;
    let all = declared(&capture.ir);
    let mut plan = RebuildPlan {
        uri: root.uri().to_string(),
        branch: name(&capture),
        full_text_indexes: Vec::new(),
    };
    for table in pinned(&capture, &all) {
        let (_, found) = read(root, &table).await?;
        plan.full_text_indexes
            .extend(found.into_iter().map(|r| RebuiltIndex {
                type_key: table.row.table_key.clone(),
                property: r.column,
            }));
    }
    Ok(plan)
}

/// Rebuild every full-text index of the branch. One graph commit, or none when it has none. Conflicts as in
/// [`super::build_missing`].
pub async fn rebuild_full_text(root: &Root, options: &IndexOptions) -> Result<RebuildReport> {
    let capture = admit(root, options.branch.as_deref()).await?;
    let all = declared(&capture.ir);
    let tables = pinned(&capture, &all);
    let _held = pass(root, &capture, &tables).await?;
    let witness = capture.witness()?;
    let mut report = RebuildReport {
        uri: root.uri().to_string(),
        branch: name(&capture),
        graph_commit_id: None,
        warnings: Vec::new(),
        rebuilt_indexes: Vec::new(),
    };
    let mut updates = Vec::new();
    for table in &tables {
        let (dataset, found) = read(root, table).await?;
        let (mut new, mut removed) = (Vec::new(), Vec::new());
        for rebuild in found {
            options.stop.check(|| {
                format!(
                    "{} full-text indexes were rebuilt and none of them is published, the graph is unchanged; run \
                     the command again",
                    report.rebuilt_indexes.len()
                )
            })?;
            let (replaces, segments) = rebuild.replaces.unzip();
            let what = Build {
                column: rebuild.column.clone(),
                recipe: Recipe::FullText,
                replaces,
            };
            new.push(build(&dataset, &what).await?);
            removed.extend(segments.unwrap_or_default());
            report.rebuilt_indexes.push(RebuiltIndex {
                type_key: table.row.table_key.clone(),
                property: rebuild.column,
            });
        }
        if !new.is_empty() {
            updates.push(stage_link(root, table, new, removed, &witness).await?);
        }
    }
    if !updates.is_empty() {
        options.stop.check(|| {
            "every full-text index was rebuilt and none is published, the graph is unchanged; run the command again"
                .into()
        })?;
        let published = publish_tables(root, &capture, updates, options.actor.as_deref()).await?;
        report.graph_commit_id = Some(published.state.head.graph_commit_id.clone());
        report.warnings.push(REPLACED.to_string());
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_ones_count_on_nodes_only() {
        let held = |name: &str, column: &str, kind| HeldIndex {
            name: name.into(),
            column: Some(column.into()),
            kind,
            covered: None,
            segments: Vec::new(),
        };
        let there = [
            held("b_idx", "b", HeldKind::FullText),
            held("id_idx", "id", HeldKind::Btree),
        ];
        let declared = ["a", "b"].map(|column| DeclaredIndex {
            column: column.into(),
            kind: IndexKind::FullText,
        });
        let columns = |is_node| -> Vec<(String, bool)> {
            rebuilds(is_node, &declared, &there)
                .into_iter()
                .map(|r| (r.column, r.replaces.is_some()))
                .collect()
        };
        assert_eq!(columns(true), [("a".into(), false), ("b".into(), true)]);
        assert_eq!(columns(false), [("b".into(), true)]);
    }
}
