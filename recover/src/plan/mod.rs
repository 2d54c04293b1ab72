//! From one sidecar to what is to be done with it: everything is read and decided here, before the first effect.

mod back;
mod forks;
mod forward;
mod minted;
mod step;

pub use minted::{Purpose, minted};
pub use step::{PinAt, PlannedChange, Publication, Step};

use graph::store::Root;
use graph::{Error, Result};
use legacy::publish::{BranchCatalog, CatalogRows, live_branches};
use serde::Serialize;

use crate::audit::{self, AuditRow, RecoveryKind};
use crate::judge::{Differences, Table, Verdict, judge, table};
use crate::listing::Listed;
use crate::observe::{TableReading, read_table};
use crate::sidecar::{Outcome, Sidecar, WriterKind};
use crate::staging::SchemaObjects;
use crate::visible::{self, Visible};

/// The author of commits that recovery mints.
pub const RECOVERY_ACTOR: &str = "omnigraph:recovery";

/// What is to be done with a sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Publish what the write made.
    RollForward,
    /// Take back what the write made.
    RollBack,
    /// Nothing of the write is there.
    Discard,
    /// The write, or its rollback, is published; only the record and the file are left.
    AlreadyVisible,
    /// A later maintenance published past it.
    Stale,
    /// Its branch is gone.
    Orphan,
    /// It stays.
    Refuse,
}

/// The plan of one sidecar.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is to be done.
    pub decision: Decision,
    /// Why, in words.
    pub reason: String,
    /// What its tables show.
    pub tables: Vec<Table>,
    /// The effects, in order; empty when refused.
    pub steps: Vec<Step>,
}

impl Plan {
    fn of(decision: Decision, reason: impl Into<String>, steps: Vec<Step>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            tables: Vec::new(),
            steps,
        }
    }

    /// A plan that does nothing.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::of(Decision::Refuse, reason, Vec::new())
    }

    fn with(mut self, tables: Vec<Table>) -> Self {
        self.tables = tables;
        self
    }
}

/// What every plan of one pass shares.
#[derive(Debug)]
pub struct Pass<'a> {
    /// The root.
    pub root: &'a Root,
    /// All sidecars that are listed now.
    pub listed: &'a [Listed],
    /// Microseconds since the epoch.
    pub now: i64,
}

/// Everything read for one sidecar.
pub(crate) struct Read<'a> {
    pub pass: &'a Pass<'a>,
    pub file: &'a str,
    pub sidecar: &'a Sidecar,
    pub catalog: BranchCatalog,
    pub readings: Vec<TableReading>,
    pub tables: Vec<Table>,
    pub audit: Vec<AuditRow>,
    pub schema: SchemaObjects,
}

/// Plan one sidecar. What cannot be read or contradicts the reference is a plan that refuses.
pub async fn plan(pass: &Pass<'_>, file: &str, sidecar: &Sidecar) -> Plan {
    match try_plan(pass, file, sidecar).await {
        Ok(plan) => plan,
        Err(e) => Plan::refuse(e.to_string()),
    }
}

async fn try_plan(pass: &Pass<'_>, file: &str, sidecar: &Sidecar) -> Result<Plan> {
    let root = pass.root;
    let audit = audit::rows(root).await?;
    if let Some(branch) = sidecar.logical()
        && !live_branches(root).await?.iter().any(|b| b == branch)
    {
        return orphan(pass, sidecar, &audit).await;
    }
    let catalog = BranchCatalog::read(root, sidecar.logical()).await?;
    let mut readings = Vec::new();
    let mut tables = Vec::new();
    for pin in &sidecar.tables {
        let reading = read_table(root, &catalog, sidecar, pin)
            .await
            .map_err(|e| e.within(format!("table {}", pin.table_key)))?;
        tables.push(table(sidecar, pin, &reading));
        readings.push(reading);
    }
    let read = Read {
        pass,
        file,
        sidecar,
        catalog,
        readings,
        tables,
        audit,
        schema: SchemaObjects::read(root).await?,
    };
    let planned = match settled(&read).await? {
        Some(plan) => Ok(plan),
        None => decide(&read).await,
    };
    // A refusal still shows the tables it was decided on.
    let plan = match planned {
        Ok(plan) => plan,
        Err(e @ (Error::Refused(_) | Error::Internal(_))) => Plan::refuse(e.to_string()),
        Err(e) => return Err(e),
    };
    Ok(plan.with(read.tables))
}

