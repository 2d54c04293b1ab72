//! Behaviours 16 to 19, 21, 22 and 24 to 26: sidecars, staged and damaged root schema objects.

use fixtures::contract::{IR_OBJECT, SOURCE_OBJECT, STATE_OBJECT, Vintage};
use fixtures::damage::objects::{ROOT_OBJECT_DAMAGES, RootObjectDamage, sidecar, stage, widened};
use fixtures::damage::{bytes, rows};
use fixtures::fault_store::{Effect, Fault, FaultStore, Kind as Request, seen_uri};
use fixtures::fixture_s::{FixtureS, SpecS};
use graph::history::schema_archive::read_contract_of;
use graph::store::{Root, RootOptions};
use upgrade::{Outcome, UpgradeOptions, upgrade};

use crate::support::*;

const SIDECARS: &str = "the omnigraph build that wrote the recovery sidecars";
const STAGED: &str = "omnigraph 0.11.x";
const OBJECTS: [&str; 3] = [SOURCE_OBJECT, IR_OBJECT, STATE_OBJECT];

#[test]
fn b16_a_sidecar_at_8_9_and_10() {
    run(|| async {
        for (kind, stamp) in [(Kind::S8, 8), (Kind::S9, 9), (Kind::S9, 10)] {
            let case = kind.copy().await;
            if stamp == 10 {
                case.legacy(&[])
                    .await
                    .restamp(None, Some(10))
                    .await
                    .unwrap();
            }
            let (contract, head) = (&case.names.contract, case.names.commit(4));
            for id in ["01M9000000000000000000000Z", "01M9000000000000000000000B"] {
                sidecar(&case.path(), contract, head, id).unwrap();
            }
            std::fs::write(case.path().join("__recovery/note.txt"), "x").unwrap();
            let handler = if stamp == 10 {
                UNROUTED.into()
            } else {
                route(stamp)
            };
            let report = Refused {
                code: "source_recovery_required",
                route: None,
                identity: false,
                says: &[
                    "2 ",
                    "01M9000000000000000000000B, 01M9000000000000000000000Z",
                ],
                recovery: Some((SIDECARS, &handler)),
            }
            .by(&case)
            .await;
            let action = report.recovery.unwrap().action;
            says(
                &action,
                &["stop all writers", "backup", "read-write", "--check"],
            );
        }
    });
}

#[test]
fn b16_a_sidecar_precedes_the_target() {
    run(|| async {
        let case = Kind::S9.copy().await;
        sidecar(
            &case.path(),
            &case.names.contract,
            case.names.commit(4),
            "01M9000000000000000000000Z",
        )
        .unwrap();
        let options = UpgradeOptions {
            target: Some(13),
            ..UpgradeOptions::default()
        };
        let report = case.run(options).await;
        assert_eq!(codes(&report), ["source_recovery_required"]);
    });
}

#[test]
fn b17_each_staged_object_alone() {
    run(|| async {
        for (kind, object) in [Kind::S8, Kind::S9, Kind::S9].into_iter().zip(OBJECTS) {
            let case = kind.copy().await;
            stage(&case.path(), object).unwrap();
            let staged = format!("{object}.staging");
            let report = Refused {
                code: "source_recovery_required",
                route: Some(kind.stamp()),
                identity: false,
                says: &[&staged],
                recovery: Some((STAGED, &route(kind.stamp()))),
            }
            .by(&case)
            .await;
            says(
                &report.recovery.unwrap().action,
                &["stop all writers", "0.11.x", "--check"],
            );
        }
    });
}

/// What each damage is reported as.
fn cause(damage: RootObjectDamage) -> &'static str {
    use RootObjectDamage as D;
    match damage {
        D::SourceAbsent => "_schema.pg is missing",
        D::IrAndStateAbsent => "are missing",
        D::IrAbsent => "incomplete",
        D::SourceUnparsable => "does not compile",
        D::IrNotJson => "_schema.ir.json is not",
        D::StateNotJson => "__schema_state.json is not",
        D::FormatVersion1 => "format_version",
        D::IdentityVersion1 => "schema_identity_version",
        D::InvalidDomain => "schema_identity_domain",
        D::UnknownIrVersion => "ir_version",
        D::OtherIrHash => "schema_ir_hash",
        D::OtherShapeHash => "schema_shape_hash",
        D::OtherDomain => "domain",
        D::SourceExtraProperty => "_schema.pg",
    }
}

