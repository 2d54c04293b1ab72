#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::error::{Error, Result};
use crate::history::path::ObjectKey;
use crate::history::testing::{example_records, root};

#[derive(Default)]
struct StopAt {
    at: Option<usize>,
    seen: Vec<(String, Moment)>,
}

#[async_trait]
impl ObjectObserver for StopAt {
    async fn on_object(&mut self, key: &str, moment: Moment) -> Result<()> {
        if self.at == Some(self.seen.len()) {
            return Err(Error::storage("injected", "stop"));
        }
        self.seen.push((key.to_string(), moment));
        Ok(())
    }
}

#[tokio::test]
async fn a_write_stopped_anywhere_is_finished_by_the_next() {
    let planned = example_plan();
    let mut all = StopAt::default();
    let (_dir, first) = root().await;
    assert_eq!(verify(&first).await.unwrap(), None);
    write(&first, &planned, &mut all).await.unwrap();
    let keys: Vec<&str> = all.seen.iter().map(|(k, _)| k.as_str()).collect();
    assert_eq!(
        keys.chunks(2).map(|c| c[0]).collect::<Vec<_>>(),
        [
            "__history/legacy/data/00000000.lance",
            "__history/legacy/data/00000001.lance",
            "__history/legacy/locator/ids/00000000.oglx",
            "__history/legacy/locator/writers/00000000.oglx",
            "__history/legacy/locator/directory.oglx",
        ]
    );
    let verified = verify(&first).await.unwrap().unwrap();
    verified.check_plan(&planned.plan).unwrap();
    assert_eq!(verified.counts(), (3, 2, 1, 1));
    for stop in 0..all.seen.len() {
        let (_dir, root) = root().await;
        let mut observer = StopAt {
            at: Some(stop),
            ..StopAt::default()
        };
        assert!(
            write(&root, &planned, &mut observer)
                .await
                .unwrap_err()
                .is_storage()
        );
        // Only a stop after the last create leaves a directory.
        let whole = stop + 1 == all.seen.len();
        assert_eq!(verify(&root).await.unwrap().is_some(), whole, "{stop}");
        write(&root, &planned, &mut ()).await.unwrap();
        verify(&root)
            .await
            .unwrap()
            .unwrap()
            .check_plan(&planned.plan)
            .unwrap();
    }
}

#[tokio::test]
async fn existing_objects_with_other_content_stop_the_write() {
    let (_dir, root) = root().await;
    write_example(&root).await;
    let mut chains = example_chains();
    Arc::make_mut(&mut chains[0].records[0]).commit.actor_id = Some("eve".into());
    let other = plan(&chains, &LegacyLayout::CURRENT, attempt(), 13, &absent()).unwrap();
    let refused = write(&root, &other, &mut ()).await;
    assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("00000001.lance")));
    let other = plan(
        &example_chains(),
        &LegacyLayout::CURRENT,
        attempt(),
        9,
        &absent(),
    )
    .unwrap();
    let refused = write(&root, &other, &mut ()).await;
    assert!(matches!(refused, Err(Error::Internal(ref m)) if m.contains("directory.oglx")));
}

#[tokio::test]
async fn verification_finds_every_difference() {
    let (dir, root) = root().await;
    write_example(&root).await;
    let legacy = dir.path().join("__history/legacy");
    let internal = async |what: &str| match verify(&root).await {
        Err(Error::Internal(message)) => message,
        other => panic!("{what}: {other:?}"),
    };
    let names = [
        "data/00000000.lance",
        "data/00000001.lance",
        "locator/ids/00000000.oglx",
        "locator/writers/00000000.oglx",
    ];
    for name in names {
        let path = legacy.join(name);
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(internal(name).await.contains("missing"));
        let mut damaged = kept.clone();
        damaged[10] ^= 1;
        std::fs::write(&path, &damaged[..damaged.len() / 2]).unwrap();
        internal(name).await;
        std::fs::remove_file(&path).unwrap();
        if name.starts_with("locator") {
            // A link to itself cannot be read: no difference of content, a failed read.
            std::os::unix::fs::symlink(&path, &path).unwrap();
            let failed = verify(&root).await.unwrap_err();
            assert!(failed.is_storage(), "{name}: {failed:?}");
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::write(&path, kept).unwrap();
        verify(&root).await.unwrap().unwrap();
    }
    // Files in each other's place.
    let (a, b) = (legacy.join(names[0]), legacy.join(names[1]));
    let (in_a, in_b) = (std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    std::fs::write(&a, &in_b).unwrap();
    assert!(internal("swap").await.contains("rows"));
    std::fs::write(&a, &in_a).unwrap();
    // A file too many, a foreign object.
    std::fs::write(legacy.join("data/00000002.lance"), &in_a).unwrap();
    assert!(internal("extra").await.contains("lists 2 data files"));
    std::fs::remove_file(legacy.join("data/00000002.lance")).unwrap();
    std::fs::write(legacy.join("data/x"), b"x").unwrap();
    internal("foreign").await;
    std::fs::remove_file(legacy.join("data/x")).unwrap();
    // Another record at the right place, with a valid file around it.
    std::fs::remove_file(&b).unwrap();
    let mut other = example_records().remove(2);
    other.commit.actor_id = Some("eve".into());
    let key = crate::history::path::ExtentKey::LegacyData(1);
    crate::history::extent::create_extent(&root, &key, &[other])
        .await
        .unwrap();
    assert!(internal("digest").await.contains("hash to"));
    // A directory above its cap is damage, not a limit.
    std::fs::write(
        dir.path().join(ObjectKey::Directory.key()),
        vec![0; 524_289],
    )
    .unwrap();
    internal("directory").await;
}

#[tokio::test]
async fn only_archives_may_stand_before_the_fence() {
    let (dir, root) = root().await;
    assert!(foreign_objects(&root).await.unwrap().is_empty());
    let schemas = dir.path().join("__history/schemas");
    std::fs::create_dir_all(&schemas).unwrap();
    let archive = format!("{}.schema", "0a".repeat(32));
    std::fs::write(schemas.join(&archive), b"x").unwrap();
    std::fs::write(
        schemas.join(format!("{archive}.tmp.{}", "0a".repeat(16))),
        b"x",
    )
    .unwrap();
    assert!(foreign_objects(&root).await.unwrap().is_empty());
    for n in 10..40 {
        std::fs::write(schemas.join(format!("note{n}")), b"x").unwrap();
    }
    write_example(&root).await;
    let named = foreign_objects(&root).await.unwrap();
    assert_eq!(named.len(), 20);
    assert_eq!(named[0], "legacy/data/00000000.lance");
    assert_eq!(named[19], "schemas/note24");
}
