//! Tags of `__manifest`: each names a version that exists; the engine's own have a name that parses
//! (`docs/format/manifest-v14.md` 11.4).

use graph::Error;
use graph::history::BlockAddress;
use graph::store::MANIFEST_DIR;
use serde::Deserialize;

use crate::finding::Code;
use crate::report::Checked;
use crate::run::{Run, manifest_object};

/// Name prefix of the engine's merge-input tags.
const MERGE_INPUT: &str = "__omnigraph_merge_input_v1_";
const MAX_TAG_BYTES: u64 = 4 << 20;

#[derive(Deserialize)]
struct Tag {
    #[serde(default)]
    branch: Option<String>,
    version: u64,
}

/// Check every tag.
pub(crate) async fn check(run: &Run<'_>, checked: &mut Checked) {
    let folder = format!("{MANIFEST_DIR}/_refs/tags");
    let names = match run.root.list_names(&folder).await {
        Ok(names) => names,
        Err(e) => return run.findings.error(Code::RefDamaged, None, &folder, &e),
    };
    for file in &names {
        let Some(name) = file.strip_suffix(".json") else {
            continue;
        };
        checked.tags += 1;
        let key = format!("{folder}/{file}");
        if let Err(e) = one(run, name, &key).await {
            run.findings.error(Code::RefDamaged, None, &key, &e);
        }
    }
}

async fn one(run: &Run<'_>, name: &str, key: &str) -> graph::Result<()> {
    if let Some(rest) = name.strip_prefix(MERGE_INPUT)
        && !is_merge_input(rest)
    {
        return Err(Error::internal(format!(
            "{key} has the name of a merge-input tag, and does not parse as one"
        )));
    }
    let Some(bytes) = run.root.get(key, MAX_TAG_BYTES).await? else {
        return Ok(());
    };
    let tag: Tag = serde_json::from_slice(&bytes)
        .map_err(|e| Error::internal(format!("{key} is not a valid tag object: {e}")))?;
    let branch = tag.branch.as_deref();
    run.root
        .open_manifest(branch, Some(tag.version))
        .await
        .map(|_| ())
        .map_err(|e| {
            e.within(format!(
                "it names {}",
                manifest_object(branch, Some(tag.version))
            ))
        })
}

/// `{digest}_{head}_{nonce}`.
fn is_merge_input(rest: &str) -> bool {
    let parts: Vec<&str> = rest.split('_').collect();
    let [digest, head, nonce] = parts[..] else {
        return false;
    };
    let hex = |text: &str| {
        !text.is_empty()
            && text.len().is_multiple_of(2)
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let head = match head.split_at_checked(1) {
        Some(("n", "")) => true,
        Some(("b", id)) => matches!(BlockAddress::parse(id), Ok(Some(_))),
        Some(("s", id)) => hex(id),
        _ => false,
    };
    graph::digest::is_sha256_hex(digest) && head && graph::ulids::is_canonical(nonce)
}

#[cfg(test)]
mod tests {
    use super::is_merge_input;

    #[test]
    fn names_of_merge_inputs() {
        let digest = "a".repeat(64);
        let nonce = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let block = format!("b hb1.{nonce}.5.{nonce}").replace(' ', "");
        for head in ["n", "s6869", &block] {
            assert!(
                is_merge_input(&format!("{digest}_{head}_{nonce}")),
                "{head}"
            );
        }
        for bad in [
            format!("{digest}_n"),
            format!("{digest}_x_{nonce}"),
            format!("{digest}_bgenesis_{nonce}"),
            format!("{digest}_n_{}", nonce.to_lowercase()),
            format!("A{}_n_{nonce}", &digest[1..]),
        ] {
            assert!(!is_merge_input(&bad), "{bad}");
        }
    }
}