/// A branch that is not live: a commit on main, once, and the record (7.0).
async fn orphan(pass: &Pass<'_>, sidecar: &Sidecar, audit: &[AuditRow]) -> Result<Plan> {
    let kind = RecoveryKind::OrphanedBranchDiscarded;
    let reason = format!("branch '{}' does not exist any more", sidecar.branch_name());
    let mut steps = Vec::new();
    if !audit::is_recorded(audit, &sidecar.operation_id, kind) {
        let main = BranchCatalog::read(pass.root, None).await?;
        let id = minted(&sidecar.operation_id, Purpose::Orphan);
        if main.rows.commit(&id).is_none() {
            steps.push(lineage_only(None, id.clone(), pass.now));
        }
        steps.push(Step::Audit {
            commit_id: id,
            kind,
            outcomes: Vec::new(),
        });
    }
    steps.push(Step::RemoveSidecar);
    Ok(Plan::of(Decision::Orphan, reason, steps))
}

/// A commit of recovery's own without a table change.
fn lineage_only(branch: Option<&str>, id: String, created_at: i64) -> Step {
    Step::Publish(Publication {
        branch: branch.map(str::to_string),
        precondition: None,
        changes: Vec::new(),
        lineage: recovery_lineage(id, created_at),
    })
}

fn recovery_lineage(id: String, created_at: i64) -> legacy::publish::Lineage {
    legacy::publish::Lineage {
        id,
        actor: Some(RECOVERY_ACTOR.into()),
        merged_parent: None,
        created_at,
    }
}

/// The record, unless it is there, and the end of the file.
fn close(
    read: &Read<'_>,
    commit_id: &str,
    kind: RecoveryKind,
    outcomes: Vec<Outcome>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    if !audit::is_recorded(&read.audit, &read.sidecar.operation_id, kind) {
        steps.push(Step::Audit {
            commit_id: commit_id.to_string(),
            kind,
            outcomes,
        });
    }
    steps.push(Step::RemoveSidecar);
    steps
}

/// What is already published: the write, its rollback, or a commit that an earlier recovery minted (7.1).
async fn settled(read: &Read<'_>) -> Result<Option<Plan>> {
    let refused = |why: String| Error::refused(why);
    let sidecar = read.sidecar;
    let Some(payload) = sidecar.payload() else {
        return minted_earlier(read).await;
    };
    match visible::find(payload, &read.catalog.rows).map_err(refused)? {
        Visible::Nothing => Ok(None),
        Visible::RolledBack(commit) => {
            let outcomes = payload.rollback_audit_outcomes.clone().ok_or_else(|| {
                refused(format!(
                    "its rollback ({}) is published, but the sidecar holds no rollback plan",
                    commit.id
                ))
            })?;
            let mut steps = Vec::new();
            if sidecar.writer_kind == WriterKind::SchemaApply {
                steps.extend(back::discard_staging(read)?);
            }
            steps.extend(close(read, &commit.id, RecoveryKind::RolledBack, outcomes));
            let reason = format!("its rollback, commit {}, is already published", commit.id);
            Ok(Some(Plan::of(Decision::AlreadyVisible, reason, steps)))
        }
        Visible::Original(commit) => {
            let at = rows_at(read, commit.version).await?;
            let before = match payload.is_confirmed() {
                true => None,
                false => rows_before(read, commit.version).await?,
            };
            let outcomes = visible::check_original(
                sidecar,
                payload,
                commit,
                &at,
                before.as_ref(),
                &read.readings,
            )
            .map_err(refused)?;
            let mut steps = Vec::new();
            if sidecar.writer_kind == WriterKind::SchemaApply {
                steps.extend(forward::promote_staging(read)?);
            }
            steps.extend(close(
                read,
                &commit.id,
                RecoveryKind::RolledForward,
                outcomes,
            ));
            let reason = match payload.is_confirmed() {
                true => format!("its commit {} is already published", commit.id),
                false => format!(
                    "its commit {} is already published with exactly the planned transactions; only the confirmation \
                     was lost",
                    commit.id
                ),
            };
            Ok(Some(Plan::of(Decision::AlreadyVisible, reason, steps)))
        }
    }
}

