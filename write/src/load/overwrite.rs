//! Overwrite: a stream of records into one writer a table, checked as a whole before the first commit.
//!
//! Held in memory: a few batches a table, [`super::facts`] for each row, and as text the endpoints that no row of the
//! input has shown yet. Staged files of an input that is refused are deleted again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::sync::Arc;

use graph::model::TableKind;
use graph::schema::vintage::{SystemRole, Vintage};
use graph::store::Root;
use lance::Dataset;
use records::{RecordReader, Types};
use tokio::runtime::Handle;

use super::commit::{StagedTable, commit, discard_all};
use super::existing::{self, texts};
use super::facts::{Facts, Fingerprint};
use super::keyed::{blocking, nothing, stored_nodes};
use super::references::{Needed, Use, bounded, check_cardinality};
use super::rows::{REPORT_ROWS, add_alias, refuse_external, respell};
use super::sink::{Closed, Sink};
use super::{Input, LoadOptions, Loaded, LoadedTable};
use crate::capture::Capture;
use crate::error::{Result, WriteError};

type Aliases = HashMap<(usize, String), String>;

pub(super) async fn load(root: &Root, input: &Input, options: &LoadOptions) -> Result<Loaded> {
    let capture = Capture::of(root, options.branch.as_deref()).await?;
    let types = Arc::new(Types::of(&capture.ir)?);
    // Opened before the input is read, since its reader cannot wait for storage.
    let mut bases = Vec::with_capacity(types.tables().len());
    for table in types.tables() {
        bases.push(existing::open(root, &capture, table).await?);
    }
    let mut reading = Reading {
        types: types.clone(),
        bases: bases.clone(),
        handle: Handle::current(),
        prints: Fingerprint::default(),
        sinks: types.tables().iter().map(|_| None).collect(),
        needed: Needed::default(),
    };
    let (source, chosen) = (input.clone(), options.clone());
    let (read, result) = blocking(move || {
        let result = reading.read(&source, &chosen);
        Ok((reading.close(), result))
    })
    .await?;
    let (staged, facts, failed) = join(read.tables, &types, &bases).await;
    let checked = match failed.map_or(result, Err) {
        Ok(()) => check(root, &capture, &types, &facts, read.needed, &read.prints).await,
        Err(e) => Err(e),
    };
    if let Err(e) = checked {
        discard_all(root, &capture, &staged).await;
        return Err(e);
    }
    let mut report = nothing(&capture, options.mode);
    if staged.is_empty() {
        return Ok(report);
    }
    let published = commit(root, &capture, staged, options).await?;
    report.graph_commit_id = Some(published.state.head.graph_commit_id.clone());
    report.manifest_version = published.version.version;
    for (index, facts) in &facts {
        let table_key = types.tables()[*index].table_key.clone();
        let (_, before) = capture.table(&table_key)?;
        report.tables.push(LoadedTable {
            table_key,
            rows_loaded: facts.rows,
            rows_replaced: before.row_count,
            row_count: facts.rows,
        });
    }
    Ok(report)
}

/// The input on its way to the writers; lives on a thread that may block.
struct Reading {
    types: Arc<Types>,
    bases: Vec<Arc<Dataset>>,
    handle: Handle,
    prints: Fingerprint,
    sinks: Vec<Option<Sink>>,
    needed: Needed,
}

/// The input once it was read, whether or not to its end.
struct Read {
    tables: Vec<(usize, Closed)>,
    needed: Needed,
    prints: Fingerprint,
}

impl Reading {
    fn read(&mut self, input: &Input, options: &LoadOptions) -> Result<()> {
        let types = self.types.clone();
        let (spool, aliases) = aliases(input, &types)?;
        let input = spool
            .as_ref()
            .map_or(input.clone(), |s| Input::File(s.path().to_path_buf()));
        let mut count = 0;
        for record in RecordReader::new(input.open()?, &types) {
            let mut record = record?;
            count += 1;
            if count % REPORT_ROWS == 0 {
                (options.on_rows)(count);
            }
            refuse_external(&record, &types, options.external_blobs)?;
            respell(&mut record, &types, &aliases)?;
            let index = record.table;
            let table = &types.tables()[index];
            if let (Some((from, to)), Some((src, dst))) = (table.endpoints, &record.endpoints) {
                for (node, id, role) in [(from, src, SystemRole::Src), (to, dst, SystemRole::Dst)] {
                    let shown = self.sinks[node]
                        .as_ref()
                        .is_some_and(|s| s.shows(id, &self.prints));
                    if !shown {
                        let line = record.line;
                        self.needed.add(
                            node,
                            id,
                            Use {
                                line,
                                edge: index,
                                role,
                            },
                        );
                    }
                }
            }
            let sink = self.sinks[index]
                .get_or_insert_with(|| Sink::open(table, self.bases[index].clone(), &self.handle));
            sink.push(&types, record, &self.prints)?;
        }
        for (index, sink) in self.sinks.iter_mut().enumerate() {
            if let Some(sink) = sink {
                sink.flush(&types, &types.tables()[index], &self.prints)?;
            }
        }
        (options.on_rows)(count);
        Ok(())
    }

