//! What a run left: the state of every ref and every history object.

use std::collections::BTreeMap;

use fixtures::tree::{TreeDigest, tree_digest};
use graph::manifest::BranchState;
use graph::manifest::scan::{ReadMode, read_state};
use graph::refs::{self, RefInventory};

use super::Case;

/// Everything two runs over equal roots must agree on.
#[derive(Debug, PartialEq)]
pub struct Left {
    /// Per live ref its rows and its schema metadata.
    pub heads: BTreeMap<Option<String>, (BranchState, BTreeMap<String, String>)>,
    /// Live and retired refs.
    pub refs: RefInventory,
    /// Every file below `__history/`, bytes included.
    pub history: TreeDigest,
}

/// Read what a completed run left.
pub async fn left(case: &Case) -> Left {
    let root = case.root().await;
    let refs = refs::inventory(&root).await.unwrap();
    let natives = refs
        .live
        .iter()
        .map(|r| Some(r.native.clone()))
        .chain([None]);
    let mut heads = BTreeMap::new();
    for native in natives {
        let head = root.open_manifest(native.as_deref(), None).await.unwrap();
        let state = read_state(&head, ReadMode::WithContract).await.unwrap();
        let metadata = head.dataset.schema().metadata.clone().into_iter().collect();
        heads.insert(native, (state, metadata));
    }
    Left {
        heads,
        refs,
        history: tree_digest(case.path().join("__history")).unwrap(),
    }
}
