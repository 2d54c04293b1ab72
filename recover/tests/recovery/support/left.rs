//! Everything two recovered roots must agree on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::RecordBatch;
use graph::store::Root;
use legacy::publish::{BranchCatalog, live_branches};
use recover::audit;

use super::open;

/// A pin: version, ref, rows, and its metadata without root folder and ETag.
type Pin = (u64, Option<String>, u64, String);

/// What stands in a root.
#[derive(Debug, PartialEq)]
pub struct Left {
    /// By branch and table.
    pub pins: BTreeMap<String, BTreeMap<String, Pin>>,
    /// By branch: id, branch, version, parent, merged parent, actor, time.
    pub commits: BTreeMap<String, Vec<String>>,
    /// By branch: its `graph_head` rows.
    pub heads: BTreeMap<String, BTreeMap<String, String>>,
    /// By branch and table.
    pub rows: BTreeMap<String, RecordBatch>,
    /// By table folder: its refs and versions.
    pub refs: BTreeMap<String, Vec<String>>,
    /// The records, without their times.
    pub audit: Vec<String>,
    /// Names below `__recovery/`.
    pub sidecars: Vec<String>,
    /// Names and texts of the schema objects.
    pub schema: BTreeMap<String, String>,
}

/// Read a root. Commit ids that are not in `known` stand as `minted`, with their times; an empty `known` keeps all.
pub async fn left(path: &Path, known: &BTreeSet<String>) -> Left {
    let root = open(path).await;
    let spell = |id: &str| match known.is_empty() || known.contains(id) {
        true => id.to_string(),
        false => "minted".to_string(),
    };
    let mut out = Left {
        pins: BTreeMap::new(),
        commits: BTreeMap::new(),
        heads: BTreeMap::new(),
        rows: BTreeMap::new(),
        refs: BTreeMap::new(),
        audit: Vec::new(),
        sidecars: root.list_names("__recovery").await.unwrap(),
        schema: BTreeMap::new(),
    };
    let mut branches = live_branches(&root).await.unwrap();
    branches.push("main".into());
    for branch in branches {
        branch_left(&root, &branch, &spell, &mut out).await;
    }
    for row in audit::rows(&root).await.unwrap() {
        out.audit.push(format!(
            "{} {} for {:?} {} {} {}",
            row.recovery_kind,
            spell(&row.graph_commit_id),
            row.recovery_for_actor,
            row.operation_id,
            row.sidecar_writer_kind,
            row.per_table_outcomes_json
        ));
    }
    let (names, _) = root.list_level("").await.unwrap_or_default();
    for name in names.iter().filter(|n| n.contains("schema")) {
        let bytes = root.get(name, 1 << 20).await.unwrap().unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        out.schema.insert(name.clone(), text);
    }
    out
}

async fn branch_left(root: &Root, branch: &str, spell: &impl Fn(&str) -> String, out: &mut Left) {
    let catalog = BranchCatalog::read(root, Some(branch)).await.unwrap();
    let mut pins = BTreeMap::new();
    for (registration, pin) in catalog.rows.live() {
        let m = &pin.metadata;
        let path = m.manifest_path.split("/sc-").last().unwrap_or_default();
        let metadata = format!("{path} {:?} {:?}", m.naming_scheme, m.table_fork_owner);
        pins.insert(
            registration.table_key.clone(),
            (
                pin.table_version,
                pin.table_branch.clone(),
                pin.row_count,
                metadata,
            ),
        );
        let dataset = root
            .open_dataset(
                &registration.table_path,
                pin.table_branch.as_deref(),
                Some(pin.table_version),
            )
            .await
            .unwrap();
        let rows = dataset.scan().try_into_batch().await.unwrap();
        assert_eq!(
            rows.num_rows() as u64,
            pin.row_count,
            "{branch} {registration:?}"
        );
        out.rows
            .insert(format!("{branch} {}", registration.table_key), rows);
        let mut refs = root
            .list_names(&format!("{}/_refs/branches", registration.table_path))
            .await
            .unwrap();
        let versions = root
            .linear_versions(&registration.table_path, None)
            .await
            .unwrap();
        refs.push(format!("{versions:?}"));
        let trees = root
            .list_sorted(&format!("{}/tree", registration.table_path))
            .await
            .unwrap();
        let trees: BTreeSet<&str> = trees
            .iter()
            .filter_map(|(key, _)| key.split("/tree/").nth(1)?.split('/').next())
            .collect();
        refs.extend(trees.iter().map(|t| format!("tree {t}")));
        out.refs.insert(registration.table_path.clone(), refs);
    }
    out.pins.insert(branch.into(), pins);
    let mut commits: Vec<_> = catalog.rows.commits.iter().collect();
    commits.sort_by_key(|c| (c.version, &c.id));
    let spelled = |c: &&legacy::LegacyCommit| {
        let id = spell(&c.id);
        let time = if id == "minted" { 0 } else { c.created_at };
        format!(
            "{id} {:?} {} {:?} {:?} {:?} {time}",
            c.branch, c.version, c.parent, c.merged_parent, c.actor
        )
    };
    out.commits
        .insert(branch.into(), commits.iter().map(spelled).collect());
    let heads = catalog.rows.heads.iter();
    out.heads.insert(
        branch.into(),
        heads.map(|(b, c)| (b.clone(), spell(c))).collect(),
    );
}
