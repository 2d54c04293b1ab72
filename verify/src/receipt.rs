//! The receipt of a converted branch against its ref and the legacy directory
//! (`docs/format/manifest-v14.md` 1.1).

use graph::history::legacy::ChainKind;
use graph::refs::BranchIdentifier;
use graph::stamp::RECEIPT_KEY;
use graph::store::ManifestVersion;
use serde::Deserialize;

use crate::finding::Code;
use crate::history::Area;
use crate::refs::Branch;
use crate::run::{Run, manifest_object};

/// Protocol of the upgrade to stamp 14.
const PROTOCOL: u32 = 6;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Receipt {
    protocol: u32,
    attempt: String,
    source: Source,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    native: Option<String>,
    identity: BranchIdentifier,
    version: u64,
    #[serde(default)]
    parent_version: u64,
}

/// Check the receipt of one branch, if it carries one.
pub(crate) fn check(run: &Run<'_>, branch: &Branch, version: &ManifestVersion, area: &Area) {
    let Some(text) = version.metadata(RECEIPT_KEY) else {
        return;
    };
    let object = manifest_object(branch.native.as_deref(), Some(version.version));
    let wrong = |message: String| {
        run.findings.add(
            Code::ReceiptInconsistent,
            Some(&branch.name),
            object.clone(),
            message,
        );
    };
    let receipt: Receipt = match serde_json::from_str(text) {
        Ok(receipt) => receipt,
        Err(e) => return wrong(format!("the receipt cannot be read: {e}")),
    };
    if receipt.protocol != PROTOCOL {
        return wrong(format!(
            "the receipt is of protocol {}, expected {PROTOCOL}",
            receipt.protocol
        ));
    }
    if !area.has_directory {
        return wrong(
            "the receipt says that the graph was converted, but it has no legacy directory".into(),
        );
    }
    if let Some(directory) = &area.directory
        && directory.attempt.to_string() != receipt.attempt
    {
        wrong(format!(
            "the receipt is of attempt {}, the legacy directory of {}",
            receipt.attempt, directory.attempt
        ));
    }
    let source = &receipt.source;
    // A later fork inherits the receipt of its source.
    if source.native != branch.native {
        return;
    }
    let added = if branch.native.is_none() { 3 } else { 1 };
    if source.version.saturating_add(added) > version.version {
        wrong(format!(
            "the receipt says that version {} was converted, which cannot lead to version {}",
            source.version, version.version
        ));
    }
    let (identity, parent_version) = match (&branch.native, &branch.contents) {
        (None, _) => (BranchIdentifier::main(), 0),
        (Some(_), Some(contents)) => (contents.identifier.clone(), contents.parent_version),
        (Some(_), None) => return,
    };
    if source.identity != identity || source.parent_version != parent_version {
        wrong("the receipt names another identity or fork version than the ref has".into());
    }
    let listed = area
        .writers
        .iter()
        .find(|w| w.native == branch.native && w.kind != ChainKind::Orphaned);
    if let Some(writer) = listed
        && writer.head_version != source.version
    {
        wrong(format!(
            "the receipt says that version {} was converted, the legacy locator lists {}",
            source.version, writer.head_version
        ));
    }
}
