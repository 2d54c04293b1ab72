//! Every refusal of `docs/format/tables-and-schema.md` 5.5, each on a valid IR with one thing changed, and
//! what the section lets pass.

mod references;

use super::*;
use crate::schema::types::{PropType, Scalar};

type Change = fn(&mut SchemaIr);

fn all_refused(vintage: Vintage, cases: &[(Change, &str)]) {
    let valid = everything(vintage);
    valid.validate().unwrap();
    for (change, expected) in cases {
        let mut ir = valid.clone();
        change(&mut ir);
        match ir.validate() {
            Ok(()) => panic!("accepted: {expected}"),
            Err(e) => assert!(e.to_string().contains(expected), "{e}\n{expected}"),
        }
    }
}

fn property<'a>(ir: &'a mut SchemaIr, node: usize, name: &str) -> &'a mut PropertyIr {
    ir.nodes[node]
        .properties
        .iter_mut()
        .find(|p| p.name == name)
        .unwrap()
}

fn fields(constraint: &mut ConstraintIr) -> &mut Vec<FieldRef> {
    match constraint {
        ConstraintIr::Key { fields }
        | ConstraintIr::Unique { fields }
        | ConstraintIr::Index { fields } => fields,
        _ => panic!("no member list"),
    }
}

fn property_field(constraint: &mut ConstraintIr) -> &mut PropertyRef {
    match &mut fields(constraint)[0] {
        FieldRef::Property(property) => property,
        FieldRef::System(_) => panic!("no property"),
    }
}

/// The `dst` of the unique constraint of `Links`.
fn system_field(ir: &mut SchemaIr) -> &mut SystemRef {
    match &mut fields(&mut ir.edges[0].constraints[1])[0] {
        FieldRef::System(system) => system,
        FieldRef::Property(_) => panic!("no system column"),
    }
}

fn annotation(name: &str) -> Annotation {
    Annotation {
        name: name.into(),
        value: None,
        kwargs: Default::default(),
    }
}

#[test]
fn versions_and_features() {
    all_refused(
        Vintage::Legacy,
        &[
            (|ir| ir.ir_version = 0, "ir_version 0 is none of"),
            (|ir| ir.ir_version = 1, "ir_version 1 is none of"),
            (|ir| ir.ir_version = 3, "ir_version 3 is none of"),
            (|ir| ir.ir_version = 6, "ir_version 6 is none of"),
            (
                |ir| ir.ir_version = 4,
                "ir_version 4 is for a schema with an edge key",
            ),
            (|ir| ir.ir_version = 5, "names no feature"),
            (
                |ir| {
                    ir.features.insert(SYSTEM_COLUMNS.into());
                },
                "carries no features",
            ),
        ],
    );
    all_refused(
        Vintage::Current,
        &[
            (
                |ir| ir.ir_version = 2,
                "carries no features, but 'system-columns'",
            ),
            (|ir| ir.features.clear(), "names no feature"),
            (
                |ir| {
                    ir.features.insert(EDGE_KEYS.into());
                },
                "'edge-keys' is named, but no edge has a key",
            ),
            (
                |ir| {
                    ir.features.insert("zzz".into());
                },
                "unknown feature 'zzz'",
            ),
        ],
    );
    let mut keyed = initial(
        "node A {} edge E: A -> A { @key(@src, @dst) }",
        Vintage::Legacy,
    );
    keyed.features.clear();
    keyed.ir_version = 4;
    keyed.validate().unwrap();
    keyed.ir_version = 2;
    assert!(
        keyed
            .validate()
            .unwrap_err()
            .to_string()
            .contains("without an edge key")
    );
    keyed.ir_version = 5;
    keyed.features.insert(SYSTEM_COLUMNS.into());
    assert!(
        keyed
            .validate()
            .unwrap_err()
            .to_string()
            .contains("'edge-keys' is missing")
    );
}

#[test]
fn domain_and_ids() {
    all_refused(
        Vintage::Legacy,
        &[
            (
                |ir| ir.schema_identity_domain.make_ascii_lowercase(),
                "no canonical ULID",
            ),
            (|ir| ir.next_identity_id = 0, "next_identity_id is 0"),
            (
                |ir| ir.next_identity_id -= 1,
                "is in use, but next_identity_id is",
            ),
            (
                |ir| ir.nodes[0].type_id = ir.interfaces[0].type_id,
                "is used twice",
            ),
            (
                |ir| ir.nodes[0].table_incarnation_id = ir.edges[0].type_id,
                "is used twice",
            ),
            (
                |ir| ir.edges[0].properties[0].property_id = 1,
                "id 1 is used twice",
            ),
            (|ir| ir.nodes[0].properties[0].property_id = 0, "an id is 0"),
        ],
    );
}

