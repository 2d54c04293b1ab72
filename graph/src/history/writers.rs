//! The legacy writers by native name, and the commits of one (`docs/format/history.md` 9.3, 9.5 step 2.2,
//! 9.6).

use super::legacy::{ChainKind, Directory, WriterEntry};
use super::lookup::HistoryReader;
use super::path::ExtentKey;
use crate::digest;
use crate::error::{Error, Result};
use crate::model::Commit;

impl HistoryReader {
    /// The writer entries of a native name (`None` is main), in kind order: at most one main, live or
    /// retired writer, and an orphaned one (whose name is a logical name) after it. Empty when the root
    /// has no legacy area.
    pub async fn writers(&self, native: Option<&str>) -> Result<Vec<WriterEntry>> {
        let Some(directory) = self.directory().await? else {
            return Ok(Vec::new());
        };
        let name = digest::sha256(native.unwrap_or_default().as_bytes());
        let mut out: Vec<WriterEntry> = Vec::new();
        for n in directory.writer_shards_of(&name) {
            let shard = self.writer_shard(&directory, n).await?;
            let named = shard
                .entries()
                .iter()
                .filter(|w| w.native.as_deref() == native);
            out.extend(named.cloned());
        }
        let refs = out.iter().filter(|w| w.kind != ChainKind::Orphaned).count();
        if refs > 1 {
            return Err(Error::internal(format!(
                "the legacy locator lists {refs} refs named '{}'",
                native.unwrap_or("main")
            )));
        }
        Ok(out)
    }

    /// The head commit of a ref as the legacy area records it, by its non-orphaned writer entry. `None`
    /// means that the ref has no commit of its own and its lineage is its parent's; a listed head that
    /// cannot be found is [`Error::Internal`] (`docs/format/history.md` 9.6).
    pub async fn writer_head(&self, native: Option<&str>) -> Result<Option<Commit>> {
        let writers = self.writers(native).await?;
        let Some(writer) = writers.iter().find(|w| w.kind != ChainKind::Orphaned) else {
            return Ok(None);
        };
        let id = writer.head.to_string();
        match self.commit(&id).await? {
            Some(commit) => Ok(Some(commit)),
            None => Err(Error::internal(format!(
                "commit {id}, the recorded head of '{}', cannot be found",
                native.unwrap_or("main")
            ))),
        }
    }

    /// The last commit of a writer at or below version `upto`; `None` when all lie above it.
    pub(super) async fn writer_commit_at(
        &self,
        directory: &Directory,
        writer: &WriterEntry,
        upto: u64,
    ) -> Result<Option<Commit>> {
        let name = writer.native.as_deref().unwrap_or("main");
        let first = writer.first_file as usize;
        let listed = first
            .checked_add(writer.files as usize)
            .and_then(|end| directory.files.get(first..end))
            .ok_or_else(|| {
                Error::internal(format!("the data files of writer '{name}' are not listed"))
            })?;
        // The files of a writer ascend by version.
        let at = listed.partition_point(|f| f.first_version <= upto);
        let Some((at, listing)) = at.checked_sub(1).and_then(|at| Some((at, listed.get(at)?)))
        else {
            return Ok(None);
        };
        let key = ExtentKey::LegacyData((first + at) as u32);
        let rows = self.extent::<Commit>(&key).await?.ok_or_else(|| {
            Error::internal(format!(
                "{} is listed in the directory and missing",
                key.key()
            ))
        })?;
        if rows.len() != listing.rows as usize {
            return Err(Error::internal(format!(
                "{} holds {} rows, the directory lists {}",
                key.key(),
                rows.len(),
                listing.rows
            )));
        }
        if let Some(foreign) = rows.iter().find(|c| c.native_branch != writer.native) {
            return Err(Error::internal(format!(
                "{} holds commit {} of another ref than '{name}', to which the locator gives it",
                key.key(),
                foreign.graph_commit_id
            )));
        }
        let below = rows.partition_point(|c| c.graph_manifest_version <= upto);
        match below.checked_sub(1).and_then(|i| rows.get(i)) {
            Some(commit) => Ok(Some(commit.clone())),
            None => Err(Error::internal(format!(
                "{} is listed from version {} and holds only later ones",
                key.key(),
                listing.first_version
            ))),
        }
    }
}
