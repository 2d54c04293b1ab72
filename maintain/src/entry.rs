//! What every maintenance verb asks of a graph before it reads further (`docs/format/maintenance.md` 1).

use graph::Error;
use graph::model::names::SCHEMA_APPLY_LOCK;
use graph::refs;
use graph::stamp::shell_word;
use graph::store::Root;
use write::Result;
use write::capture::Capture;

/// Folder of recovery sidecars; nothing of a stamp-14 release writes there.
const RECOVERY_DIR: &str = "__recovery";

/// Read `branch` (`None` = main) for a maintenance verb. A leftover recovery sidecar and a schema apply in progress
/// are [`Error::Refused`]; a stamp other than 14 is what [`Capture::of`] says.
pub(crate) async fn admit(root: &Root, branch: Option<&str>) -> Result<Capture> {
    let capture = Capture::of(root, branch).await?;
    if let Some(sidecar) = root.list_names(RECOVERY_DIR).await?.first() {
        return Err(Error::refused(format!(
            "{RECOVERY_DIR}/{sidecar} is left of a write that was interrupted, expected no object there; nothing was \
             changed. Settle that write with the release that made it, then run the command again"
        ))
        .into());
    }
    let locked = match refs::resolve_branch(root, Some(SCHEMA_APPLY_LOCK)).await {
        Ok(_) => true,
        Err(e) if e.is_not_found() => false,
        Err(e) => return Err(e.into()),
    };
    if locked {
        return Err(Error::refused(format!(
            "a schema apply is in progress: the branch {SCHEMA_APPLY_LOCK} exists; nothing was changed. Wait for it to \
             end, look with: omnigraph branch list {}",
            shell_word(root.uri())
        ))
        .into());
    }
    Ok(capture)
}
