//! Staging copies of the schema that no sidecar explains (`docs/format/recovery-sidecars.md` 11).
//!
//! A schema apply whose sidecar was deleted while a staging object stayed, or one of a build without sidecars. What
//! can be decided from the catalog is finished or removed; anything else stays.

use std::collections::BTreeSet;

use graph::Result;
use graph::schema::source::{CompileOptions, UpperBound, compile_with};
use graph::schema::{ParseMode, SchemaShape, read_root_contract};
use graph::store::Root;
use legacy::publish::BranchCatalog;
use serde::Serialize;

use crate::report::Status;
use crate::staging::{self, SchemaObjects};

/// What is to be done with staging objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StagingDecision {
    /// Make them the live ones.
    Promote,
    /// Remove them.
    Discard,
    /// They stay.
    Refuse,
}

/// The staging objects of a root without a SchemaApply sidecar.
#[derive(Debug, Clone, Serialize)]
pub struct StagingReport {
    /// Their names.
    pub objects: Vec<&'static str>,
    /// What is to be done.
    pub decision: StagingDecision,
    /// Why.
    pub reason: String,
    /// What became of them.
    pub status: Status,
}

/// Decide by the staged and the live schema, and the aliases that main shows. `None` when nothing is staged.
pub fn decide(
    schema: &SchemaObjects,
    shown: &BTreeSet<String>,
) -> Option<(StagingDecision, String)> {
    use StagingDecision::{Discard, Promote, Refuse};
    if schema.staged_names().is_empty() {
        return None;
    }
    let whole = read_root_contract(&schema.promoted());
    let Some(source) = &schema.staged.source else {
        return Some(match whole {
            Ok(_) => (
                Promote,
                "_schema.pg is already promoted, and the rest fits it".into(),
            ),
            Err(why) => (
                Refuse,
                format!("_schema.pg is already promoted, but the rest does not fit it: {why}"),
            ),
        });
    };
    let live = match read_root_contract(&schema.live) {
        Ok((_, ir)) => ir,
        Err(why) => {
            return Some((
                Refuse,
                format!("the live schema objects hold no contract: {why}"),
            ));
        }
    };
    let staged = match shape(source) {
        Ok(shape) => shape.respelled(live.vintage()),
        Err(why) => {
            return Some((
                Refuse,
                format!("_schema.pg.staging does not compile: {why}"),
            ));
        }
    };
    let live_shape = live.shape();
    if staged.difference(&live_shape).is_none() {
        return Some((Discard, "the staged schema is the live one".into()));
    }
    let (old, new) = (aliases(&live_shape), aliases(&staged));
    Some(if old == new {
        (
            Refuse,
            "the staged schema changes no type, so the catalog does not tell whether it was accepted".into(),
        )
    } else if *shown == old {
        (
            Discard,
            "the catalog shows the types of the live schema".into(),
        )
    } else if *shown == new {
        match whole {
            Ok(_) => (
                Promote,
                "the catalog shows the types of the staged schema".into(),
            ),
            Err(why) => (
                Refuse,
                format!(
                    "the catalog shows the types of the staged schema, which is not whole: {why}"
                ),
            ),
        }
    } else {
        (
            Refuse,
            "the catalog shows neither the types of the live schema nor those of the staged one"
                .into(),
        )
    })
}

fn shape(source: &[u8]) -> std::result::Result<SchemaShape, String> {
    let text = std::str::from_utf8(source).map_err(|e| e.to_string())?;
    let options = CompileOptions {
        mode: ParseMode::Tolerant,
        vintage: None,
        upper_bound: UpperBound::AsMinimum,
    };
    compile_with(text, options)
        .map(|compiled| compiled.shape)
        .map_err(|e| e.to_string())
}

fn aliases(shape: &SchemaShape) -> BTreeSet<String> {
    let nodes = shape.nodes.iter().map(|n| format!("node:{}", n.name));
    let edges = shape.edges.iter().map(|e| format!("edge:{}", e.name));
    nodes.chain(edges).collect()
}

/// Look at the staging objects of a root and, with `confirm`, settle them. `None` when nothing is staged.
pub async fn settle(
    root: &Root,
    main: &BranchCatalog,
    confirm: bool,
) -> Result<Option<StagingReport>> {
    let schema = SchemaObjects::read(root).await?;
    let shown = main.rows.live().map(|(r, _)| r.table_key.clone()).collect();
    let Some((decision, reason)) = decide(&schema, &shown) else {
        return Ok(None);
    };
    let mut report = StagingReport {
        objects: schema.staged_names(),
        decision,
        reason,
        status: Status::Planned,
    };
    match decision {
        StagingDecision::Refuse => report.status = Status::Refused,
        _ if !confirm => {}
        StagingDecision::Promote => staging::promote_all(root, &schema).await?,
        StagingDecision::Discard => staging::remove_all(root, &schema).await?,
    }
    if confirm && report.status == Status::Planned {
        report.status = Status::Settled;
    }
    Ok(Some(report))
}
