//! Which version of a branch of `__manifest` is the latest, without reading the folder of versions where that can be
//! spared. Reads only: Lance's hint, whether the versions after it exist, and the manifest of the last of them. What
//! is published on top of it is created at exactly the next number or not at all.

use lance_table::io::commit::ManifestNamingScheme;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::dataset::{MANIFEST_DIR, place};
use super::{ManifestVersion, Root, guarded};
use crate::error::{Error, Result};
use crate::stamp::{self, StampReading};

/// What Lance leaves beside the manifests of a local dataset: the number of a version, at times an earlier one.
const HINT: &str = "_versions/latest_version_hint.json";
/// Bytes of a hint that is read.
const MAX_HINT_BYTES: u64 = 256;
/// Versions above the hint that are looked for one by one before all are listed.
const HINT_PROBES: u64 = 16;

#[derive(serde::Deserialize)]
struct Hint {
    version: u64,
}

impl Root {
    /// Open the latest version of a native branch of `__manifest` (`None` = main) that is served at the current stamp;
    /// any other is left to the caller's guard. On a local disk the latest version is otherwise found by reading the
    /// whole folder of versions.
    pub async fn open_latest_manifest(&self, native: Option<&str>) -> Result<ManifestVersion> {
        if self.is_local()
            && let Some(version) = self.followed_hint(native).await
        {
            return Ok(version);
        }
        self.open_manifest(native, None).await
    }

    /// The version reached from Lance's hint by looking for the next number until one is absent. From a version of the
    /// current stamp on, numbers have no gaps: each publish creates exactly the next one and no cleanup removes one. So
    /// an early hint costs requests and never an answer; whatever else is odd about it is `None`.
    async fn followed_hint(&self, native: Option<&str>) -> Option<ManifestVersion> {
        let place = place(MANIFEST_DIR, native);
        let bytes = self.get(&format!("{place}/{HINT}"), MAX_HINT_BYTES).await;
        let Hint { version } = serde_json::from_slice(&bytes.ok()??).ok()?;
        let base = self.path(&place).ok()?;
        let store = self.store().inner.as_ref();
        let scheme = ManifestNamingScheme::V2;
        let mut latest = version;
        loop {
            let next = latest.checked_add(1)?;
            let exists = self
                .commit_handler()
                .version_exists(&base, next, store, scheme);
            if !exists.await.ok()? {
                break;
            }
            latest = next;
            if latest - version >= HINT_PROBES {
                return None;
            }
        }
        // A hint beyond the latest version, or damage that the listing has to meet.
        let opened = self.open_manifest(native, Some(latest)).await.ok()?;
        let named = opened.dataset.manifest_location().naming_scheme == scheme;
        let served = StampReading::of(&opened).number() == Some(stamp::CURRENT)
            && opened.metadata(stamp::PENDING_KEY).is_none();
        (named && served).then_some(opened)
    }

    /// Whether `version` is still the latest one of its branch: two small requests. Its manifest must be the object that
    /// was opened, which it is not in a graph that was removed and made anew. And the next version must be absent: the
    /// numbers of `__manifest` have no gaps, since each publish creates exactly the next one and nothing removes one.
    /// A store that does not tell objects apart is answered with false.
    pub async fn is_latest(&self, version: &ManifestVersion) -> Result<bool> {
        let object = version.describe();
        let (root, dataset, context) = (self.clone(), version.dataset.clone(), object.clone());
        guarded(&object, async move {
            let opened = dataset.manifest_location();
            let (Some(tag), Some(next)) = (&opened.e_tag, opened.version.checked_add(1)) else {
                return Ok(false);
            };
            let now = match root.store().inner.head(&opened.path).await {
                Ok(now) => now,
                Err(object_store::Error::NotFound { .. }) => return Ok(false),
                Err(e) => return Err(Error::object(format!("cannot look at {context}"), e)),
            };
            if now.e_tag.as_ref() != Some(tag) {
                return Ok(false);
            }
            let folders = opened.path.parts_count().saturating_sub(2);
            let base: Path = opened.path.parts().take(folders).collect();
            let store = root.store().inner.as_ref();
            let followed = root
                .commit_handler()
                .version_exists(&base, next, store, opened.naming_scheme)
                .await
                .map_err(|e| Error::lance(format!("cannot look for what follows {context}"), e))?;
            Ok(!followed)
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{Int32Array, RecordBatch};
    use arrow_schema::{DataType, Field, Schema};
    use lance::Dataset;
    use lance::dataset::{InsertBuilder, WriteMode, WriteParams};

    use super::*;
    use crate::store::RootOptions;

    /// One more version, with the schema metadata of a served one or with `metadata`.
    async fn publish(root: &Root, metadata: &[(&str, &str)]) -> u64 {
        publish_named(root, metadata, true).await
    }

    async fn publish_named(root: &Root, metadata: &[(&str, &str)], v2: bool) -> u64 {
        let metadata: HashMap<String, String> = [(stamp::STAMP_KEY, "14")]
            .iter()
            .chain(metadata)
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let fields = vec![Field::new("n", DataType::Int32, false)];
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from(vec![1]))]);
        let params = WriteParams {
            mode: WriteMode::Overwrite,
            enable_v2_manifest_paths: v2,
            ..WriteParams::default()
        };
        let uri = root.dataset_uri(MANIFEST_DIR);
        let written: Dataset = InsertBuilder::new(uri.as_str())
            .with_params(&params)
            .execute(vec![batch.unwrap()])
            .await
            .unwrap();
        written.manifest().version
    }