#[test]
fn b18_fourteen_damages_of_the_root_objects() {
    run(|| async {
        let mut causes = std::collections::BTreeSet::new();
        for (n, damage) in ROOT_OBJECT_DAMAGES.into_iter().enumerate() {
            let kind = if n % 2 == 0 { Kind::S9 } else { Kind::S8 };
            let case = kind.copy().await;
            damage.apply(&case.path(), &case.names.contract).unwrap();
            let stamp = format!("stamp {}", kind.stamp());
            let report = Refused {
                code: "unsupported_source",
                route: Some(kind.stamp()),
                identity: false,
                says: &[
                    cause(damage),
                    "_schema.pg",
                    "_schema.ir.json",
                    "__schema_state.json",
                    &stamp,
                    "estore the whole root",
                ],
                recovery: None,
            }
            .by(&case)
            .await;
            causes.insert(message(&report).replace("stamp 8", "stamp 9"));
        }
        assert_eq!(causes.len(), ROOT_OBJECT_DAMAGES.len(), "{causes:#?}");
    });
}

#[test]
fn b18_an_unparsable_source_is_the_cause_before_missing_objects() {
    run(|| async {
        let case = Kind::S9.copy().await;
        for damage in [
            RootObjectDamage::IrAndStateAbsent,
            RootObjectDamage::SourceUnparsable,
        ] {
            damage.apply(&case.path(), &case.names.contract).unwrap();
        }
        let report = case.check().await;
        says(message(&report), &["does not compile"]);
    });
}

#[test]
fn b19_a_transient_read_failure_is_no_verdict_on_the_root() {
    run(|| async {
        for object in OBJECTS {
            let case = Kind::S9.copy().await;
            let faults = FaultStore::new();
            let options = RootOptions {
                wrapper: Some(faults.wrapper()),
            };
            let root = Root::open(&seen_uri(&case.path()), options).await.unwrap();
            faults.arm(Fault::path(Request::Get, object, 1, Effect::Fail));
            let check = UpgradeOptions {
                check: true,
                ..UpgradeOptions::default()
            };
            let failed = upgrade(&root, &check).await;
            Refused {
                code: "preflight_failed",
                route: Some(9),
                identity: false,
                says: &[object],
                recovery: None,
            }
            .holds(&failed);
            assert_eq!(faults.injected(), 1);
            let again = upgrade(&root, &check).await;
            assert_eq!(again.outcome, Outcome::CheckPassed, "{again:#?}");
        }
    });
}

/// The state object as 0.11.0 pretty-prints its five members.
fn state_of_0_11(case: &Case) -> String {
    let c = &case.names.contract;
    format!(
        "{{\n  \"format_version\": 2,\n  \"schema_shape_hash\": \"{}\",\n  \"schema_ir_hash\": \"{}\",\n  \
         \"schema_identity_version\": 2,\n  \"schema_identity_domain\": \"{}\"\n}}",
        c.shape_hash(),
        c.ir_hash(),
        c.domain
    )
}

