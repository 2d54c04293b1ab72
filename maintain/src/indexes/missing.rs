//! `build-indexes`: what the schema declares and the tables of a branch lack.

use graph::model::names::MAIN;
use graph::store::Root;
use graph::table::open_pin;
use write::Result;
use write::capture::Capture;

use super::build::{Build, Recipe, build};
use super::declared::declared;
use super::report::{BuildPlan, BuildReport, BuiltIndex, PendingIndex};
use super::{IndexOptions, TableIndexes, pass, pinned, stage_link};
use crate::entry::admit;
use crate::publish::publish_tables;

/// Say what `build-indexes` would do to `branch` (`None` = main). Changes nothing.
pub async fn plan_missing(root: &Root, branch: Option<&str>) -> Result<BuildPlan> {
    let capture = admit(root, branch).await?;
    let all = declared(&capture.ir);
    let mut plan = BuildPlan {
        uri: root.uri().to_string(),
        branch: name(&capture),
        missing_indexes: Vec::new(),
        pending_indexes: Vec::new(),
    };
    for table in pinned(&capture, &all) {
        let dataset = open_pin(root, table.row, table.pin).await?.dataset;
        let read = TableIndexes::read(&dataset, table.declared).await?;
        let needs = read.needs(table.declared);
        let key = &table.row.table_key;
        plan.missing_indexes
            .extend(needs.create.into_iter().map(|d| BuiltIndex {
                type_key: key.clone(),
                column: d.column,
                kind: d.kind,
            }));
        plan.pending_indexes
            .extend(needs.unbuildable.into_iter().map(|p| PendingIndex {
                type_key: key.clone(),
                property: p.property,
                reason: p.reason,
            }));
    }
    Ok(plan)
}

/// Build every declared index that a table of the branch lacks; those that exist are kept and empty tables get none.
/// One graph commit, or none when nothing is missing. A branch that moved meanwhile is a read-set conflict: nothing
/// is visible, and what was staged is named by nothing.
pub async fn build_missing(root: &Root, options: &IndexOptions) -> Result<BuildReport> {
    let capture = admit(root, options.branch.as_deref()).await?;
    let all = declared(&capture.ir);
    let tables = pinned(&capture, &all);
    let _held = pass(root, &capture, &tables).await?;
    let witness = capture.witness()?;
    let mut report = BuildReport {
        uri: root.uri().to_string(),
        branch: name(&capture),
        graph_commit_id: None,
        built_indexes: Vec::new(),
        pending_indexes: Vec::new(),
    };
    let mut updates = Vec::new();
    for table in &tables {
        let key = &table.row.table_key;
        let dataset = open_pin(root, table.row, table.pin).await?.dataset;
        let read = TableIndexes::read(&dataset, table.declared).await?;
        let needs = read.needs(table.declared);
        let mut new = Vec::new();
        for index in &needs.create {
            options.stop.check(|| {
                format!(
                    "{} indexes of {} tables were built and none of them is published, the graph is unchanged; run \
                     the command again",
                    report.built_indexes.len(),
                    updates.len()
                )
            })?;
            let what = Build {
                recipe: Recipe::of_new(index.kind, read.vectors(&index.column)),
                column: index.column.clone(),
                replaces: None,
            };
            new.push(build(&dataset, &what).await?);
            report.built_indexes.push(BuiltIndex {
                type_key: key.clone(),
                column: index.column.clone(),
                kind: index.kind,
            });
        }
        if !new.is_empty() {
            updates.push(stage_link(root, table, new, Vec::new(), &witness).await?);
        }
        report
            .pending_indexes
            .extend(needs.unbuildable.into_iter().map(|p| PendingIndex {
                type_key: key.clone(),
                property: p.property,
                reason: p.reason,
            }));
    }
    if !updates.is_empty() {
        options.stop.check(|| {
            format!(
                "every index of {} tables was built and none is published, the graph is unchanged; run the command \
                 again",
                updates.len()
            )
        })?;
        let published = publish_tables(root, &capture, updates, options.actor.as_deref()).await?;
        report.graph_commit_id = Some(published.state.head.graph_commit_id.clone());
    }
    Ok(report)
}

pub(super) fn name(capture: &Capture) -> String {
    capture.branch.clone().unwrap_or_else(|| MAIN.to_string())
}
