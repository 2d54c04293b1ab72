//! Ref objects, retirement archives, trees and tags of `__manifest` (`docs/format/manifest-v14.md` 11).
//!
//! A ref object carries no checksum. Its identifier repeats the fork version and the parent's identifier, the
//! clone that made the branch names ref, parent and version, and the parent's manifest has the recorded size.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use graph::Error;
use graph::model::names::{MAIN, logical_name};
use graph::refs::{
    BranchIdentifier, NativeRef, RETIRED_KEY, RefContents, RefInventory, RetiredRecord, archive_key,
    ref_key, survey,
};
use graph::store::{MANIFEST_DIR, guarded};
use lance::dataset::transaction::Operation;
use serde_json::Value;

use crate::finding::Code;
use crate::report::Checked;
use crate::run::{Run, manifest_object};
use crate::tags;

/// Most bytes of a ref object that are read again.
const MAX_REF_BYTES: u64 = 4 << 20;
/// The members of a ref object.
const MEMBERS: [&str; 6] = [
    "parentBranch",
    "identifier",
    "parentVersion",
    "createAt",
    "manifestSize",
    "metadata",
];

/// One live branch.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    /// Logical name.
    pub(crate) name: String,
    /// Native ref; `None` is main.
    pub(crate) native: Option<String>,
    /// The ref object; `None` for main and when it cannot be understood.
    pub(crate) contents: Option<RefContents>,
}

/// The refs of a root.
#[derive(Debug)]
pub(crate) struct Refs {
    /// Main, then the live named branches by native name.
    pub(crate) branches: Vec<Branch>,
}

/// Check every ref object, archive, tree and tag.
pub(crate) async fn check(run: &Run<'_>, checked: &mut Checked) -> Refs {
    let mut branches = vec![Branch {
        name: MAIN.to_string(),
        native: None,
        contents: None,
    }];
    let (inventory, broken) = match survey(run.root).await {
        Ok(found) => found,
        Err(e) => {
            let object = format!("{MANIFEST_DIR}/_refs/branches");
            run.findings.error(Code::RefDamaged, None, &object, &e);
            return Refs { branches };
        }
    };
    for found in &broken {
        let name = logical_name(&found.native);
        run.findings
            .error(Code::RefDamaged, Some(name), &found.object, &found.error);
        // Its rows are checked all the same, unless it is an archive that is broken.
        if found.object == ref_key(&found.native) {
            branches.push(Branch {
                name: name.to_string(),
                native: Some(found.native.clone()),
                contents: None,
            });
        }
    }
    for native in &inventory.unclaimed {
        run.findings.add(
            Code::TreeUnclaimed,
            Some(logical_name(native)),
            manifest_object(Some(native), None),
            "neither a ref object nor a retirement archive names this tree: one of them was lost, or the \
             creation of a branch was interrupted",
        );
    }
    ambiguous(run, &inventory);
    checked.retired_refs = inventory.retired.len() as u64;
    let total = (inventory.live.len() + inventory.retired.len()) as u64;
    let all: Vec<(&NativeRef, bool)> = inventory
        .live
        .iter()
        .map(|r| (r, false))
        .chain(inventory.retired.iter().map(|r| (r, true)))
        .collect();
    let checks: Vec<_> = all
        .into_iter()
        .map(|(r, retired)| one(run, r, retired, &inventory))
        .collect();
    let mut checks = futures::stream::iter(checks).buffered(run.concurrency());
    let mut done = 0;
    while checks.next().await.is_some() {
        done += 1;
        run.progress("checking refs", done, total);
    }
    branches.extend(inventory.live.iter().map(|r| Branch {
        name: r.logical().to_string(),
        native: Some(r.native.clone()),
        contents: Some(r.contents.clone()),
    }));
    branches[1..].sort_by(|a, b| a.native.cmp(&b.native));
    tags::check(run, checked).await;
    Refs { branches }
}

fn ambiguous(run: &Run<'_>, inventory: &RefInventory) {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for r in &inventory.live {
        by_name.entry(r.logical()).or_default().push(&r.native);
    }
    for (name, natives) in by_name {
        if natives.len() > 1 || name == MAIN {
            run.findings.add(
                Code::BranchAmbiguous,
                Some(name),
                natives.iter().map(|n| ref_key(n)).collect::<Vec<_>>().join(", "),
                format!("branch '{name}' has {} live refs", natives.len()),
            );
        }
    }
}

