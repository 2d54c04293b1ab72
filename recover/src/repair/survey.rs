//! Every ref of every table, with the branch that answers for it.
//!
//! A version is drift only when no live branch shows it or a later one of the same ref: at stamps 8 and 9 a merge can
//! leave a pin of main on the fork of another branch, whose newer versions are that branch's own.

use std::collections::BTreeMap;

use graph::model::{Pin, TableIdentity};
use graph::store::Root;
use graph::{Error, Result};
use legacy::publish::{BranchCatalog, live_branches};

use super::classify::{Drift, classify};
use crate::observe::entries;

/// One ref of one table.
#[derive(Debug, Clone)]
pub struct TableRef {
    /// The branch that answers for it (`None` = main).
    pub branch: Option<String>,
    /// The table.
    pub identity: TableIdentity,
    /// Its alias on that branch.
    pub table_key: String,
    /// Its folder.
    pub location: String,
    /// The pin that branch shows.
    pub pin: Pin,
    /// The newest version of the ref.
    pub head: u64,
    /// What stands above the pin.
    pub drift: Drift,
}

/// The greatest pin of one ref.
struct Shown {
    at: usize,
    table_key: String,
    identity: TableIdentity,
    pin: Pin,
}

/// Every branch of the root, main first.
pub async fn catalogs(root: &Root) -> Result<Vec<BranchCatalog>> {
    let mut out = vec![BranchCatalog::read(root, None).await?];
    for branch in live_branches(root).await? {
        out.push(BranchCatalog::read(root, Some(&branch)).await?);
    }
    Ok(out)
}

/// The refs that live branches show, by branch (main first) and alias. A newest version below a pin is
/// [`Error::Refused`].
pub async fn survey(root: &Root, catalogs: &[BranchCatalog]) -> Result<Vec<TableRef>> {
    let mut refs: BTreeMap<(String, Option<String>), Shown> = BTreeMap::new();
    for (at, catalog) in catalogs.iter().enumerate() {
        for (registration, pin) in catalog.rows.live() {
            let key = (registration.table_path.clone(), pin.table_branch.clone());
            // Branches come main first, so main answers for what it shares.
            let newer = refs
                .get(&key)
                .is_none_or(|held| held.pin.table_version < pin.table_version);
            if newer {
                let shown = Shown {
                    at,
                    table_key: registration.table_key.clone(),
                    identity: registration.identity,
                    pin: pin.clone(),
                };
                refs.insert(key, shown);
            }
        }
    }
    let mut out = Vec::new();
    for ((location, table_branch), shown) in refs {
        let Shown {
            at,
            table_key,
            identity,
            pin,
        } = shown;
        let dataset = root
            .open_dataset(&location, table_branch.as_deref(), None)
            .await?;
        let head = dataset.manifest().version;
        if head < pin.table_version {
            return Err(Error::refused(format!(
                "table {table_key}: its newest version is {head}, below the published version {}; versions were lost. \
                 Restore the whole root from a backup",
                pin.table_version
            )));
        }
        let above = entries(&location, dataset, pin.table_version.saturating_add(1)).await?;
        out.push(TableRef {
            drift: classify(pin.table_version, head, &above),
            branch: catalogs[at].branch.clone(),
            identity,
            table_key,
            location,
            pin,
            head,
        });
    }
    out.sort_by(|a, b| (&a.branch, &a.table_key).cmp(&(&b.branch, &b.table_key)));
    Ok(out)
}