#[test]
fn b21_the_state_object_as_0_11_prints_it() {
    run(|| async {
        for (kind, extra) in [(Kind::S8, false), (Kind::S9, false), (Kind::S9, true)] {
            let case = kind.copy().await;
            let mut text = state_of_0_11(&case);
            if extra {
                text = text.replacen('{', "{\n  \"written_by\": [1, null],", 1);
            }
            let file = case.path().join(STATE_OBJECT);
            bytes::replace(&file, text.as_bytes()).unwrap();
            assert_eq!(case.execute().await.outcome, Outcome::Completed);
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    });
}

#[test]
fn b22_stamp_8_with_underscored_spellings_is_refused() {
    run(|| async {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("s");
        let spec = SpecS {
            vintage: Vintage::Underscored,
            ..SpecS::stamp_8()
        };
        FixtureS::create(&dir, spec).await.unwrap();
        let root = Root::open(dir.to_str().unwrap(), RootOptions::default())
            .await
            .unwrap();
        let before = fixtures::tree::tree_digest(&dir).unwrap();
        for check in [true, false] {
            let report = upgrade(
                &root,
                &UpgradeOptions {
                    check,
                    ..UpgradeOptions::default()
                },
            )
            .await;
            Refused {
                code: "unsupported_source",
                route: Some(8),
                identity: false,
                says: &["__id", "stamp 8"],
                recovery: None,
            }
            .holds(&report);
        }
        assert_eq!(before, fixtures::tree::tree_digest(&dir).unwrap());
    });
}

#[test]
fn b22_the_converted_contract_is_the_roots_own() {
    run(|| async {
        for kind in [Kind::S8, Kind::S9, Kind::S9Bare] {
            let case = kind.copy().await;
            assert_eq!(case.execute().await.outcome, Outcome::Completed);
            let text = |object| std::fs::read_to_string(case.path().join(object)).unwrap();
            for (native, (state, _)) in left(&case).await.heads {
                let texts = state.contract_texts.unwrap();
                assert_eq!(texts.source, text(SOURCE_OBJECT), "{native:?}");
                assert_eq!(texts.ir, text(IR_OBJECT));
                assert_eq!(texts.head, case.names.contract.head());
                assert_eq!(state.contract, texts.head);
                let archive = texts.content_hash().unwrap();
                let stored = read_contract_of(&case.root().await, &texts.head, &archive).await;
                assert_eq!(stored.unwrap(), texts);
            }
        }
    });
}

#[test]
fn b24_a_lock_keeps_the_refusals_of_staged_objects_and_sidecars() {
    run(|| async {
        let case = Kind::S9Lock.copy().await;
        stage(&case.path(), IR_OBJECT).unwrap();
        let mut staged = Refused {
            code: "source_recovery_required",
            route: Some(9),
            identity: false,
            says: &["_schema.ir.json.staging"],
            recovery: Some((STAGED, "history-lance-files-v9-to-v14")),
        };
        staged.by(&case).await;
        sidecar(
            &case.path(),
            &case.names.contract,
            case.names.commit(4),
            "01M9000000000000000000000Z",
        )
        .unwrap();
        staged.route = None;
        staged.says = &["01M9000000000000000000000Z"];
        staged.recovery = Some((SIDECARS, "history-lance-files-v9-to-v14"));
        staged.by(&case).await;
    });
}

#[test]
fn b25_a_root_object_one_byte_over_the_bound() {
    run(|| async {
        for object in OBJECTS {
            let case = Kind::S9.copy().await;
            bytes::grow(&case.path().join(object), (64 << 20) + 1).unwrap();
            for check in [true, false] {
                let report = case
                    .run(UpgradeOptions {
                        check,
                        ..UpgradeOptions::default()
                    })
                    .await;
                Refused {
                    code: "unsupported_source",
                    route: Some(9),
                    identity: false,
                    says: &[object, "67108865", "67108864"],
                    recovery: None,
                }
                .holds(&report);
            }
            assert!(!case.path().join("__history").exists());
        }
    });
}

#[test]
fn b26_a_declared_column_the_table_lacks() {
    run(|| async {
        for kind in [Kind::S8, Kind::S9] {
            let case = kind.copy().await;
            widened(&case.names.contract)
                .write_objects(&case.path())
                .unwrap();
            Refused::routed(
                "unsupported_source",
                kind.stamp(),
                &["node:Person", "zest", "Utf8"],
            )
            .by(&case)
            .await;
        }
    });
}

#[test]
fn b26_a_stored_column_nobody_declared() {
    run(|| async {
        let case = Kind::S9.copy().await;
        let mut legacy = case.legacy(&[]).await;
        let pin = legacy.pin(None, &case.names.person).unwrap();
        rows::stray_column(&mut legacy, None, &case.names.person, &pin)
            .await
            .unwrap();
        Refused::routed("unsupported_source", 9, &["node:Person", "stray"])
            .by(&case)
            .await;
    });
}
