//! Step 5: going through the own versions of each ref, oldest first (`docs/format/legacy-manifest.md` 7.2,
//! 7.8). A version's rows are read, or follow from a later version's and the manifests in between.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use ::graph::store::{ManifestVersion, Root};
use futures::future::join_all;
use legacy::proof::Footprint;
use legacy::{
    AdmittedStamp, LegacySource, ReadVersion, Registration, Role, SchemaReader, SourceContract,
    VersionSchema, registered,
};

use crate::cells::cells;
use crate::finding::Stop;
use crate::fold::{Folded, RefFold};
use crate::heads::Head;
use crate::input::{Limits, Progress};
use crate::snapshot::Meter;
use crate::survey::{Run, Survey, not_admitted};
use crate::versions::{READS_AT_ONCE, check_cells};

/// What the folds of all refs share.
pub(crate) struct Reading<'a> {
    pub root: &'a Root,
    pub source: &'a LegacySource,
    pub limits: &'a Limits,
    pub generations: &'a HashMap<&'a str, u64>,
    pub progress: &'a (dyn Fn(Progress) + Send + Sync),
    /// Versions of all refs.
    pub total: u64,
}

/// How far the census is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    /// Versions folded.
    pub versions: u64,
    /// Rows that the versions read so far hold.
    pub cells: u64,
}

/// One ref being folded.
pub(crate) struct OneRef<'a> {
    pub reading: &'a Reading<'a>,
    pub head: &'a Head,
    /// Versions of everything dated in the head.
    pub dated: Vec<u64>,
    pub schemas: &'a mut SchemaReader,
    pub meter: &'a mut Meter,
    pub taken: &'a mut Taken,
}

/// `table` rows with their row ids.
type TableRows = Vec<(u64, Registration)>;

