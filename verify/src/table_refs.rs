//! Ref objects of the table forks that heads use. A table opens without them; a cleanup decides by them which
//! trees go.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use graph::refs::RefContents;

use crate::finding::Code;
use crate::pins::HeadPins;
use crate::ref_object::{self, Described, Known, members};
use crate::run::Run;

const MAX_REF_BYTES: u64 = 4 << 20;

/// Check every ref object of the tables that heads pin on a fork.
pub(crate) async fn check(run: &Run<'_>, pins: &HeadPins) {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pin in pins.values() {
        if let Some(branch) = &pin.pin.table_branch {
            used.entry(&pin.table.table_path)
                .or_default()
                .insert(branch);
        }
    }
    let total = used.len() as u64;
    let checks: Vec<_> = used
        .into_iter()
        .map(|(location, branches)| one_table(run, location, branches))
        .collect();
    let mut checks = futures::stream::iter(checks).buffered(run.concurrency());
    let mut done = 0;
    while checks.next().await.is_some() {
        done += 1;
        run.progress("checking table refs", done, total);
    }
}

async fn one_table(run: &Run<'_>, location: &str, used: BTreeSet<&str>) {
    let folder = format!("{location}/_refs/branches");
    let files = match run.root.list_names(&folder).await {
        Ok(files) => files,
        Err(e) => return run.findings.error(Code::RefDamaged, None, &folder, &e),
    };
    let mut natives: BTreeSet<String> = files
        .iter()
        .filter_map(|f| f.strip_suffix(".json"))
        .map(|f| f.replace("%2F", "/"))
        .collect();
    natives.extend(used.into_iter().map(str::to_string));
    let mut read: BTreeMap<String, (String, RefContents)> = BTreeMap::new();
    for native in natives {
        let key = format!("{folder}/{}.json", native.replace('/', "%2F"));
        let parsed = match run.root.get(&key, MAX_REF_BYTES).await {
            Ok(Some(bytes)) => {
                if let Some(why) = members(&bytes) {
                    run.findings.add(Code::RefDamaged, None, &key, why);
                }
                RefContents::parse(&bytes, &native, &key)
            }
            Ok(None) => {
                run.findings.add(
                    Code::RefDamaged,
                    None,
                    &key,
                    "a head pins a table version on this fork, and its ref object does not exist",
                );
                continue;
            }
            Err(e) => Err(e),
        };
        match parsed {
            Ok(contents) => {
                read.insert(native, (key, contents));
            }
            Err(e) => run.findings.error(Code::RefDamaged, None, &key, &e),
        }
    }
    let known: Known<'_> = read.iter().map(|(n, (_, c))| (n.as_str(), c)).collect();
    for (native, (object, contents)) in &read {
        let described = Described {
            location,
            native,
            contents,
            object,
            branch: None,
            keeps_clone: false,
        };
        ref_object::check(run, &described, &known).await;
    }
}
