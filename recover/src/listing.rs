//! The sidecars of a root, each by the name it was listed under (`docs/format/recovery-sidecars.md` 4).
//!
//! A file that cannot be understood is handed back beside the others: it stops every change, and no diagnosis.

use bytes::Bytes;
use graph::store::{Root, location};
use graph::{Error, Result};
use legacy::recovery::RECOVERY_DIR;

use crate::sidecar::{self, Sidecar};

/// Most bytes of one sidecar; a merge of 1024 transactions a table stays far below.
const MAX_SIDECAR_BYTES: u64 = 64 << 20;

/// One file of `__recovery/`.
#[derive(Debug)]
pub struct Listed {
    /// Its name below `__recovery/`.
    pub file: String,
    /// What it holds, or why it holds no sidecar of this root.
    pub sidecar: std::result::Result<Sidecar, String>,
}

impl Listed {
    /// Its key below the root.
    pub fn key(&self) -> String {
        sidecar_key(&self.file)
    }
}

/// Key of a sidecar file below the root.
pub fn sidecar_key(file: &str) -> String {
    format!("{RECOVERY_DIR}/{file}")
}

/// The location of a root as sidecars spell it: no trailing slash, a local path without scheme.
pub fn recorded_location(root: &Root) -> String {
    let uri = root.uri().trim_end_matches('/');
    match location::scheme(uri) {
        "file-object-store" => uri.trim_start_matches("file-object-store://").to_string(),
        _ => uri.to_string(),
    }
}

/// Every sidecar, in the order of their names, which is the order of time. A file that went away since the listing is
/// skipped; a list or read that fails is an error.
pub async fn list(root: &Root) -> Result<Vec<Listed>> {
    let place = recorded_location(root);
    let mut names = root.list_names(RECOVERY_DIR).await?;
    names.sort();
    let mut out = Vec::new();
    for file in names.into_iter().filter(|n| n.ends_with(".json")) {
        match root.get(&sidecar_key(&file), MAX_SIDECAR_BYTES).await {
            Ok(None) => {}
            Ok(Some(bytes)) => out.push(Listed {
                sidecar: read(&bytes, &place),
                file,
            }),
            Err(limit @ Error::Limit { .. }) => out.push(Listed {
                file,
                sidecar: Err(limit.to_string()),
            }),
            Err(e) => return Err(e),
        }
    }
    Ok(out)
}

/// Read one file again; `None` when it is gone.
pub async fn reread(root: &Root, file: &str) -> Result<Option<Listed>> {
    let place = recorded_location(root);
    let bytes = root.get(&sidecar_key(file), MAX_SIDECAR_BYTES).await?;
    Ok(bytes.map(|bytes| Listed {
        file: file.to_string(),
        sidecar: read(&bytes, &place),
    }))
}

fn read(bytes: &Bytes, place: &str) -> std::result::Result<Sidecar, String> {
    let parsed = Sidecar::parse(bytes)?;
    sidecar::check(&parsed, place)?;
    Ok(parsed)
}

/// Rewrite a sidecar in place: the rollback plan. Stores replace objects whole; a local one renames.
pub async fn rewrite(root: &Root, file: &str, sidecar: &Sidecar) -> Result<()> {
    let text = sidecar
        .pretty()
        .map_err(|e| Error::internal(format!("{}: {e}", sidecar_key(file))))?;
    root.overwrite(&sidecar_key(file), Bytes::from(text)).await
}