    fn close(self) -> Read {
        Read {
            tables: self
                .sinks
                .into_iter()
                .enumerate()
                .filter_map(|(index, sink)| Some((index, sink?.close())))
                .collect(),
            needed: self.needed,
            prints: self.prints,
        }
    }
}

/// Other spellings of node keys, which edges before those nodes may use. Only graphs of the legacy vintage have them;
/// there the input is read twice, and standard input goes to a temporary file first.
fn aliases(input: &Input, types: &Types) -> Result<(Option<tempfile::NamedTempFile>, Aliases)> {
    let keyed = |t: &records::TableType| t.kind == TableKind::Node && t.key.is_some();
    if types.vintage() == Vintage::Current || !types.tables().iter().any(keyed) {
        return Ok((None, Aliases::new()));
    }
    let spool = match input {
        Input::File(_) => None,
        Input::Stdin => Some(spool(input).map_err(|e| {
            WriteError::invalid(format!(
                "cannot keep standard input in a temporary file: {e}"
            ))
        })?),
    };
    let file = spool
        .as_ref()
        .map_or(input.clone(), |s| Input::File(s.path().to_path_buf()));
    let mut aliases = Aliases::new();
    for record in RecordReader::new(file.open()?, types) {
        let record = record?;
        if let Some(alias) = &record.alias {
            add_alias(&mut aliases, &record, alias, types)?;
        }
    }
    Ok((spool, aliases))
}

fn spool(input: &Input) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    let mut source = input.open().map_err(std::io::Error::other)?;
    std::io::copy(&mut source, &mut file)?;
    file.flush()?;
    Ok(file)
}

/// Wait for every writer. The first failure is handed back beside what was staged.
async fn join(
    tables: Vec<(usize, Closed)>,
    types: &Types,
    bases: &[Arc<Dataset>],
) -> (Vec<StagedTable>, BTreeMap<usize, Facts>, Option<WriteError>) {
    let (mut staged, mut facts, mut failed) = (Vec::new(), BTreeMap::new(), None);
    for (index, closed) in tables {
        let written = closed.writer.await.unwrap_or_else(|e| {
            Err(graph::Error::internal(format!(
                "a table writer panicked: {e}"
            )))
        });
        match written {
            Ok(transaction) => staged.push(StagedTable {
                table_key: types.tables()[index].table_key.clone(),
                base: bases[index].clone(),
                transaction,
            }),
            Err(e) => failed = failed.or(Some(e.into())),
        }
        facts.insert(index, closed.facts);
    }
    (staged, facts, failed)
}

/// What can be judged only once the whole input went by.
async fn check(
    root: &Root,
    capture: &Capture,
    types: &Types,
    facts: &BTreeMap<usize, Facts>,
    mut needed: Needed,
    prints: &Fingerprint,
) -> Result<()> {
    needed.forget(|node, id| facts.get(&node).is_some_and(|f| f.has(prints.of(id))));
    // A type of the input loses every row that the input does not show.
    let stored = stored_nodes(root, capture, types, &needed, |node| {
        facts.contains_key(&node)
    })
    .await?;
    needed.forget(|node, id| stored.get(&node).is_some_and(|ids| ids.contains(id)));
    needed.require_none(types)?;
    for (index, facts) in facts {
        let table = &types.tables()[*index];
        if let Some(allowed) = bounded(table.cardinality) {
            let counts = facts.sources.iter().map(|(s, n)| (s.as_str(), *n));
            check_cardinality(&table.table_key, allowed, counts)?;
        }
    }
    check_staying_edges(root, capture, types, facts, prints).await
}

/// Edges that the input does not replace must still find their nodes.
async fn check_staying_edges(
    root: &Root,
    capture: &Capture,
    types: &Types,
    facts: &BTreeMap<usize, Facts>,
    prints: &Fingerprint,
) -> Result<()> {
    for (index, table) in types.tables().iter().enumerate() {
        let Some((from, to)) = table.endpoints.filter(|_| !facts.contains_key(&index)) else {
            continue;
        };
        let replaced: Vec<(SystemRole, usize, &Facts)> =
            [(SystemRole::Src, from), (SystemRole::Dst, to)]
                .into_iter()
                .filter_map(|(role, node)| Some((role, node, facts.get(&node)?)))
                .collect();
        if replaced.is_empty() {
            continue;
        }
        let columns: HashSet<String> = replaced
            .iter()
            .map(|(role, ..)| types.vintage().column(*role).to_string())
            .collect();
        let dataset = existing::open(root, capture, table).await?;
        existing::scan(dataset, columns.into_iter().collect(), None, |batch| {
            for (role, node, facts) in &replaced {
                let ends = texts(batch, types.vintage().column(*role))?;
                if let Some(lost) = ends.iter().flatten().find(|id| !facts.has(prints.of(id))) {
                    return Err(WriteError::invalid(format!(
                        "{} is not in the input and keeps an edge to {} \"{lost}\", which the input drops. Nothing was \
                         written; load the edges too, or keep that node in the input",
                        table.table_key,
                        types.tables()[*node].table_key,
                    )));
                }
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}
