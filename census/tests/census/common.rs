//! What the upgrade does around a census, for tests: the inventory as census input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::path::Path;

use census::{Census, CensusInput, Finding, Limits, RefInput, census};
use graph::model::names::SCHEMA_APPLY_LOCK;
use graph::refs::{NativeRef, inventory};
use graph::stamp::StampReading;
use graph::store::{Root, RootOptions};
use legacy::{LegacySource, root_objects};
use ulid::Ulid;

pub async fn open(path: &Path) -> Root {
    Root::open(path.to_str().unwrap(), RootOptions::default())
        .await
        .unwrap()
}

async fn pinned(root: &Root, r: Option<&NativeRef>) -> RefInput {
    let native = r.map(|r| r.native.as_str());
    RefInput {
        native: native.map(str::to_string),
        pinned: root.open_manifest(native, None).await.unwrap().version,
        parent: r.and_then(|r| r.contents.parent_branch.clone()),
        parent_version: r.map_or(0, |r| r.contents.parent_version),
    }
}

/// The census input of a root as it stands, and how many of its retired refs are locks.
pub async fn input(root: &Root) -> (CensusInput, usize) {
    let main = root.open_manifest(None, None).await.unwrap();
    let stamp = StampReading::of(&main).number().unwrap();
    let source = match stamp {
        13 => LegacySource::Stamp13,
        _ => {
            let read = root_objects::read(root, stamp).await.unwrap().unwrap();
            LegacySource::RootContract {
                stamp,
                contract: read.contract,
            }
        }
    };
    let refs = inventory(root).await.unwrap();
    let mut input = CensusInput {
        attempt: Ulid::nil(),
        live: vec![pinned(root, None).await],
        retired: Vec::new(),
        source,
        limits: Limits::default(),
        exhaustive: false,
    };
    let mut locks = 0;
    for r in &refs.live {
        let one = pinned(root, Some(r)).await;
        if stamp < 10 && r.logical() == SCHEMA_APPLY_LOCK {
            locks += 1;
            input.retired.push(one);
        } else {
            input.live.push(one);
        }
    }
    for r in &refs.retired {
        input.retired.push(pinned(root, Some(r)).await);
    }
    (input, locks)
}

/// Take a census without progress.
pub async fn take(root: &Root, input: &CensusInput) -> graph::Result<Result<Census, Vec<Finding>>> {
    census(root, input, &|_| {}).await
}

/// Take the census of a root that must have no finding.
pub async fn clean(root: &Root) -> Census {
    let (input, _) = input(root).await;
    take(root, &input).await.unwrap().unwrap()
}
