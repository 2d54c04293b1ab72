//! Building the files of an index without committing it.
//!
//! Files go below `_indices/{uuid}`; nothing names them before the CreateIndex link that holds their metadata.

use std::sync::Arc;

use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;
use lance::dataset::transaction::{Operation, Transaction, TransactionBuilder};
use lance::index::vector::VectorIndexParams;
use lance::index::{DatasetIndexExt as _, IndexParams};
use lance_index::IndexType;
use lance_index::pb::VectorMetricType;
use lance_index::scalar::{InvertedIndexParams, ScalarIndexParams};
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::pq::PQBuildParams;
use lance_index::vector::sq::builder::SQBuildParams;
use lance_table::format::IndexMetadata;

use super::declared::IndexKind;
use super::held::{HeldKind, VectorShape, VectorStorage};

/// Vectors in one partition of a vector index, at least.
const PARTITION_VECTORS: u64 = 4_096;
/// Most partitions; more make the training slow.
const MAX_PARTITIONS: u64 = 1_024;

/// What to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Top-level column.
    pub column: String,
    /// What it becomes.
    pub recipe: Recipe,
    /// Name of the index it replaces; `None` for a new one, which is called `{column}_idx`.
    pub replaces: Option<String>,
}

/// The parameters of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// A scalar index without parameters.
    Scalar(IndexType),
    /// Full text with the default English analyzer.
    FullText,
    /// A vector index over so many vectors.
    Vector(VectorShape, u64),
}

impl Recipe {
    /// For a new index. The reference leaves type and parameters of a vector index open: IVF over whole vectors
    /// with L2 finds what a scan finds, and trains on any number of them.
    pub fn of_new(kind: IndexKind, vectors: u64) -> Self {
        match kind {
            IndexKind::Btree => Self::Scalar(IndexType::BTree),
            IndexKind::FullText => Self::FullText,
            IndexKind::Vector => Self::Vector(
                VectorShape {
                    metric: VectorMetricType::L2 as i32,
                    storage: VectorStorage::Flat,
                },
                vectors,
            ),
        }
    }

    /// For an index that is there; `None` for one that is never rebuilt here.
    pub fn of_held(kind: &HeldKind, vectors: u64) -> Option<Self> {
        Some(match kind {
            HeldKind::Btree => Self::Scalar(IndexType::BTree),
            HeldKind::Bitmap => Self::Scalar(IndexType::Bitmap),
            HeldKind::LabelList => Self::Scalar(IndexType::LabelList),
            HeldKind::Vector(Some(shape)) => Self::Vector(*shape, vectors),
            HeldKind::FullText | HeldKind::Vector(None) | HeldKind::Other => return None,
        })
    }

    fn index_type(self) -> IndexType {
        match self {
            Self::Scalar(of) => of,
            Self::FullText => IndexType::Inverted,
            Self::Vector(..) => IndexType::Vector,
        }
    }

    fn params(self) -> Result<Box<dyn IndexParams>> {
        Ok(match self {
            Self::Scalar(_) => Box::new(ScalarIndexParams::default()),
            Self::FullText => Box::new(InvertedIndexParams::default()),
            Self::Vector(shape, vectors) => Box::new(vector_params(shape, vectors)?),
        })
    }
}

fn vector_params(shape: VectorShape, vectors: u64) -> Result<VectorIndexParams> {
    let metric = VectorMetricType::try_from(shape.metric)
        .map_err(|_| {
            Error::internal(format!(
                "a vector index of the unknown distance {}",
                shape.metric
            ))
        })?
        .into();
    let ivf = IvfBuildParams::new(partitions(vectors));
    let count = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    Ok(match shape.storage {
        VectorStorage::Flat => VectorIndexParams::with_ivf_flat_params(metric, ivf),
        VectorStorage::Pq(bits, sub_vectors) => {
            let pq = PQBuildParams {
                num_bits: count(bits),
                num_sub_vectors: count(sub_vectors),
                ..PQBuildParams::default()
            };
            VectorIndexParams::with_ivf_pq_params(metric, ivf, pq)
        }
        VectorStorage::Sq(bits) => {
            let sq = SQBuildParams {
                num_bits: u16::try_from(bits).unwrap_or(8),
                ..SQBuildParams::default()
            };
            VectorIndexParams::with_ivf_sq_params(metric, ivf, sq)
        }
    })
}

fn partitions(vectors: u64) -> usize {
    usize::try_from((vectors / PARTITION_VECTORS).clamp(1, MAX_PARTITIONS)).unwrap_or(1)
}

/// Write the files of one index over `dataset` and hand back its metadata.
pub async fn build(dataset: &Arc<Dataset>, what: &Build) -> Result<IndexMetadata> {
    let object = format!("the index of column {} of {}", what.column, dataset.uri());
    let context = format!("cannot build {object}");
    let (mut base, what) = (dataset.as_ref().clone(), what.clone());
    guarded(&object, async move {
        let params = what.recipe.params()?;
        let columns = [what.column.as_str()];
        let mut builder =
            base.create_index_builder(&columns, what.recipe.index_type(), params.as_ref());
        if let Some(name) = what.replaces {
            builder = builder.name(name).replace(true);
        }
        builder
            .execute_uncommitted()
            .await
            .map_err(|e| Error::lance(context, e))
    })
    .await
}

/// The link that gives `base` the indexes `new` in place of `removed`.
pub fn link(base: &Dataset, new: Vec<IndexMetadata>, removed: Vec<IndexMetadata>) -> Transaction {
    let operation = Operation::CreateIndex {
        new_indices: new,
        removed_indices: removed,
    };
    TransactionBuilder::new(base.manifest().version, operation).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_grow_with_the_vectors_within_bounds() {
        for (vectors, expected) in [(0, 1), (1, 1), (8_192, 2), (u64::MAX, 1_024)] {
            assert_eq!(partitions(vectors), expected);
        }
    }

    #[test]
    fn full_text_is_never_folded() {
        assert_eq!(Recipe::of_held(&HeldKind::FullText, 9), None);
        assert_eq!(Recipe::of_held(&HeldKind::Vector(None), 9), None);
        assert_eq!(Recipe::of_held(&HeldKind::Other, 9), None);
    }
}
