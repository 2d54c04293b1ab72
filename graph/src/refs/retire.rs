//! Retiring a ref: it stops being live, its tree stays (`docs/format/manifest-v14.md` 11.3,
//! `docs/format/upgrade-protocol.md` 7).
//!
//! Writes the mark into `_refs/branches/{native}.json`, creates the archive
//! `tree/{native}/_omnigraph_retired_branch.json`, then deletes the ref object. Each step is idempotent, the
//! mark is the moment of retirement, and both the marked and the archived form read as retired: a stop
//! between any two leaves a state that the next call finishes.

use std::future::Future;

use bytes::Bytes;

use super::contents::{BranchIdentifier, RETIRED_KEY, RefContents, RetiredRecord};
use super::inventory::{archive_key, read_ref, ref_key, tags_on};
use crate::error::{Error, Result};
use crate::model::names;
use crate::store::{Created, Root};

/// The effects of one retirement, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetireStep {
    /// The ref object gets the retirement record.
    Mark,
    /// The archive is created.
    Archive,
    /// The ref object is deleted.
    Remove,
}

/// Retire `native`, whose stored identifier must equal `identifier`. `before` is called ahead of each
/// effect that is still to do and may stop the run. A tag on the ref that is no merge-input tag, main,
/// the sentinel identity, or another identifier refuse; a ref object that is gone must have its archive
/// with the same identifier.
pub async fn retire<F, Fut>(
    root: &Root,
    native: &str,
    identifier: &BranchIdentifier,
    before: F,
) -> Result<()>
where
    F: Fn(RetireStep) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let key = ref_key(native);
    let archive = archive_key(native);
    let Some(mut contents) = read_ref(root, native).await? else {
        return require_archive(root, native, &archive, identifier).await;
    };
    if contents.identifier != *identifier {
        return Err(Error::internal(format!(
            "{key} is another incarnation of ref '{native}' than the one to retire"
        )));
    }
    if !contents.is_retired(native, &key)? {
        require_retirable(root, native, identifier).await?;
        let record = RetiredRecord {
            version: 1,
            native_branch: native.to_string(),
            identifier: identifier.clone(),
        };
        contents
            .metadata
            .insert(RETIRED_KEY.to_string(), to_json(&record)?);
        before(RetireStep::Mark).await?;
        let pretty = serde_json::to_vec_pretty(&contents)
            .map_err(|e| Error::internal(format!("{key} cannot be encoded: {e}")))?;
        root.overwrite(&key, Bytes::from(pretty)).await?;
    }
    before(RetireStep::Archive).await?;
    create_archive(root, native, &archive, &contents).await?;
    match read_ref(root, native).await? {
        None => Ok(()),
        Some(again) if again == contents => {
            before(RetireStep::Remove).await?;
            root.delete(&key).await
        }
        Some(_) => Err(Error::internal(format!(
            "{key} changed while ref '{native}' was retired; the archive {archive} is in place"
        ))),
    }
}

async fn require_archive(
    root: &Root,
    native: &str,
    archive: &str,
    identifier: &BranchIdentifier,
) -> Result<()> {
    match root.get(archive, 4 << 20).await? {
        Some(bytes) => {
            let archived = RefContents::parse(&bytes, native, archive)?;
            if archived.is_retired(native, archive)? && archived.identifier == *identifier {
                Ok(())
            } else {
                Err(Error::internal(format!(
                    "{archive} is not the archive of the ref '{native}' that is to be retired"
                )))
            }
        }
        None => Err(Error::internal(format!(
            "ref '{native}' is to be retired, but it has neither a ref object ({}) nor an archive \
             ({archive})",
            ref_key(native)
        ))),
    }
}

/// Whether a live ref may be retired at all: [`Error::Refused`] for main, a ref without an identity, and
/// one that a tag points at, merge-input tags aside.
pub async fn require_retirable(
    root: &Root,
    native: &str,
    identifier: &BranchIdentifier,
) -> Result<()> {
    if native == names::MAIN || identifier.is_main() || *identifier == BranchIdentifier::sentinel()
    {
        return Err(Error::refused(format!(
            "ref '{native}' cannot be retired: main and refs without an identity never are"
        )));
    }
    let tags = tags_on(root, native).await?;
    if !tags.is_empty() {
        return Err(Error::refused(format!(
            "ref '{native}' cannot be retired while tags point at it: {}; delete the tags, then rerun",
            tags.join(", ")
        )));
    }
    Ok(())
}

async fn create_archive(
    root: &Root,
    native: &str,
    archive: &str,
    contents: &RefContents,
) -> Result<()> {
    let bytes = Bytes::from(to_json(contents)?);
    if let Created::Existing(found) = root.create(archive, bytes, 4 << 20).await?
        && RefContents::parse(&found, native, archive)? != *contents
    {
        return Err(Error::internal(format!(
            "{archive} exists and differs from the ref object of '{native}'"
        )));
    }
    Ok(())
}

fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::internal(format!("cannot encode JSON: {e}")))
}
