//! The root objects of stamps 8 and 9, whole, damaged and behind a failing store
//! (`docs/format/upgrade-protocol.md` 6.3, behaviours 17 to 22 and 25).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use fixtures::contract::{Contract, Vintage};
use fixtures::damage::objects::{ROOT_OBJECT_DAMAGES, RootObjectDamage};
use fixtures::fault_store::{Effect, Fault, FaultStore, Kind, seen_uri};
use fixtures::fixture_s::contract_s;
use graph::schema::tables;
use graph::store::{Root, RootOptions};
use legacy::root_objects::{self, RootRefusal};
use tempfile::TempDir;

struct Objects {
    _folder: TempDir,
    dir: PathBuf,
    contract: Contract,
}

fn objects(vintage: Vintage) -> Objects {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap();
    let (contract, _) = contract_s(vintage).unwrap();
    contract.write_objects(&dir).unwrap();
    Objects {
        _folder: folder,
        dir,
        contract,
    }
}

async fn open(dir: &Path) -> Root {
    Root::open(dir.to_str().unwrap(), RootOptions::default())
        .await
        .unwrap()
}

#[tokio::test]
async fn whole_objects_give_their_contract_byte_exact() {
    for (stamp, vintage) in [
        (8, Vintage::Bare),
        (9, Vintage::Bare),
        (9, Vintage::Underscored),
    ] {
        let o = objects(vintage);
        let read = root_objects::read(&open(&o.dir).await, stamp)
            .await
            .unwrap()
            .unwrap();
        let contract = read.contract.contract();
        assert_eq!(
            contract.source,
            std::fs::read_to_string(o.dir.join("_schema.pg")).unwrap()
        );
        assert_eq!(
            contract.ir,
            std::fs::read_to_string(o.dir.join("_schema.ir.json")).unwrap()
        );
        assert_eq!(*read.contract.head(), o.contract.head());
        assert_eq!(read.contract.content_hash().len(), 64);
        let declared = tables(&read.ir).unwrap();
        let keys: Vec<_> = declared.iter().map(|t| t.table_key.as_str()).collect();
        assert_eq!(keys, ["node:Person", "edge:Knows"]);
    }
}

#[tokio::test]
async fn stamp_8_refuses_the_later_spellings() {
    let o = objects(Vintage::Underscored);
    let refusal = root_objects::read(&open(&o.dir).await, 8)
        .await
        .unwrap()
        .expect_err("refused");
    assert!(refusal.to_string().contains("__id"), "{refusal}");
}

#[tokio::test]
async fn every_damage_has_its_own_cause() {
    let mut causes = std::collections::BTreeSet::new();
    for damage in ROOT_OBJECT_DAMAGES {
        let o = objects(Vintage::Bare);
        damage.apply(&o.dir, &o.contract).unwrap();
        let refusal = root_objects::read(&open(&o.dir).await, 9)
            .await
            .unwrap()
            .expect_err("refused");
        assert!(
            matches!(refusal, RootRefusal::Unsupported { stamp: 9, .. }),
            "{damage:?}"
        );
        let text = refusal.to_string();
        assert!(
            text.contains("_schema.pg") && text.contains("Restore the whole root"),
            "{text}"
        );
        assert!(causes.insert(text), "{damage:?} has a cause of its own");
    }
}

#[tokio::test]
async fn a_staged_copy_comes_before_every_damage() {
    let o = objects(Vintage::Bare);
    RootObjectDamage::SourceUnparsable
        .apply(&o.dir, &o.contract)
        .unwrap();
    std::fs::write(o.dir.join("__schema_state.json.staging"), "").unwrap();
    let refusal = root_objects::read(&open(&o.dir).await, 9)
        .await
        .unwrap()
        .expect_err("refused");
    assert!(matches!(refusal, RootRefusal::Staged(_)), "{refusal}");
}

#[tokio::test]
async fn a_failing_read_is_an_error_and_leaves_nothing_behind() {
    let o = objects(Vintage::Bare);
    let store = FaultStore::new();
    let options = RootOptions {
        wrapper: Some(store.wrapper()),
    };
    let root = Root::open(&seen_uri(&o.dir), options).await.unwrap();
    for (kind, object) in [
        (Kind::Head, "_schema.ir.json.staging"),
        (Kind::Get, "_schema.pg"),
        (Kind::Get, "_schema.ir.json"),
        (Kind::Get, "__schema_state.json"),
    ] {
        store.reset();
        store.arm(Fault::path(kind, object, 1, Effect::Fail));
        let error = root_objects::read(&root, 9).await.expect_err(object);
        assert!(
            error.is_storage() && error.to_string().contains(object),
            "{error}"
        );
        store.reset();
        assert!(
            root_objects::read(&root, 9).await.unwrap().is_ok(),
            "{object}"
        );
    }
}
