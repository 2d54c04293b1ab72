//! The steps of a census in their order (`docs/format/legacy-manifest.md` 7.2).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::graph::Result;
use ::graph::history::legacy::{Chain, ChainKind};
use ::graph::model::measure::record_bytes;
use ::graph::store::Root;
use legacy::{SchemaReader, SourceContract};

use crate::cells::dated;
use crate::chains::{self, Census, CensusHead};
use crate::counts::Counts;
use crate::finding::{Finding, Stop};
use crate::fold::{Folded, check_deferred};
use crate::graph::{self, CommitGraph};
use crate::heads::{self, Head};
use crate::input::{CensusInput, Progress, RefKind, ordered};
use crate::live_head;
use crate::orphans::{self, Adopter};
use crate::reading::{OneRef, Reading, Taken};
use crate::snapshot::{self, Meter, RefEstimate};
use crate::versions;

/// Take the census of a root. The inner error lists what is wrong with the graph; the outer one means
/// that storage failed or a row could not be understood (9.3). Nothing is written. The caller has
/// checked the head budgets ([`crate::check_budgets`]): head rows and bytes are not checked again here.
pub async fn census(
    root: &Root,
    input: &CensusInput,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<std::result::Result<Census, Vec<Finding>>> {
    match steps(root, input, progress).await {
        Ok(census) => Ok(Ok(census)),
        Err(Stop::Finding(finding)) => Ok(Err(vec![finding])),
        Err(Stop::Failed(error)) => Err(error),
    }
}

async fn steps(
    root: &Root,
    input: &CensusInput,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<Census, Stop> {
    let limits = &input.limits;
    let refs = ordered(input)?;
    // 1 to 3: head scans and what follows from them alone.
    let heads = heads::read(root, &input.source, refs, progress).await?;
    let graph = graph::build(&heads)?;
    snapshot::check_estimate(estimate(&heads, &graph), limits.snapshot_bytes)?;
    // 4: which versions there are to read.
    let listed = versions::list(root, &input.source, &heads, limits, input.exhaustive).await?;
    // 5: read and fold them.
    let reading = Reading {
        root,
        source: &input.source,
        limits,
        generations: &graph.generations,
        progress,
        total: listed.reads(),
    };
    let fallbacks = fallbacks(&heads);
    let mut meter = Meter::new(limits.snapshot_bytes);
    let mut schemas = SchemaReader::default();
    let mut taken = Taken::default();
    progress(Progress::Versions {
        read: taken.versions,
        total: reading.total,
    });
    let mut folded = Vec::with_capacity(heads.len());
    for ((head, survey), fallback) in heads.iter().zip(listed.surveys).zip(&fallbacks) {
        let mut one = OneRef {
            reading: &reading,
            head,
            dated: dated(&head.scan),
            schemas: &mut schemas,
            meter: &mut meter,
            taken: &mut taken,
        };
        folded.push(one.fold(survey, fallback.clone()).await?);
    }
    // 6 to 8: chains, orphans, deferred checks.
    let mut contracts = known_contracts(&folded);
    let mut all = Vec::new();
    for (head, folded) in heads.iter().zip(&mut folded) {
        all.extend(chains::of_ref(head, std::mem::take(&mut folded.records))?);
    }
    let adopters: Vec<Adopter> = heads
        .iter()
        .zip(&folded)
        .zip(&fallbacks)
        .map(|((head, folded), fallback)| Adopter {
            head,
            folded,
            fallback: fallback.clone(),
        })
        .collect();
    all.extend(orphans::chains(
        &graph.orphans,
        &adopters,
        &graph.generations,
        limits,
        &mut meter,
        &mut contracts,
    )?);
    let records = chains::by_id(&all);
    for (head, folded) in heads.iter().zip(&folded) {
        check_deferred(head, &folded.deferred, |id| {
            records.get(id).map(|r| r.as_ref())
        })?;
    }
    // 9: what every live ref becomes.
    let mut converted = Vec::new();
    for (head, folded) in heads.iter().zip(&folded) {
        if head.kind == RefKind::Retired {
            continue;
        }
        let find = |id: &str| records.get(id).map(|r| Arc::clone(r));
        converted.push(CensusHead {
            native: head.input.native.clone(),
            pinned: head.input.pinned,
            record: live_head::record(head, &folded.head_tables, find)?,
            tables: folded.head_tables.clone(),
        });
    }
    // 10: counts.
    let contracts = chains::named(&all, contracts);
    let counts = Counts {
        schema_contents: contracts.len() as u64,
        absent_parents: graph.absent.len() as u64,
        ..count(&heads, &folded, &all, taken)
    };
    Ok(Census {
        attempt: input.attempt,
        source_stamp: main_stamp(&heads)?,
        chains: all,
        absent_parents: graph.absent,
        contracts,
        heads: converted,
        counts,
    })
}

/// The first form of the snapshot bound.
fn estimate(heads: &[Head], graph: &CommitGraph) -> u64 {
    let mut adopted: HashMap<usize, u64> = HashMap::new();
    for orphan in graph.orphans.values().flatten() {
        *adopted.entry(orphan.adopter).or_default() += 1;
    }
    snapshot::estimate(heads.iter().enumerate().map(|(at, head)| RefEstimate {
        records: head.own().len() as u64 + adopted.get(&at).copied().unwrap_or_default(),
        table_rows: head.scan.table_rows,
    }))
}

/// The contract of a ref's own head, else of main's.
fn fallbacks(heads: &[Head]) -> Vec<Option<Arc<SourceContract>>> {
    let main = heads.first().and_then(|head| head.scan.contract.clone());
    heads
        .iter()
        .map(|head| head.scan.contract.clone().or_else(|| main.clone()))
        .collect()
}

fn known_contracts(folded: &[Folded]) -> BTreeMap<String, Arc<SourceContract>> {
    folded
        .iter()
        .flat_map(|f| &f.contracts)
        .map(|(digest, contract)| (digest.clone(), contract.clone()))
        .collect()
}

fn main_stamp(heads: &[Head]) -> Result<u32> {
    heads
        .iter()
        .find(|head| head.kind == RefKind::Main)
        .map(|head| head.stamp)
        .ok_or_else(|| ::graph::Error::internal("the census read no main"))
}

fn count(heads: &[Head], folded: &[Folded], all: &[Chain], taken: Taken) -> Counts {
    let live = heads.iter().filter(|h| h.kind != RefKind::Retired).count();
    let orphaned = all.iter().filter(|c| c.kind == ChainKind::Orphaned).count();
    Counts {
        live_refs: live as u64,
        retired_refs: (heads.len() - live) as u64,
        orphan_writers: orphaned as u64,
        legacy_commits: all.iter().map(|c| c.records.len() as u64).sum(),
        bookkeeping_versions: folded.iter().map(|f| f.bookkeeping).sum(),
        pre_genesis_versions: folded.iter().map(|f| f.pre_genesis).sum(),
        census_reads: heads.len() as u64 + taken.versions,
        census_cells: taken.cells,
        legacy_bytes: all
            .iter()
            .flat_map(|c| &c.records)
            .fold(0, |sum: u64, record| {
                sum.saturating_add(record_bytes(record))
            }),
        ..Counts::default()
    }
}
