//! Chains of writers whose refs are gone (`docs/format/legacy-manifest.md` 7.5). Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::graph::history::legacy::{Chain, ChainKind};
use legacy::SourceContract;
use legacy::fold::tables_at;

use crate::finding::{Finding, Stop};
use crate::fold::{Folded, check_bounds, record};
use crate::graph::Orphan;
use crate::heads::Head;
use crate::input::Limits;
use crate::snapshot::Meter;

/// What the census knows about the ref that adopted an orphan.
pub(crate) struct Adopter<'a> {
    pub head: &'a Head,
    pub folded: &'a Folded,
    pub fallback: Option<Arc<SourceContract>>,
}

/// One chain per logical branch, names ascending. Membership is that of the adopter's first version: the
/// orphans' own versions went with their ref. Contracts the records name are added to `contracts`.
pub(crate) fn chains(
    orphans: &BTreeMap<&str, Vec<Orphan>>,
    adopters: &[Adopter],
    generations: &HashMap<&str, u64>,
    limits: &Limits,
    meter: &mut Meter,
    contracts: &mut BTreeMap<String, Arc<SourceContract>>,
) -> Result<Vec<Chain>, Stop> {
    let mut chains = Vec::with_capacity(orphans.len());
    for (branch, list) in orphans {
        let mut records = Vec::with_capacity(list.len());
        let mut head_version = 0;
        for orphan in list {
            let adopter = adopters.get(orphan.adopter).ok_or_else(|| {
                ::graph::Error::internal("an orphaned commit was adopted by no ref of the census")
            })?;
            let commit = orphan.commit;
            let first = adopter.folded.first.as_ref();
            let contract = first
                .and_then(|schema| schema.contract.clone())
                .or_else(|| adopter.fallback.clone())
                .ok_or_else(|| {
                    Finding::unsupported(format!(
                        "commit {} (version {} of the deleted branch '{branch}') has no schema contract: \
                         neither {} nor main holds one",
                        commit.id,
                        commit.version,
                        adopter.head.label()
                    ))
                })?;
            let registrations = first.map_or(&[][..], |schema| &schema.registrations);
            let tables = tables_at(&adopter.head.scan, commit.version, registrations);
            meter.tables(tables.len())?;
            let record = record(commit, Some(branch), generations, &contract, tables);
            check_bounds(&record, limits)?;
            contracts
                .entry(contract.content_hash().to_string())
                .or_insert(contract);
            head_version = commit.version;
            records.push(Arc::new(record));
        }
        chains.push(Chain {
            kind: ChainKind::Orphaned,
            native: Some((*branch).to_string()),
            parent: None,
            parent_version: 0,
            head_version,
            records,
        });
    }
    Ok(chains)
}
