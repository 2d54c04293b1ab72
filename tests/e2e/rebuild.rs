//! The rebuild recipe on what a real 0.10.0 printed: refused as it is, with what to change; loaded after that; and then
//! the same rows as the old root's tables hold at their pins, read with plain Lance on both sides.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, StringArray};
use fixtures::sample::unpack;
use graph::manifest::scan::{ReadMode, read_branch};
use graph::store::{Root, RootOptions};
use lance::Dataset;

use crate::support::roots::{block_on, samples};
use crate::support::run::omnigraph;

/// Every row of a table as text, by id. `path` is a dataset folder.
type Rows = BTreeMap<String, BTreeMap<String, String>>;

/// Plain Lance, one table at one version.
async fn rows(path: &Path, version: u64) -> Rows {
    let dataset = Dataset::open(path.to_str().unwrap()).await.unwrap();
    let dataset = Arc::new(dataset.checkout_version(version).await.unwrap());
    let mut out = Rows::new();
    let batch = dataset.scan().with_row_id().try_into_batch().await.unwrap();
    let ids = ["id", "__id"]
        .iter()
        .find_map(|name| batch.column_by_name(name))
        .unwrap();
    let ids: Vec<String> = ids
        .as_any()
        .downcast_ref::<StringArray>()
        .unwrap()
        .iter()
        .map(|id| id.unwrap().to_string())
        .collect();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let name = field.name().trim_start_matches("__").to_string();
        if name == "_rowid" {
            continue;
        }
        let blob = dataset
            .schema()
            .field(field.name())
            .is_some_and(|f| f.is_blob());
        for (index, id) in ids.iter().enumerate() {
            let value = if blob {
                let cell = dataset
                    .take_blobs_by_indices(&[index as u64], field.name())
                    .await
                    .unwrap()
                    .remove(0);
                match cell {
                    None => "null".to_string(),
                    Some(cell) => format!("{:?}", cell.read().await.unwrap()),
                }
            } else {
                format!("{:?}", column.slice(index, 1))
            };
            out.entry(id.clone())
                .or_default()
                .insert(name.clone(), value);
        }
    }
    out
}

/// The pins of main in a stamp-6 root: table key, folder, version. Plain Lance on its `__manifest`.
async fn old_pins(root: &Path) -> BTreeMap<String, (String, u64)> {
    let manifest = root.join("__manifest");
    let dataset = Dataset::open(manifest.to_str().unwrap()).await.unwrap();
    let batch = dataset.scan().try_into_batch().await.unwrap();
    let text = |name: &str, row: usize| {
        let column = batch.column_by_name(name).unwrap();
        let column = column.as_any().downcast_ref::<StringArray>().unwrap();
        column.is_valid(row).then(|| column.value(row).to_string())
    };
    let number = |name: &str, row: usize| {
        let column = batch.column_by_name(name).unwrap();
        let column = column
            .as_any()
            .downcast_ref::<arrow_array::UInt64Array>()
            .unwrap();
        column.is_valid(row).then(|| column.value(row))
    };
    let mut tables: BTreeMap<(u64, u64), (String, Option<u64>)> = BTreeMap::new();
    for row in 0..batch.num_rows() {
        let kind = text("object_type", row).unwrap();
        let identity = (
            number("stable_table_id", row),
            number("table_incarnation_id", row),
        );
        let (Some(stable), Some(incarnation)) = identity else {
            continue;
        };
        let table = tables.entry((stable, incarnation)).or_default();
        match kind.as_str() {
            "table" => table.0 = text("table_key", row).unwrap(),
            "table_version" => table.1 = table.1.max(number("table_version", row)),
            other => panic!("{other}"),
        }
    }
    tables
        .into_iter()
        .map(|((stable, incarnation), (key, version))| {
            let kind = if key.starts_with("node:") {
                "nodes"
            } else {
                "edges"
            };
            let path = format!("{kind}/{stable:016x}-{incarnation:016x}");
            (key, (path, version.unwrap()))
        })
        .collect()
}

#[test]
fn what_0_10_exported_is_rebuilt_row_for_row() {
    let Some((folder, _)) = samples() else {
        return;
    };
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name).display().to_string();
    let new = path("new");
    let export = folder
        .join("observatory.export.jsonl")
        .display()
        .to_string();
    let schema = folder.join("observatory.schema.pg");

    // As they are: what to respell, and what to relocate, by line.
    let line = omnigraph(["init", "--schema", schema.to_str().unwrap(), &new]).one_error_line();
    assert!(
        line.contains("line 45, column 13") && line.contains("@src"),
        "{line}"
    );
    let source = std::fs::read_to_string(&schema).unwrap();
    std::fs::write(
        path("new.pg"),
        source.replace("@unique(src, dst)", "@unique(@src, @dst)"),
    )
    .unwrap();
    omnigraph(["init", "--schema", &path("new.pg"), &new]).exits(0);
    let load = |data: &str| omnigraph(["load", "--data", data, "--mode", "overwrite", &new]);
    let line = load(&export).one_error_line();
    assert!(
        line.contains("line 1: ") && line.contains("move \"id\" from \"data\" to the top level"),
        "{line}"
    );

    let moved: String = std::fs::read_to_string(&export)
        .unwrap()
        .lines()
        .map(|line| {
            let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
            let id = record["data"]
                .as_object_mut()
                .unwrap()
                .remove("id")
                .unwrap();
            record["id"] = id;
            format!("{record}\n")
        })
        .collect();
    std::fs::write(path("moved.jsonl"), moved).unwrap();
    load(&path("moved.jsonl")).exits(0);
    omnigraph(["verify", "--deep", &new]).exits(0);

    let old = unpack(&folder, "observatory").unwrap();
    block_on(async {
        let pins = old_pins(old.path()).await;
        assert_eq!(pins.len(), 7);
        let root = Root::open(&new, RootOptions::default()).await.unwrap();
        let (_, state) = read_branch(&root, None, ReadMode::State).await.unwrap();
        let mut compared = 0;
        for table in state.visible_tables() {
            let pin = table.state.pin().unwrap();
            let staged = pin.metadata.staged_version.unwrap();
            let now = rows(&Path::new(&new).join(&table.table_path), staged).await;
            assert_eq!(now.len() as u64, pin.row_count);
            let (folder, version) = &pins[&table.table_key];
            let before = rows(&old.path().join(folder), *version).await;
            assert_eq!(now, before, "{}", table.table_key);
            compared += now.len();
        }
        assert_eq!(compared, 166);
    });
    // And once more from its own export.
    let again = path("again");
    let exported = omnigraph(["export", &new]).exits(0).stdout;
    std::fs::write(path("again.jsonl"), &exported).unwrap();
    omnigraph(["init", "--schema", &path("new.pg"), &again]).exits(0);
    omnigraph([
        "load",
        "--data",
        &path("again.jsonl"),
        "--mode",
        "overwrite",
        &again,
    ])
    .exits(0);
    assert!(omnigraph(["export", &again]).exits(0).stdout == exported);
}
