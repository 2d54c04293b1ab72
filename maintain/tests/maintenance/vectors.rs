//! Vector indexes that another tool made keep their parameters, or are kept as they are.

use std::sync::Arc;

use graph::model::measure::HISTORY_RELEASE_BYTES;
use graph::view::At;
use lance::dataset::transaction::{Operation, TransactionBuilder};
use lance::index::DatasetIndexExt as _;
use lance::index::vector::VectorIndexParams;
use lance_index::IndexType;
use lance_index::pb::VectorMetricType;
use lance_index::vector::hnsw::builder::HnswBuildParams;
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::pq::PQBuildParams;
use maintain::indexes::held::{HeldKind, VectorShape, VectorStorage, held};
use maintain::optimize::{OptimizeOptions, optimize};
use write::capture::Capture;
use write::publish::{Changes, ExpectedTable, Lineage, Request, Update, publish};
use write::table::{commit_detached, next_pin};

use crate::bed::*;

const KEY: &str = "node:V";

fn vectors(from: usize, to: usize) -> String {
    (from..to)
        .map(|n| {
            format!(
                "{{\"type\":\"V\",\"data\":{{\"at\":[{n},1,{},0.5]}}}}\n",
                n * 7 % 13
            )
        })
        .collect()
}

/// A graph of `rows` vectors with an index of `params`, and one more fragment that it does not cover.
async fn lagging(rows: usize, params: VectorIndexParams) -> Bed {
    let bed = Bed::empty("node V { at: Vector(4)? @index }\n").await;
    bed.append(&vectors(0, rows)).await;
    let root = bed.root().await;
    let capture = Capture::of(&root, None).await.unwrap();
    let (row, pin) = capture.table(KEY).unwrap();
    let mut base = Arc::unwrap_or_clone(bed.image(KEY).await);
    let index = base
        .create_index_builder(&["at"], IndexType::Vector, &params)
        .execute_uncommitted()
        .await
        .unwrap();
    let operation = Operation::CreateIndex {
        new_indices: vec![index],
        removed_indices: Vec::new(),
    };
    let link = TransactionBuilder::new(base.manifest().version, operation).build();
    let staged = commit_detached(&root, Arc::new(base), link, &capture.witness().unwrap())
        .await
        .unwrap();
    let request = Request {
        changes: Changes {
            updates: vec![Update::Pin {
                identity: row.identity,
                table_key: KEY.into(),
                pin: Box::new(next_pin(&root, pin, &staged, 1)),
            }],
            ..Changes::default()
        },
        expected: vec![ExpectedTable::of(row)],
        lineage: Lineage {
            nonce: ulid::Ulid::new(),
            branch: None,
            actor: None,
            created_at: 1,
            merged: None,
            budget: HISTORY_RELEASE_BYTES,
        },
        precondition: capture.precondition(),
    };
    publish(&root, &request).await.unwrap();
    bed.append(&vectors(rows, rows + 10)).await;
    bed
}

async fn kind(bed: &Bed) -> HeldKind {
    let all = held(&*bed.image(KEY).await).await.unwrap();
    all.into_iter().find(|h| h.name == "at_idx").unwrap().kind
}

fn cosine<T: From<VectorMetricType>>() -> T {
    VectorMetricType::Cosine.into()
}

#[test]
fn a_quantized_index_is_rebuilt_with_its_own_parameters() {
    run(|| async {
        let pq = PQBuildParams {
            num_sub_vectors: 2,
            ..PQBuildParams::default()
        };
        let params = VectorIndexParams::with_ivf_pq_params(cosine(), IvfBuildParams::new(1), pq);
        let bed = lagging(300, params).await;
        let expected = HeldKind::Vector(Some(VectorShape {
            metric: VectorMetricType::Cosine as i32,
            storage: VectorStorage::Pq(8, 2),
        }));
        assert_eq!(kind(&bed).await, expected);
        assert_eq!(bed.shape().await[KEY].indexes["at_idx"], 1);
        let export = bed.export(&At::Head).await;
        let report = optimize(&bed.root().await, &OptimizeOptions::default())
            .await
            .unwrap();
        assert!(report.datasets[0].pending_indexes.is_empty(), "{report:#?}");
        assert_eq!(kind(&bed).await, expected);
        assert_eq!(bed.shape().await[KEY].indexes["at_idx"], 0);
        assert_eq!(bed.export(&At::Head).await, export);
        bed.is_sound().await;
    });
}

#[test]
fn a_graph_index_is_kept_and_reported() {
    run(|| async {
        let params = VectorIndexParams::ivf_hnsw(
            cosine(),
            IvfBuildParams::new(1),
            HnswBuildParams::default(),
        );
        let bed = lagging(40, params).await;
        assert_eq!(kind(&bed).await, HeldKind::Vector(None));
        let report = optimize(&bed.root().await, &OptimizeOptions::default())
            .await
            .unwrap();
        let pending = &report.datasets[0].pending_indexes;
        assert_eq!(pending.len(), 1, "{report:#?}");
        assert!(
            pending[0]
                .reason
                .contains("at_idx on column at does not cover 1 fragments and is kept")
        );
        assert_eq!(bed.shape().await[KEY].indexes["at_idx"], 1);
        let again = optimize(&bed.root().await, &OptimizeOptions::default())
            .await
            .unwrap();
        assert_eq!(again.graph_commit_id, None);
    });
}