async fn one(run: &Run<'_>, r: &NativeRef, retired: bool, inventory: &RefInventory) {
    let name = Some(r.logical());
    // A marked ref object may stand beside its archive, or alone.
    let mut object = ref_key(&r.native);
    for key in [ref_key(&r.native), archive_key(&r.native)] {
        match run.root.get(&key, MAX_REF_BYTES).await {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                if let Some(why) = members(&bytes) {
                    run.findings.add(Code::RefDamaged, name, &key, why);
                }
                object = key;
            }
            Err(e) => run.findings.error(Code::RefDamaged, name, &key, &e),
        }
    }
    let wrong = |why: String| run.findings.add(Code::RefDamaged, name, &object, why);
    if let Some(why) = identity(r, inventory) {
        wrong(why);
    }
    if !retired && let Some(key) = hidden_retirement(&r.contents) {
        wrong(format!(
            "metadata entry '{key}' holds a retirement record, which only stands under {RETIRED_KEY}"
        ));
    }
    match source_size(run, &r.contents).await {
        Ok(Some(size)) if size != r.contents.manifest_size => wrong(format!(
            "it records a source manifest of {} bytes, which has {size}",
            r.contents.manifest_size
        )),
        Ok(_) => {}
        Err(e) => run.findings.error(Code::RefDamaged, name, &object, &e),
    }
    match clone_of(run, r).await {
        Ok(None) => {}
        Ok(Some(why)) => wrong(why),
        Err(e) => {
            let tree = manifest_object(Some(&r.native), Some(r.contents.parent_version));
            run.findings
                .error(Code::ManifestVersionDamaged, name, &tree, &e);
        }
    }
}

/// Why the members of a ref object are not those of Lance's branch contents.
fn members(bytes: &[u8]) -> Option<String> {
    // That it parses was checked before.
    let Ok(Value::Object(object)) = serde_json::from_slice::<Value>(bytes) else {
        return Some("it is not a JSON object".into());
    };
    if let Some(other) = object.keys().find(|k| !MEMBERS.contains(&k.as_str())) {
        return Some(format!("it has a member '{other}', which no ref object has"));
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
fn identity(r: &NativeRef, inventory: &RefInventory) -> Option<String> {
    let c = &r.contents;
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
        Some(parent) => {
            let held = inventory
                .live
                .iter()
                .chain(&inventory.retired)
                .find(|r| r.native == *parent);
            match held {
                Some(held) => held.contents.identifier.clone(),
                None => return None,
            }
        }
    };
    (parent.version_mapping != inherited).then(|| {
        format!(
            "its identifier does not continue that of its parent '{}'",
            c.parent_branch.as_deref().unwrap_or(MAIN)
        )
    })
}

/// The key of a retirement record that stands under another name than its own.
fn hidden_retirement(contents: &RefContents) -> Option<&str> {
    contents
        .metadata
        .iter()
        .find(|(_, value)| serde_json::from_str::<RetiredRecord>(value).is_ok())
        .map(|(key, _)| key.as_str())
}

/// The size of the manifest a branch was forked from; `None` when that version is gone.
async fn source_size(run: &Run<'_>, contents: &RefContents) -> graph::Result<Option<u64>> {
    let tree = manifest_object(contents.parent_branch.as_deref(), None);
    let name = u64::MAX - contents.parent_version;
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
async fn clone_of(run: &Run<'_>, r: &NativeRef) -> graph::Result<Option<String>> {
    let c = &r.contents;
    let versions = run
        .root
        .linear_versions(MANIFEST_DIR, Some(&r.native))
        .await?;
    // A tree without versions is reported when the branch is opened; one of a retired ref may be reclaimed.
    let Some(first) = versions.first() else {
        return Ok(None);
    };
    if *first != c.parent_version {
        return Ok(Some(format!(
            "it was forked at version {}, its tree starts at version {first}",
            c.parent_version
        )));
    }
    let version = run.root.open_manifest(Some(&r.native), Some(*first)).await?;
    let dataset = version.dataset.clone();
    let transaction = guarded(&version.describe(), async move {
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
        || branch_name.as_deref() != Some(r.native.as_str())
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
