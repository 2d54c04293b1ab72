//! One ref object, of `__manifest` or of a table, against what it describes: it carries no checksum, but its
//! identifier repeats the fork version and the parent's identifier, the clone that made the branch names ref,
//! parent and version, and the parent's manifest has the recorded size (`docs/format/manifest-v14.md` 11.2).

use std::collections::BTreeMap;

use graph::Error;
use graph::model::names::MAIN;
use graph::refs::{BranchIdentifier, RefContents, RetiredRecord};
use graph::store::guarded;
use lance::dataset::transaction::Operation;
use serde_json::Value;

use crate::finding::Code;
use crate::run::Run;

/// The members of a ref object.
const MEMBERS: [&str; 6] = [
    "parentBranch",
    "identifier",
    "parentVersion",
    "createAt",
    "manifestSize",
    "metadata",
];

/// Refs of one dataset by native name.
pub(crate) type Known<'a> = BTreeMap<&'a str, &'a RefContents>;

/// One ref of the dataset at `location`; `object` is the key it was read from.
pub(crate) struct Described<'a> {
    pub(crate) location: &'a str,
    pub(crate) native: &'a str,
    pub(crate) contents: &'a RefContents,
    pub(crate) object: &'a str,
    /// Branch of the findings.
    pub(crate) branch: Option<&'a str>,
    /// Whether the clone can never be removed: of `__manifest` no version is, of a table old ones are.
    pub(crate) keeps_clone: bool,
}

/// Check a ref whose object could be decoded.
pub(crate) async fn check(run: &Run<'_>, r: &Described<'_>, known: &Known<'_>) {
    let wrong = |why: String| run.findings.add(Code::RefDamaged, r.branch, r.object, why);
    if let Some(why) = identity(r.contents, known) {
        wrong(why);
    }
    match source_size(run, r).await {
        Ok(Some(size)) if size != r.contents.manifest_size => wrong(format!(
            "it records a source manifest of {} bytes, which has {size}",
            r.contents.manifest_size
        )),
        Ok(_) => {}
        Err(e) => run.findings.error(Code::RefDamaged, r.branch, r.object, &e),
    }
    match clone_of(run, r).await {
        Ok(None) => {}
        Ok(Some(why)) => wrong(why),
        Err(e) => {
            let tree = format!(
                "{}/tree/{} at version {}",
                r.location, r.native, r.contents.parent_version
            );
            run.findings
                .error(Code::ManifestVersionDamaged, r.branch, &tree, &e);
        }
    }
}

/// Why the members of a ref object are not those of Lance's branch contents.
pub(crate) fn members(bytes: &[u8]) -> Option<String> {
    // That it parses was checked before.
    let Ok(Value::Object(object)) = serde_json::from_slice::<Value>(bytes) else {
        return Some("it is not a JSON object".into());
    };
    if let Some(other) = object.keys().find(|k| !MEMBERS.contains(&k.as_str())) {
        return Some(format!(
            "it has a member '{other}', which no ref object has"
        ));
    }
    match object.get("identifier") {
        Some(Value::Object(identifier)) if identifier.keys().any(|k| k != "version_mapping") => {
            Some("its identifier has more than a version_mapping".into())
        }
        _ => None,
    }
}

/// Why the identifier does not fit the fork version and the parent's identifier: it is the parent's mapping
/// plus one pair of fork version and uuid.
fn identity(c: &RefContents, known: &Known<'_>) -> Option<String> {
    let mapping = &c.identifier.version_mapping;
    let Some(((version, uuid), inherited)) = mapping.split_last() else {
        return Some("its identifier is main's".into());
    };
    let hex = |text: &str| {
        text.len() == 32
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    if mapping.iter().any(|(_, uuid)| !hex(uuid)) {
        return Some("its identifier holds a uuid that is not 32 lower-case hex digits".into());
    }
    // What is derived for a ref object that stores no identifier: nothing in it to compare.
    if *version == 0 && inherited.is_empty() && c.parent_version != 0 {
        return None;
    }
    if *version != c.parent_version {
        return Some(format!(
            "it was forked at version {}, its identifier says {version} ({uuid})",
            c.parent_version
        ));
    }
    let parent = match &c.parent_branch {
        None => BranchIdentifier::main(),
        Some(parent) => known.get(parent.as_str())?.identifier.clone(),
    };
    (parent.version_mapping != inherited).then(|| {
        format!(
            "its identifier does not continue that of its parent '{}'",
            c.parent_branch.as_deref().unwrap_or(MAIN)
        )
    })
}

/// The key of a retirement record that stands under another name than its own.
pub(crate) fn hidden_retirement(contents: &RefContents) -> Option<&str> {
    contents
        .metadata
        .iter()
        .find(|(_, value)| serde_json::from_str::<RetiredRecord>(value).is_ok())
        .map(|(key, _)| key.as_str())
}

/// The size of the manifest a branch was forked from; `None` when that version is gone.
async fn source_size(run: &Run<'_>, r: &Described<'_>) -> graph::Result<Option<u64>> {
    let tree = match &r.contents.parent_branch {
        None => r.location.to_string(),
        Some(parent) => format!("{}/tree/{parent}", r.location),
    };
    let name = u64::MAX - r.contents.parent_version;
    let key = format!("{tree}/_versions/{name:020}.manifest");
    let path = run.root.path(&key)?;
    let store = run.root.store().clone();
    let context = format!("cannot look for {key}");
    guarded(&key, async move {
        match store.size(&path).await {
            Ok(size) => Ok(Some(size)),
            Err(e) => match Error::lance(context, e) {
                Error::NotFound(_) => Ok(None),
                other => Err(other),
            },
        }
    })
    .await
}

/// Why the first version of the branch's tree is not the clone its ref describes.
async fn clone_of(run: &Run<'_>, r: &Described<'_>) -> graph::Result<Option<String>> {
    let c = r.contents;
    let versions = run.root.linear_versions(r.location, Some(r.native)).await?;
    // A tree without versions is reported when the branch is opened; one of a retired ref may be reclaimed.
    let Some(first) = versions.first() else {
        return Ok(None);
    };
    if *first != c.parent_version {
        if !r.keeps_clone && *first > c.parent_version {
            return Ok(None);
        }
        return Ok(Some(format!(
            "it was forked at version {}, its tree starts at version {first}",
            c.parent_version
        )));
    }
    let dataset = run
        .root
        .open_dataset(r.location, Some(r.native), Some(*first))
        .await?;
    let transaction = guarded(r.object, async move {
        dataset
            .read_transaction()
            .await
            .map_err(|e| Error::lance("cannot read the transaction of a version", e))
    })
    .await?;
    let Some(transaction) = transaction else {
        return Ok(None);
    };
    let Operation::Clone {
        ref_name,
        ref_version,
        branch_name,
        ..
    } = &transaction.operation
    else {
        return Ok(Some(format!(
            "the first version of its tree was made by {}, expected a clone",
            transaction.operation
        )));
    };
    let parent = ref_name.as_deref().filter(|name| *name != MAIN);
    if parent != c.parent_branch.as_deref()
        || *ref_version != c.parent_version
        || branch_name.as_deref() != Some(r.native)
    {
        return Ok(Some(format!(
            "its tree was cloned from version {ref_version} of '{}' as '{}', it names version {} of '{}'",
            parent.unwrap_or(MAIN),
            branch_name.as_deref().unwrap_or("none"),
            c.parent_version,
            c.parent_branch.as_deref().unwrap_or(MAIN)
        )));
    }
    Ok(None)
}
