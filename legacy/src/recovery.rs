//! The listing of recovery sidecars (`docs/format/upgrade-protocol.md` 6.1 step 6).

use graph::Result;
use graph::store::Root;

/// Folder of the sidecars, relative to the root.
pub const RECOVERY_DIR: &str = "__recovery";

/// Operation ids of the sidecars that stand directly in `__recovery/`: names ending `.json`, without
/// that suffix, sorted. A folder that is absent or holds anything else is clean. One listing; no sidecar
/// is opened, because whatever it says, only the release that wrote it can finish it.
pub async fn pending_operations(root: &Root) -> Result<Vec<String>> {
    let names = root.list_names(RECOVERY_DIR).await?;
    let mut operations: Vec<String> = names.iter().filter_map(|n| operation(n)).collect();
    operations.sort();
    Ok(operations)
}

/// The operation id of a sidecar's file name. `X.json#1`, the staging residue of a local conditional
/// write, is no sidecar.
fn operation(name: &str) -> Option<String> {
    name.strip_suffix(".json").map(str::to_string)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use graph::store::RootOptions;

    #[tokio::test]
    async fn only_direct_json_entries_count() {
        let folder = tempfile::tempdir().unwrap();
        let uri = folder.path().to_str().unwrap().to_string();
        let root = Root::open(&uri, RootOptions::default()).await.unwrap();
        assert!(
            pending_operations(&root).await.unwrap().is_empty(),
            "absent"
        );

        let recovery = folder.path().join(RECOVERY_DIR);
        std::fs::create_dir_all(recovery.join("nested")).unwrap();
        assert!(pending_operations(&root).await.unwrap().is_empty(), "empty");
        for name in [
            "notes.txt",
            "B.json.tmp",
            "C.json#1",
            "nested/D.json",
            "json",
            "E.JSON",
        ] {
            std::fs::write(recovery.join(name), "{}").unwrap();
        }
        assert!(
            pending_operations(&root).await.unwrap().is_empty(),
            "no sidecar"
        );
        for name in ["01B.json", "01A.json"] {
            std::fs::write(recovery.join(name), "not read").unwrap();
        }
        assert_eq!(pending_operations(&root).await.unwrap(), ["01A", "01B"]);
    }
}