impl OneRef<'_> {
    /// Fold every version of the survey.
    pub(crate) async fn fold(
        &mut self,
        survey: Survey,
        fallback: Option<Arc<SourceContract>>,
    ) -> Result<Folded, Stop> {
        let (generations, limits) = (self.reading.generations, self.reading.limits);
        let mut fold = RefFold::new(self.head, fallback, generations, limits);
        let pinned = self.head.input.pinned;
        if survey.versions.is_empty() && survey.stopped.is_none() {
            let schema = self.fresh().await?;
            fold.fresh_fork(schema, self.meter)?;
            self.step();
        }
        for run in survey.runs(pinned) {
            match run {
                Run::Read(range) => self.read_all(&mut fold, &survey.versions[range]).await?,
                Run::Proved(range) => self.proved(&mut fold, &survey.versions[range]).await?,
            }
        }
        match survey.stopped {
            Some(stop) => Err(stop),
            None => Ok(fold.finish()),
        }
    }

    /// The schema of a ref without own version: its head's.
    async fn fresh(&mut self) -> Result<VersionSchema, Stop> {
        let scan = &self.head.scan;
        if self.reading.source.has_provable_versions() {
            return Ok(VersionSchema {
                registrations: scan.registrations.values().cloned().collect(),
                contract: None,
            });
        }
        Ok(self.read_one(self.head.input.pinned).await?.schema)
    }

    /// Read and fold versions, [`READS_AT_ONCE`] at a time.
    async fn read_all(
        &mut self,
        fold: &mut RefFold<'_>,
        versions: &[Footprint],
    ) -> Result<(), Stop> {
        for group in versions.chunks(READS_AT_ONCE) {
            let numbers: Vec<u64> = group.iter().map(|f| f.version).collect();
            self.count_cells(&numbers)?;
            let (admitted, refused) = self.open(&numbers).await;
            let (found, failed) = self.schemas.read(&admitted).await;
            for (version, read) in numbers.iter().zip(found) {
                fold.version(*version, read.schema, self.meter)?;
                self.step();
            }
            // What stopped the group comes after the versions before it, as if they were read singly.
            match (failed, refused) {
                (Some(error), _) => return Err(error.into()),
                (None, Some(stop)) => return Err(stop),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Fold a run whose versions follow from its last one.
    async fn proved(&mut self, fold: &mut RefFold<'_>, run: &[Footprint]) -> Result<(), Stop> {
        let cells = self.taken.cells;
        let known = match self.anchors(run).await {
            Ok(known) => known,
            Err(Stop::Finding(over_bound)) => return Err(over_bound.into()),
            Err(Stop::Failed(_)) => {
                // Read singly, so that the first version that cannot be read is the one named.
                self.taken.cells = cells;
                return self.read_all(fold, run).await;
            }
        };
        for (rows, range) in known {
            for footprint in &run[range] {
                let end = footprint.span.as_ref().map_or(u64::MAX, |span| span.end);
                let registrations = registered(&rows, end).map_err(|why| {
                    let of = self.head.label();
                    ::graph::Error::internal(format!(
                        "version {} of {of}: {why}",
                        footprint.version
                    ))
                })?;
                let schema = VersionSchema {
                    registrations,
                    contract: None,
                };
                fold.version(footprint.version, schema, self.meter)?;
                self.step();
            }
        }
        Ok(())
    }

    /// The `table` rows that hold for each stretch of a run, oldest first: those of its last version, which is
    /// read unless it is the head. A version that wrote one of them ends the stretch.
    async fn anchors(&mut self, run: &[Footprint]) -> Result<Vec<(TableRows, Range<usize>)>, Stop> {
        let mut known = Vec::new();
        let mut end = run.len();
        while let Some(last) = end.checked_sub(1) {
            let version = run[last].version;
            let rows = if version == self.head.input.pinned {
                self.head.scan.table_row_ids.clone()
            } else {
                self.read_one(version).await?.table_row_ids
            };
            let mut start = last;
            while let Some(below) = start.checked_sub(1) {
                if run[start].unsettles(&rows) {
                    break;
                }
                start = below;
            }
            known.push((rows, start..end));
            end = start;
        }
        known.reverse();
        Ok(known)
    }

    async fn read_one(&mut self, version: u64) -> Result<ReadVersion, Stop> {
        self.count_cells(&[version])?;
        let opened = self.admit(version).await?;
        match self.schemas.read(&[opened]).await {
            (_, Some(error)) => Err(error.into()),
            (mut found, None) => found.pop().ok_or_else(|| {
                let of = self.head.label();
                ::graph::Error::internal(format!("version {version} of {of} was not read")).into()
            }),
        }
    }

    fn count_cells(&mut self, versions: &[u64]) -> Result<(), Stop> {
        let more = cells(self.head.scan.rows, &self.dated, versions);
        self.taken.cells = self.taken.cells.saturating_add(more);
        Ok(check_cells(self.taken.cells, self.reading.limits)?)
    }

    fn step(&mut self) {
        self.taken.versions += 1;
        (self.reading.progress)(Progress::Versions {
            read: self.taken.versions,
            total: self.reading.total,
        });
    }

    /// Open and admit a group, up to the first version that cannot be.
    async fn open(&self, group: &[u64]) -> (Vec<(ManifestVersion, AdmittedStamp)>, Option<Stop>) {
        let mut admitted = Vec::with_capacity(group.len());
        for opened in join_all(group.iter().map(|number| self.admit(*number))).await {
            match opened {
                Ok(version) => admitted.push(version),
                Err(stop) => return (admitted, Some(stop)),
            }
        }
        (admitted, None)
    }

    async fn admit(&self, number: u64) -> Result<(ManifestVersion, AdmittedStamp), Stop> {
        let native = self.head.native();
        let opened = self
            .reading
            .root
            .open_manifest(native, Some(number))
            .await?;
        match self.reading.source.admit(&opened, Role::Retained) {
            Ok(stamp) => Ok((opened, stamp)),
            Err(why) => Err(not_admitted(native, number, &why).into()),
        }
    }
}
