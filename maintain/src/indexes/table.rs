//! One table version with everything a decision about its indexes needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;

use super::declared::DeclaredIndex;
use super::held::{HeldIndex, held};
use super::needs::{Facts, Needs, needs, vector_columns};

/// What was read of a version.
#[derive(Debug, Clone)]
pub struct TableIndexes {
    /// Its indexes.
    pub held: Vec<HeldIndex>,
    /// Its fragments.
    pub fragments: BTreeSet<u32>,
    /// Its live rows.
    pub rows: u64,
    /// Vectors that are not null, of the columns that matter.
    pub vectors: BTreeMap<String, u64>,
}

impl TableIndexes {
    /// Read the indexes of `dataset`; vectors are counted only where an index of them is missing or lags.
    pub async fn read(dataset: &Arc<Dataset>, declared: &[DeclaredIndex]) -> Result<Self> {
        let held = held(dataset).await?;
        let fragments = fragment_ids(dataset)?;
        let rows = count(dataset, None).await?;
        let mut vectors = BTreeMap::new();
        for column in vector_columns(declared, &held, &fragments) {
            let usable = count(dataset, Some(format!("`{column}` IS NOT NULL"))).await?;
            vectors.insert(column.to_string(), usable);
        }
        Ok(Self {
            held,
            fragments,
            rows,
            vectors,
        })
    }

    /// What they need.
    pub fn needs(&self, declared: &[DeclaredIndex]) -> Needs {
        needs(&Facts {
            declared,
            held: &self.held,
            fragments: &self.fragments,
            rows: self.rows,
            vectors: &self.vectors,
        })
    }

    /// Vectors of a column that were counted.
    pub fn vectors(&self, column: &str) -> u64 {
        self.vectors.get(column).copied().unwrap_or_default()
    }
}

fn fragment_ids(dataset: &Dataset) -> Result<BTreeSet<u32>> {
    let ids = dataset.manifest().fragments.iter().map(|f| f.id);
    ids.map(|id| {
        u32::try_from(id)
            .map_err(|_| Error::limit("the number of a fragment", u64::from(u32::MAX), id))
    })
    .collect()
}

async fn count(dataset: &Arc<Dataset>, filter: Option<String>) -> Result<u64> {
    let object = dataset.uri().to_string();
    let (dataset, context) = (
        dataset.clone(),
        format!("cannot count the rows of {object}"),
    );
    guarded(&object, async move {
        let rows = dataset
            .count_rows(filter)
            .await
            .map_err(|e| Error::lance(context, e))?;
        Ok(rows as u64)
    })
    .await
}
