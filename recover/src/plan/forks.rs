//! Table refs that a write made and nobody used (`docs/format/recovery-sidecars.md` 9.1, 13).

use graph::{Error, Result};

use super::{Read, Step};
use crate::judge::{Class, Table};
use crate::observe::ownership::Ownership;
use crate::observe::table_refs::{check_tree, tree};
use crate::sidecar::WriterKind;

/// The refs to remove. Releases at stamps 8 and 9 leave them for their cleanup, so they stay there.
pub(super) async fn steps(read: &Read<'_>) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    if !read.catalog.stamp.has_data_clock() || read.sidecar.writer_kind == WriterKind::SchemaApply {
        return Ok(steps);
    }
    for table in read.tables.iter().filter(|t| t.is_first_touch) {
        let unused = match read.sidecar.writer_kind {
            WriterKind::EnsureIndices => table.class == Class::NoMovement,
            _ => table.ownership == Ownership::None,
        };
        if unused {
            steps.extend(step(read, table, begun(read, table)).await?);
        }
    }
    Ok(steps)
}

/// The version of its own that an index build made in a ref which an interrupted rollback has already removed: the
/// recorded plan says that it was proved.
fn begun(read: &Read<'_>, table: &Table) -> Option<u64> {
    let recorded = read.sidecar.payload()?.rollback_audit_outcomes.as_ref()?;
    let proved = read.sidecar.writer_kind == WriterKind::EnsureIndices
        && !table.exists
        && recorded.iter().any(|o| o.table_key == table.table_key);
    proved.then_some(table.post_commit_pin)
}

/// Remove the ref of one table. `proved` is the write's own version in it.
pub(super) async fn step(
    read: &Read<'_>,
    table: &Table,
    proved: Option<u64>,
) -> Result<Option<Step>> {
    let Some(branch) = table.table_branch.clone() else {
        return Ok(None);
    };
    if is_claimed(read, table) {
        return Ok(None);
    }
    if !table.children.is_empty() {
        return Err(Error::refused(format!(
            "the ref '{branch}' of table {} has live refs below its name ({}); delete the branches they belong to, then \
             rerun",
            table.table_key,
            table.children.join(", ")
        )));
    }
    let last = proved.unwrap_or(table.fork_version);
    if table.exists && table.head_version != last {
        return Err(Error::refused(format!(
            "the ref '{branch}' of table {} is at version {}, expected {last}; it is not removed",
            table.table_key, table.head_version
        )));
    }
    let found = tree(read.pass.root, &table.location, &branch).await?;
    if !table.exists && found.objects.is_empty() {
        return Ok(None);
    }
    check_tree(&table.location, &branch, &found, table.fork_version, proved)?;
    Ok(Some(Step::RemoveFork {
        table_key: table.table_key.clone(),
        location: table.location.clone(),
        branch,
        fork_version: table.fork_version,
        proved,
    }))
}

/// Whether another sidecar names the same table and ref: the last of them cleans up.
pub(super) fn is_claimed(read: &Read<'_>, table: &Table) -> bool {
    let Some(own) = read
        .sidecar
        .tables
        .iter()
        .find(|p| p.table_key == table.table_key)
    else {
        return false;
    };
    read.pass
        .listed
        .iter()
        .filter(|l| l.file != read.file)
        .filter_map(|l| l.sidecar.as_ref().ok())
        .flat_map(|s| &s.tables)
        .any(|p| p.table_path == own.table_path && p.table_branch == own.table_branch)
}