#[test]
fn names() {
    all_refused(
        Vintage::Legacy,
        &[
            (
                |ir| ir.interfaces.swap(0, 1),
                "interface names are not strictly ascending",
            ),
            (|ir| ir.nodes.swap(0, 1), "'Alpha' follows 'Zed'"),
            (
                |ir| ir.edges.swap(0, 1),
                "edge names are not strictly ascending",
            ),
            (
                |ir| ir.edges[1].name = "Links".into(),
                "'Links' follows 'Links'",
            ),
            (
                |ir| ir.nodes[1].properties.swap(0, 1),
                "property names are not strictly ascending",
            ),
            (|ir| ir.edges[0].properties.swap(0, 1), "'v' follows 'w'"),
            (
                |ir| property(ir, 1, "score").name = "_rowid".into(),
                "not strictly ascending",
            ),
            (
                |ir| ir.edges[0].properties[0].name = "_rowid".into(),
                "virtual column",
            ),
            (
                |ir| ir.edges[0].properties[0].name = "id".into(),
                "is a system column",
            ),
            (
                |ir| ir.edges[0].properties[0].name = "src".into(),
                "is a system column",
            ),
            (
                |ir| ir.edges[0].properties[0].name = "__dst".into(),
                "is upgraded to",
            ),
            (
                |ir| ir.nodes[0].properties[0].name = "__id".into(),
                "is upgraded to",
            ),
            (
                |ir| ir.interfaces[0].properties[0].name = "id".into(),
                "is a system column",
            ),
        ],
    );
    all_refused(
        Vintage::Current,
        &[(
            |ir| ir.edges[0].properties[0].name = "_a".into(),
            "start with '_'",
        )],
    );
}

#[test]
fn annotations_and_lists() {
    all_refused(
        Vintage::Legacy,
        &[
            (
                |ir| ir.nodes[1].annotations.swap(0, 1),
                "annotations are not strictly ascending",
            ),
            (
                |ir| property(ir, 0, "k").annotations.swap(0, 1),
                "annotations are not strictly ascending",
            ),
            (
                |ir| property(ir, 0, "k").annotations[1] = annotation("a"),
                "not strictly ascending",
            ),
            (
                |ir| ir.nodes[0].annotations.push(annotation("rename_from")),
                "@rename_from is kept",
            ),
            (
                |ir| ir.edges[0].annotations.push(annotation("embed")),
                "@embed is kept",
            ),
            (
                |ir| ir.nodes[0].annotations.push(annotation("key")),
                "@key is kept",
            ),
            (
                |ir| {
                    property(ir, 0, "title")
                        .annotations
                        .push(annotation("unique"))
                },
                "@unique is kept",
            ),
            (
                |ir| {
                    ir.interfaces[0].properties[0]
                        .annotations
                        .push(annotation("index"))
                },
                "@index is kept",
            ),
            (
                |ir| {
                    property(ir, 1, "kind").prop_type.enum_values =
                        Some(vec!["b".into(), "a".into()])
                },
                "enum values are not strictly ascending",
            ),
            (
                |ir| {
                    property(ir, 1, "kind").prop_type.enum_values =
                        Some(vec!["a".into(), "a".into()])
                },
                "enum values are not strictly ascending",
            ),
            (
                |ir| {
                    property(ir, 0, "k").property_constraints =
                        vec![PropertyConstraint::Index, PropertyConstraint::Key]
                },
                "property constraints are not strictly ascending",
            ),
        ],
    );
}

#[test]
fn what_only_the_source_can_tell_passes() {
    let passing: [Change; 7] = [
        |ir| property(ir, 1, "near").prop_type.scalar = Scalar::Vector(0),
        |ir| property(ir, 0, "k").prop_type.nullable = true,
        |ir| {
            let mut second = ir.nodes[1].constraints[2].clone();
            fields(&mut second).push(ir.nodes[1].constraints[0].fields()[0].clone());
            ir.nodes[1].constraints.insert(3, second);
        },
        |ir| {
            property(ir, 1, "score").prop_type = PropType {
                scalar: Scalar::I32,
                nullable: false,
                list: false,
                enum_values: Some(vec!["a".into()]),
            };
        },
        |ir| ir.edges[0].properties[0].name = "Not a name".into(),
        |ir| ir.edges[1].name = "links".into(),
        |ir| {
            for constraint in &mut ir.nodes[1].constraints {
                if let ConstraintIr::Range { max, .. } = constraint {
                    *max = Some(Bound::Integer(-100));
                }
            }
        },
    ];
    for (at, change) in passing.into_iter().enumerate() {
        let mut ir = everything(Vintage::Legacy);
        change(&mut ir);
        if let Err(e) = ir.validate() {
            panic!("{at}: {e}");
        }
        assert_ne!(
            ir.shape().compact(),
            everything(Vintage::Legacy).shape().compact(),
            "{at}"
        );
    }
}
