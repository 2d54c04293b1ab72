//! Changes of a stopped root, and of its one sidecar.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fixtures::legacy_writer::insert;
use graph::store::Root;
use lance::Dataset;
use lance::dataset::WriteMode;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use serde_json::Value;

/// The one sidecar of a root.
pub fn only_sidecar(root: &Path) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(root.join("__recovery"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Change the JSON of a sidecar.
pub fn edit(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(file, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
}

/// Take every confirmation out: what stands when the confirming rewrite was lost.
pub fn disarm(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| !key.starts_with("confirmed"));
            if let Some(phase) = members.get_mut("effect_phase") {
                *phase = "Armed".into();
            }
            members.values_mut().for_each(disarm);
        }
        Value::Array(items) => items.iter_mut().for_each(disarm),
        _ => {}
    }
}

/// The payload of a sidecar.
pub fn payload(value: &mut Value) -> &mut Value {
    let members = value.as_object_mut().unwrap();
    let key = members
        .keys()
        .find(|k| k.starts_with("protocol_v"))
        .unwrap();
    let key = key.clone();
    members.get_mut(&key).unwrap()
}

/// The folder of a table of `sidecar` by alias.
pub fn location(sidecar: &Path, table_key: &str) -> String {
    let value: Value = serde_json::from_slice(&std::fs::read(sidecar).unwrap()).unwrap();
    let pin = value["tables"].as_array().unwrap().iter();
    let pin = pin.clone().find(|p| p["table_key"] == table_key).unwrap();
    let path = pin["table_path"].as_str().unwrap();
    let parts: Vec<&str> = path.rsplitn(3, '/').collect();
    format!("{}/{}", parts[1], parts[0])
}

/// The newest version of a table.
pub async fn newest(root: &Root, location: &str, branch: Option<&str>) -> Arc<Dataset> {
    root.open_dataset(location, branch, None).await.unwrap()
}

/// Append the table's own first rows to it again: what a foreign writer leaves.
pub async fn raw_append(root: &Root, location: &str, branch: Option<&str>) -> u64 {
    let dataset = newest(root, location, branch).await;
    let rows = dataset.scan().try_into_batch().await.unwrap().slice(0, 2);
    let landed = insert(root, &dataset, WriteMode::Append, rows)
        .await
        .unwrap();
    landed.manifest().version
}

/// Delete rows.
pub async fn raw_delete(root: &Root, location: &str, branch: Option<&str>, filter: &str) {
    let mut dataset = Dataset::clone(newest(root, location, branch).await.as_ref());
    dataset.delete(filter).await.unwrap();
}

/// Compact all fragments into one: ReserveFragments, then Rewrite.
pub async fn raw_compaction(root: &Root, location: &str, branch: Option<&str>) {
    let mut dataset = Dataset::clone(newest(root, location, branch).await.as_ref());
    let before = dataset.manifest().version;
    let options = CompactionOptions {
        materialize_deletions_threshold: 0.0,
        ..CompactionOptions::default()
    };
    compact_files(&mut dataset, options, None).await.unwrap();
    assert_eq!(dataset.manifest().version, before + 2, "nothing to compact");
}

/// Take version 3 of a table out, as if its commit had never been made.
pub fn unwrite(root: &Path, location: &str) {
    let versions = root.join(location).join("_versions");
    std::fs::remove_file(versions.join(format!("{}.manifest", u64::MAX - 3))).unwrap();
    let _ = std::fs::remove_file(versions.join("latest_version_hint.json"));
}

/// Create a dataset as version 1 by a transaction of this uuid.
pub async fn create_as(root: &Root, location: &str, uuid: &str) {
    let uri = root.dataset_uri(location);
    let schema = Arc::new(arrow_schema::Schema::new(vec![arrow_schema::Field::new(
        "id",
        arrow_schema::DataType::Utf8,
        false,
    )]));
    let empty: [std::result::Result<arrow_array::RecordBatch, arrow_schema::ArrowError>; 0] = [];
    let mut transaction = lance::dataset::InsertBuilder::new(uri.as_str())
        .execute_uncommitted_stream(arrow_array::RecordBatchIterator::new(empty, schema))
        .await
        .unwrap();
    transaction.uuid = uuid.into();
    lance::dataset::CommitBuilder::new(uri.as_str())
        .execute(transaction)
        .await
        .unwrap();
}

/// Build an index on `id`; the read version and uuid of its transaction.
pub async fn raw_index(root: &Root, location: &str, branch: Option<&str>) -> (u64, String) {
    use lance::index::DatasetIndexExt as _;
    let mut dataset = Dataset::clone(newest(root, location, branch).await.as_ref());
    let params = lance_index::scalar::ScalarIndexParams::default();
    dataset
        .create_index(&["src"], lance_index::IndexType::BTree, None, &params, true)
        .await
        .unwrap();
    let transaction = dataset.read_transaction().await.unwrap().unwrap();
    (transaction.read_version, transaction.uuid)
}
