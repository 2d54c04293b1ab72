//! Deleting a branch: its commits are archived, then its ref is retired and its tree stays.
//!
//! Writes history extents (put if absent), the mark in the ref object, the retirement archive, and deletes the ref
//! object, in that order. A stop before the mark leaves a live branch and equal extra copies; one after it leaves a
//! retired branch that the next create or delete finishes.

use graph::Error;
use graph::history::block::{closed_blocks, place, write_placed};
use graph::manifest::scan::{ReadMode, open_identified, read_state};
use graph::model::names::{MAIN, logical_name};
use graph::refs::{self, RETIRED_KEY, require_retirable, retire};
use graph::store::{MANIFEST_DIR, Root};

use crate::error::{Result, WriteError};
use crate::gates;

/// A branch that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Logical name.
    pub branch: String,
    /// Native ref; its tree stays.
    pub native: String,
    /// The head it had, when this call read it.
    pub head: Option<String>,
}

/// Delete `branch`. Main is refused; so is a branch with tags. A deletion that an earlier call began is finished.
pub async fn delete(root: &Root, branch: &str) -> Result<Deleted> {
    if branch == MAIN {
        return Err(WriteError::invalid("main cannot be deleted"));
    }
    let _held = gates::pass(root, Some(branch), &[]).await;
    let finished = finish_retirements(root).await?;
    let (opened, identifier) = match open_identified(root, Some(branch)).await {
        Ok(opened) => opened,
        Err(e) if e.is_not_found() => {
            let native = finished.into_iter().find(|n| logical_name(n) == branch);
            return match native {
                Some(native) => Ok(Deleted {
                    branch: branch.to_string(),
                    native,
                    head: None,
                }),
                None => Err(e.into()),
            };
        }
        Err(e) => return Err(e.into()),
    };
    let native = opened
        .native
        .clone()
        .ok_or_else(|| Error::internal(format!("branch '{branch}' has no ref of its own")))?;
    require_retirable(root, &native, &identifier).await?;
    let state = read_state(&opened, ReadMode::State).await?;
    let run: Vec<_> = state
        .buffer
        .iter()
        .chain(std::iter::once(&state.head))
        .collect();
    let records = run
        .iter()
        .map(|commit| {
            state.held_record(&commit.graph_commit_id).ok_or_else(|| {
                Error::internal(format!("commit {} is not held", commit.graph_commit_id))
            })
        })
        .collect::<graph::Result<Vec<_>>>()?;
    write_placed(root, place(records, &closed_blocks(run)?)?).await?;
    // What was published meanwhile would be retired without an archive of its commits.
    let (again, same) = open_identified(root, Some(branch)).await?;
    if same != identifier || again.version != opened.version {
        return Err(WriteError::changed(
            format!("graph_head:{branch}"),
            format!("version {}", opened.version),
            format!("version {}", again.version),
        ));
    }
    retire(root, &native, &identifier, |_| async { Ok(()) }).await?;
    Ok(Deleted {
        branch: branch.to_string(),
        native,
        head: Some(state.head.graph_commit_id),
    })
}

/// Finish every retirement that was interrupted after its mark, in name order. Returns the native names.
pub async fn finish_retirements(root: &Root) -> Result<Vec<String>> {
    let mut finished = Vec::new();
    let folder = format!("{MANIFEST_DIR}/_refs/branches");
    let mut names: Vec<String> = root
        .list_names(&folder)
        .await?
        .iter()
        .filter_map(|file| Some(file.strip_suffix(".json")?.replace("%2F", "/")))
        .collect();
    names.sort();
    for native in names {
        let Some(contents) = refs::read_ref(root, &native).await? else {
            continue;
        };
        if !contents.metadata.contains_key(RETIRED_KEY)
            || !contents.is_retired(&native, &refs::ref_key(&native))?
        {
            continue;
        }
        retire(root, &native, &contents.identifier, |_| async { Ok(()) }).await?;
        finished.push(native);
    }
    Ok(finished)
}