/// Kinds without ids of their own: the commit that an interrupted run of this command minted.
async fn minted_earlier(read: &Read<'_>) -> Result<Option<Plan>> {
    let operation = &read.sidecar.operation_id;
    for (purpose, kind) in [
        (Purpose::Forward, RecoveryKind::RolledForward),
        (Purpose::Stale, RecoveryKind::RolledForward),
        (Purpose::Back, RecoveryKind::RolledBack),
    ] {
        let id = minted(operation, purpose);
        let Some(commit) = read.catalog.rows.commit(&id) else {
            continue;
        };
        let at = rows_at(read, commit.version).await?;
        let outcomes = match purpose {
            Purpose::Back => {
                let before = rows_before(read, commit.version).await?.unwrap_or_default();
                back::outcomes_of(read.sidecar, &at, &before)
            }
            _ => visible::outcomes(read.sidecar, &at),
        };
        let reason = format!("an earlier run of this command published commit {id}");
        let steps = close(read, &id, kind, outcomes);
        return Ok(Some(Plan::of(Decision::AlreadyVisible, reason, steps)));
    }
    Ok(None)
}

async fn rows_at(read: &Read<'_>, version: u64) -> Result<CatalogRows> {
    read.catalog.at(read.pass.root, version).await.map_err(|e| {
        e.within(format!(
            "the published commit cannot be compared with the sidecar: version {version} of {}",
            read.catalog.name()
        ))
    })
}

async fn rows_before(read: &Read<'_>, version: u64) -> Result<Option<CatalogRows>> {
    match read
        .catalog
        .at(read.pass.root, version.saturating_sub(1))
        .await
    {
        Ok(rows) => Ok(Some(rows)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Nothing of it is published.
async fn decide(read: &Read<'_>) -> Result<Plan> {
    let verdict = judge(read.sidecar, &read.tables, differences(read)?);
    match verdict {
        Verdict::Refuse(why) => Ok(Plan::refuse(why)),
        Verdict::Discard => {
            let mut steps = forks::steps(read).await?;
            steps.push(Step::RemoveSidecar);
            let reason = "nothing of the write is in any table";
            Ok(Plan::of(Decision::Discard, reason, steps))
        }
        Verdict::RollForward => forward::plan(read),
        Verdict::RollBack(why) => back::plan(read, &why).await,
        Verdict::Stale => {
            let id = minted(&read.sidecar.operation_id, Purpose::Stale);
            let branch = read.sidecar.logical();
            let mut steps = vec![lineage_only(branch, id.clone(), read.pass.now)];
            let outcomes = read
                .tables
                .iter()
                .map(|t| Outcome {
                    table_key: t.table_key.clone(),
                    from_version: t.expected_version,
                    to_version: t.pinned_version,
                })
                .collect();
            steps.extend(close(read, &id, RecoveryKind::RolledForward, outcomes));
            let reason = "its tables are already published past the expected versions";
            Ok(Plan::of(Decision::Stale, reason, steps))
        }
    }
}

/// How the branch differs from the sidecar's authority; a live schema that is no contract is refused.
fn differences(read: &Read<'_>) -> Result<Differences> {
    let Some(payload) = read.sidecar.payload() else {
        return Ok(Differences::default());
    };
    let authority = &payload.authority;
    let schema = read.schema.live_contract().map_err(|why| {
        Error::refused(format!("the root schema objects hold no contract: {why}"))
    })?;
    Ok(Differences {
        identifier: read.catalog.identifier != authority.branch_identifier,
        head: read.catalog.graph_head() != authority.graph_head.as_deref(),
        schema: schema.schema_ir_hash != authority.schema_ir_hash
            || schema.schema_identity_domain != authority.schema_identity_domain
            || schema.schema_identity_version != authority.schema_identity_version,
    })
}