    async fn served(versions: u64) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let uri = folder.path().to_string_lossy();
        let root = Root::open(&uri, RootOptions::default()).await.unwrap();
        for version in 1..=versions {
            assert_eq!(publish(&root, &[]).await, version);
        }
        (folder, root)
    }

    async fn set_hint(root: &Root, text: &str) {
        let key = format!("{MANIFEST_DIR}/{HINT}");
        root.overwrite(&key, text.to_string().into()).await.unwrap();
    }

    #[tokio::test]
    async fn an_early_hint_is_followed_and_any_other_is_not_believed() {
        let latest = HINT_PROBES + 4;
        let (_folder, root) = served(latest).await;
        let hinted = |n: u64| format!("{{\"version\":{n}}}");
        for (hint, found) in [
            (hinted(latest), Some(latest)),
            (hinted(latest - 1), Some(latest)),
            (hinted(latest - HINT_PROBES + 1), Some(latest)),
            (hinted(latest - HINT_PROBES), None),
            (hinted(latest + 1), None),
            (hinted(latest + 7), None),
            (hinted(0), None),
            (hinted(u64::MAX), None),
            (hinted(u64::MAX - 1), None),
            ("{\"version\":-1}".into(), None),
            ("{}".into(), None),
            (String::new(), None),
            (" ".repeat(300), None),
        ] {
            set_hint(&root, &hint).await;
            let followed = root.followed_hint(None).await.map(|v| v.version);
            assert_eq!(followed, found, "{hint}");
            let opened = root.open_latest_manifest(None).await.unwrap();
            assert_eq!(opened.version, latest, "{hint}");
        }
        let key = format!("{MANIFEST_DIR}/{HINT}");
        root.delete(&key).await.unwrap();
        assert!(root.followed_hint(None).await.is_none());
        let opened = root.open_latest_manifest(None).await.unwrap();
        assert_eq!(opened.version, latest);
    }

    /// Numbers below the current stamp have gaps: a cleanup of an older release leaves a tagged version alone.
    #[tokio::test]
    async fn a_hint_at_a_version_that_is_not_served_is_not_followed() {
        for metadata in [[(stamp::STAMP_KEY, "13")], [(stamp::PENDING_KEY, "{}")]] {
            let (_folder, root) = served(1).await;
            assert_eq!(publish(&root, &metadata).await, 2);
            assert!(root.followed_hint(None).await.is_none(), "{metadata:?}");
            let opened = root.open_latest_manifest(None).await.unwrap();
            assert_eq!(opened.version, 2);
        }
    }

    /// What follows a version is looked for under one spelling of file names only.
    #[tokio::test]
    async fn versions_under_the_older_names_are_listed() {
        let (_folder, root) = served(0).await;
        for version in 1..=3 {
            assert_eq!(publish_named(&root, &[], false).await, version);
        }
        set_hint(&root, "{\"version\":2}").await;
        assert!(root.followed_hint(None).await.is_none());
        let opened = root.open_latest_manifest(None).await.unwrap();
        assert_eq!(opened.version, 3);
    }
}
