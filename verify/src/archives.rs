//! Schema archives: each hashes to its name and compiles to its IR hash, and every commit's contract is
//! there (`docs/format/history.md` 6).

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use graph::history::path::ObjectKey;
use graph::history::schema_archive::read_contract;
use graph::model::ContractHead;

use crate::finding::Code;
use crate::history::Area;
use crate::ledger::Ledger;
use crate::report::Checked;
use crate::run::Run;

/// Archives read at once: each may take 64 MiB, and compiling one more.
const ARCHIVES_AT_ONCE: usize = 2;

/// Check every archive, and that each contract that a commit names is archived under its name.
pub(crate) async fn check(run: &Run<'_>, area: &Area, ledger: &Ledger, checked: &mut Checked) {
    let total = area.archives.len() as u64;
    let names: Vec<(String, String)> = area
        .archives
        .iter()
        .map(|name| {
            let key = ObjectKey::Schema(*name);
            let text = key.to_string();
            let stem = text
                .strip_prefix("schemas/")
                .and_then(|t| t.strip_suffix(".schema"))
                .unwrap_or(&text)
                .to_string();
            (key.key(), stem)
        })
        .collect();
    let listed: BTreeSet<&str> = names.iter().map(|(_, stem)| stem.as_str()).collect();
    let mut named: BTreeMap<&str, Vec<(&ContractHead, &str)>> = BTreeMap::new();
    for ((hash, head), commit) in ledger.contracts() {
        named.entry(hash).or_default().push((head, commit));
        if !listed.contains(hash.as_str()) {
            run.findings.add(
                Code::SchemaArchiveMissing,
                None,
                format!("__history/schemas/{hash}.schema"),
                format!("commit {commit} names it, and it does not exist"),
            );
        }
    }
    let reads: Vec<_> = names
        .iter()
        .map(|(key, stem)| async move {
            let read = read_contract(run.root, stem).await;
            (key, stem, read)
        })
        .collect();
    let mut reads = futures::stream::iter(reads).buffered(ARCHIVES_AT_ONCE);
    let mut done = 0;
    while let Some((key, stem, read)) = reads.next().await {
        done += 1;
        run.progress("checking schema archives", done, total);
        let contract = match read {
            Ok(contract) => contract,
            Err(e) => {
                run.findings
                    .error(Code::SchemaArchiveDamaged, None, key, &e);
                continue;
            }
        };
        if let Err(e) = contract.validate() {
            run.findings
                .error(Code::SchemaContractInvalid, None, key, &e);
        }
        for (head, commit) in named.get(stem.as_str()).into_iter().flatten() {
            if **head != contract.head {
                run.findings.add(
                    Code::SchemaContractInvalid,
                    None,
                    key.clone(),
                    format!(
                        "it holds contract {}, commit {commit} names {}",
                        contract.head.to_json(),
                        head.to_json()
                    ),
                );
            }
        }
    }
    checked.history.schema_archives = total;
}
