//! The indexes a table version has.

use std::collections::BTreeSet;

use graph::store::guarded;
use graph::{Error, Result};
use lance::Dataset;
use lance::index::DatasetIndexExt as _;
use lance_index::pb::VectorIndexDetails;
use lance_index::pb::vector_index_details::Compression;
use lance_index::registry::plugin_name_from_details_url;
use lance_table::format::IndexMetadata;
use lance_table::system_index::is_system_index;

use super::declared::IndexKind;

/// What an index is, as far as it can be rebuilt from that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldKind {
    /// B-tree.
    Btree,
    /// Bitmap; made by other tools.
    Bitmap,
    /// Labels of a list; made by other tools.
    LabelList,
    /// Full text.
    FullText,
    /// Vector; `None` when its parameters cannot be told or not be given again.
    Vector(Option<VectorShape>),
    /// Anything else, kept as it is.
    Other,
}

impl HeldKind {
    /// The kind a schema would declare it as.
    pub fn declared(&self) -> Option<IndexKind> {
        match self {
            Self::Btree => Some(IndexKind::Btree),
            Self::FullText => Some(IndexKind::FullText),
            Self::Vector(_) => Some(IndexKind::Vector),
            Self::Bitmap | Self::LabelList | Self::Other => None,
        }
    }
}

/// The parameters of a vector index, as its details record them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorShape {
    /// Lance's number of the distance.
    pub metric: i32,
    /// How vectors are stored.
    pub storage: VectorStorage,
}

/// How an index stores its vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorStorage {
    /// As they are.
    Flat,
    /// Product quantization: bits a code, sub-vectors a vector.
    Pq(u32, u32),
    /// Scalar quantization: bits a value.
    Sq(u32),
}

impl VectorStorage {
    /// Fewest vectors that it trains on.
    pub fn least_vectors(self) -> u64 {
        match self {
            Self::Flat | Self::Sq(_) => 1,
            Self::Pq(bits, _) => 1_u64.checked_shl(bits).unwrap_or(u64::MAX),
        }
    }
}

/// One logical index: every segment of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldIndex {
    /// Its name.
    pub name: String,
    /// Its column; `None` for a nested or combined one.
    pub column: Option<String>,
    /// What it is.
    pub kind: HeldKind,
    /// Fragments it covers; `None` when a segment does not say.
    pub covered: Option<BTreeSet<u32>>,
    /// Its segments.
    pub segments: Vec<IndexMetadata>,
}

impl HeldIndex {
    /// Fragments of `present` that it does not cover; all of them when it does not say.
    pub fn lag(&self, present: &BTreeSet<u32>) -> usize {
        match &self.covered {
            None => present.len(),
            Some(covered) => present.difference(covered).count(),
        }
    }
}

/// The indexes of `dataset`, by name. Lance's own bookkeeping is left out.
pub async fn held(dataset: &Dataset) -> Result<Vec<HeldIndex>> {
    let object = dataset.uri().to_string();
    let (read, context) = (
        dataset.clone(),
        format!("cannot read the indexes of {object}"),
    );
    let segments = guarded(&object, async move {
        read.load_indices()
            .await
            .map_err(|e| Error::lance(context, e))
    })
    .await?;
    let mut all: Vec<HeldIndex> = Vec::new();
    for segment in segments.iter().filter(|s| !is_system_index(s)) {
        let covered: Option<BTreeSet<u32>> = segment
            .fragment_bitmap
            .as_ref()
            .map(|bitmap| bitmap.iter().collect());
        match all.iter_mut().find(|i| i.name == segment.name) {
            Some(index) => {
                index.covered = match (index.covered.take(), covered) {
                    (Some(a), Some(b)) => Some(a.union(&b).copied().collect()),
                    _ => None,
                };
                index.segments.push(segment.clone());
            }
            None => all.push(HeldIndex {
                name: segment.name.clone(),
                column: column(dataset, segment),
                kind: kind(segment),
                covered,
                segments: vec![segment.clone()],
            }),
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The top-level column of a segment over one field.
fn column(dataset: &Dataset, segment: &IndexMetadata) -> Option<String> {
    let [field] = segment.fields.as_slice() else {
        return None;
    };
    let top = dataset.schema().fields.iter().find(|f| f.id == *field)?;
    Some(top.name.clone())
}

fn kind(segment: &IndexMetadata) -> HeldKind {
    let Some(details) = &segment.index_details else {
        return HeldKind::Other;
    };
    if !segment.covering_fields.is_empty() {
        return HeldKind::Other;
    }
    match plugin_name_from_details_url(&details.type_url).as_str() {
        "btree" => HeldKind::Btree,
        "bitmap" => HeldKind::Bitmap,
        "labellist" => HeldKind::LabelList,
        "inverted" => HeldKind::FullText,
        // Empty details are those of releases that did not record them.
        "vector" if details.value.is_empty() => HeldKind::Vector(None),
        "vector" => HeldKind::Vector(
            details
                .to_msg::<VectorIndexDetails>()
                .ok()
                .and_then(|d| shape(&d)),
        ),
        _ => HeldKind::Other,
    }
}

fn shape(details: &VectorIndexDetails) -> Option<VectorShape> {
    if details.hnsw_index_config.is_some() {
        return None;
    }
    let storage = match &details.compression {
        None | Some(Compression::Flat(_)) => VectorStorage::Flat,
        Some(Compression::Pq(pq)) => VectorStorage::Pq(pq.num_bits, pq.num_sub_vectors),
        Some(Compression::Sq(sq)) => VectorStorage::Sq(sq.num_bits),
        Some(_) => return None,
    };
    Some(VectorShape {
        metric: details.metric_type,
        storage,
    })
}
